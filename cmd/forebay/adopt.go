package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/event"
)

// outboxPrefix begins the names of the local queues of the outbox.
const outboxPrefix = "outbox-"

// Adopting: how much at once, and how long a failure waits.
const (
	adoptBatch = 500
	adoptLease = 2 * time.Minute
	adoptAgain = 10 * time.Second
)

// adoption moves what waits in a local queue that nobody works any more, since the
// settings have changed, to where events go now; also what comes later, such as a
// replay of its dead letters. A message may be sent twice, told by its id.
type adoption struct {
	local engine.Engine
	from  string
	to    engine.Engine
	log   *slog.Logger
}

// adoptions are what this server must move: without a shared queue what the outbox of the
// time with one has not forwarded. With one, the outbox forwards the events of the time without.
func (s *server) adoptions() []adoption {
	if s.shared != nil {
		return nil
	}
	return []adoption{{s.local, outboxPrefix + event.Queue, s.local, s.log}}
}

// Run moves until ctx ends.
func (a adoption) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := a.move(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			a.log.Warn("events of an earlier setting cannot be moved; it is tried again", "queue", a.from, "error", err)
			pause(ctx, adoptAgain)
		case n > 0:
			a.log.Info("events of an earlier setting are moved", "queue", a.from, "events", n)
		}
	}
	return nil
}

// move moves one batch. It waits until there is something.
func (a adoption) move(ctx context.Context) (n int, err error) {
	ds, err := a.local.Receive(ctx, engine.Receive{Queue: a.from, Max: adoptBatch, Wait: engine.MaxWait, Lease: adoptLease})
	if err != nil || len(ds) == 0 {
		return 0, err
	}
	done := context.WithoutCancel(ctx) // what was taken is settled, also while stopping
	msgs := make([]forebay.Message, len(ds))
	for i := range ds {
		msgs[i] = ds[i].Message
		msgs[i].Queue, msgs[i].ID, msgs[i].DedupKey = event.Queue, movedID(ds[i].ID), ""
	}
	results, err := a.to.Send(done, msgs)
	ss := make([]forebay.Settlement, len(ds))
	var errs []error
	for i := range ds {
		one := err
		if err == nil {
			one = results[i].Err
		}
		ss[i] = forebay.Settlement{Receipt: ds[i].Receipt, Queue: a.from, Verdict: forebay.Ack}
		if one != nil {
			ss[i].Verdict, ss[i].After = forebay.Release, adoptAgain
			errs = append(errs, one)
			continue
		}
		n++
	}
	settled, err := a.local.Settle(done, ss)
	return n, errors.Join(errors.Join(errs...), errors.Join(settled...), err)
}

// movedID is the id of a message that has moved: another one, since the local engine
// remembers the old one and would take the message for a duplicate of itself. The id of
// its event is in the payload.
func movedID(id string) string {
	const mark = "moved-"
	if len(id) > forebay.MaxIDBytes-len(mark) {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return mark + id
}
