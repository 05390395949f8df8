package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/outbox"
	"github.com/forebayhq/forebay/engine/route"
	"github.com/forebayhq/forebay/engine/sqs"
	"github.com/forebayhq/forebay/event"
)

// settingsTimeout bounds the reading of the AWS SDK's own settings, which may ask the
// machine's metadata.
const settingsTimeout = 10 * time.Second

// openSQS opens the queue that events share between servers.
func openSQS(s *config.Settings, cfg sqs.Config) (*sqs.Engine, error) {
	c := s.SQS
	cfg.Queues = map[string]string{event.Queue: c.URL}
	cfg.Region, cfg.Endpoint = c.Region, c.Endpoint
	cfg.Unwrap = map[string]sqs.Unwrap{event.Queue: {
		SNS: c.Unwrap == "sns", Topics: c.Topics, EventBridge: c.Unwrap == "eventbridge", S3: c.Unwrap == "s3",
	}}
	ctx, cancel := context.WithTimeout(context.Background(), settingsTimeout)
	defer cancel()
	e, err := sqs.Open(ctx, cfg)
	if err != nil {
		return nil, usage(err)
	}
	return e, nil
}

// shared is the queue that servers share for events, with the outbox in front of it.
type shared struct {
	remote *sqs.Engine
	outbox *outbox.Engine
}

// check tells whether the remote queue takes messages, without asking it.
func (s *shared) check(context.Context) error {
	backlog, _ := s.outbox.Backlog()
	for _, b := range backlog {
		if b.Away {
			return forebay.Errorf(forebay.CodeUnavailable, "", "out of reach; %d messages wait in the outbox", b.Messages)
		}
	}
	return nil
}

// openShared puts the queue that servers share, if there is one, beside what keeps the others.
func (s *server) openShared(own engine.Engine) (engine.Engine, error) {
	if s.settings.SQS.URL == "" {
		return own, nil
	}
	remote, err := openSQS(s.settings, sqs.Config{Logger: s.log.With("part", "aws sqs")})
	if err != nil {
		return nil, err
	}
	s.shared = &shared{remote: remote}
	over, err := s.seal("SQS", remote, true)
	if err != nil {
		return nil, errors.Join(err, remote.Close())
	}
	s.shared.outbox, err = outbox.New(over, s.local, outbox.Config{
		Prefix: outboxPrefix, Own: []string{event.Queue}, Budget: s.settings.SQS.OutboxMax, Logger: s.log.With("part", "outbox"),
	})
	if err != nil {
		return nil, errors.Join(err, remote.Close())
	}
	all, err := route.New(own, map[string]engine.Engine{event.Queue: s.shared.outbox})
	if err != nil {
		return nil, errors.Join(err, s.shared.outbox.Close())
	}
	return all, nil
}

// redrivers are the queues whose dead letters AWS keeps.
func (s *server) redrivers() map[string]engine.Redriver {
	if s.shared == nil {
		return nil
	}
	return map[string]engine.Redriver{event.Queue: s.shared.remote}
}

// isFIFO tells a queue whose messages keep their order, by its name.
func isFIFO(url string) bool { return strings.HasSuffix(url, ".fifo") }
