package main

import (
	"context"
	"errors"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink/postgres"
	"github.com/forebayhq/forebay/sink/sqlite"
	"github.com/forebayhq/forebay/worker"

	words "github.com/forebayhq/forebay/sink"
)

// sink is what the server asks of either database.
type sink interface {
	worker.BatchHandler
	Again(ctx context.Context, ds []forebay.Delivery) []error
	Find(ctx context.Context, eventID string) (event.Event, bool, error)
	Check(ctx context.Context) error
	State() words.State
	Close() error
}

// sinkTimeout bounds the first look at the database.
const sinkTimeout = 3 * time.Second

// openSink opens the database that events are written to. One that does not answer
// is no reason not to start: events are accepted and wait.
func (s *server) openSink() error {
	if r := &s.settings.Server; !r.Has(config.RoleWorker) && !r.Has(config.RoleAPI) {
		return nil
	}
	c := s.settings.Sink
	shared := words.Config{Logger: s.log.With("part", "sink"), Observe: s.monitor.Batch, OnState: s.monitor.SinkState}
	var err error
	if c.URL != "" {
		ctx, cancel := context.WithTimeout(context.Background(), sinkTimeout)
		defer cancel()
		s.sink, err = postgres.Open(ctx, c.URL, postgres.Config{Config: shared, Retention: c.Retention})
	} else {
		s.sink, err = sqlite.Open(s.path(eventsFile), sqlite.Config{Config: shared, Retention: c.Retention})
	}
	if err != nil {
		return sinkError(err)
	}
	s.closing(s.sink.Close)
	return nil
}

// finder is the sink as who asks where an event is sees it.
func (s *server) finder() api.Finder {
	if s.sink == nil {
		return nil // and not a sink that is nil
	}
	return s.sink
}

// sinkError tells an address that is wrong from a database that cannot be used.
func sinkError(err error) error {
	var e *forebay.Error
	if errors.As(err, &e) && e.Field == "DATABASE_URL" {
		return usage(err)
	}
	return cannotStart(err)
}
