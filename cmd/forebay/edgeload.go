package main

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/outbox"
	"github.com/forebayhq/forebay/ingest"
)

// edgeLoad is what admission looks at, several times a second. It must not hang with a
// queue elsewhere, nor pay for asking it: what waits there is not on this disk. What
// waits in the outbox is.
func (s *server) edgeLoad() ingest.Load {
	if s.shared == nil {
		return s.broker
	}
	return outboxLoad{s.broker, s.shared.outbox}
}

type outboxLoad struct {
	*broker.Broker // for its disk and its rates
	outbox         *outbox.Engine
}

// Stats counts what waits in the outbox.
func (l outboxLoad) Stats(_ context.Context, names ...string) ([]forebay.QueueStats, error) {
	waits := map[string]int64{}
	backlog, _ := l.outbox.Backlog()
	for _, b := range backlog {
		waits[b.Queue] = b.Messages
	}
	all := make([]forebay.QueueStats, len(names))
	for i, name := range names {
		all[i] = forebay.QueueStats{Queue: name, Waiting: waits[name]}
	}
	return all, nil
}
