package schedule

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

const (
	readEvery   = 30 * time.Second // what other processes changed is seen by then
	readAtOnce  = 500              // documents of one list
	callTimeout = 30 * time.Second // of one call of the broker
	firstRetry  = time.Second
	lastRetry   = 30 * time.Second
	takeOver    = time.Minute // after which what another process decided is sent by this one
)

// Config of a Scheduler. Broker is needed.
type Config struct {
	Broker *broker.Broker
	Logger *slog.Logger     // nil: nothing is logged
	Now    func() time.Time // the wall clock; nil: time.Now
}

// Scheduler keeps schedules and, while Run runs, adds their jobs. It is safe for
// concurrent use. Several may run on one broker.
type Scheduler struct {
	broker *broker.Broker
	log    *slog.Logger
	now    func() time.Time
	zones  zones
	wake   chan struct{} // has one when a schedule was changed through this process

	mu      sync.Mutex
	entries map[string]*entry
	queue   queue // of those that have a next
	changes uint64
	loaded  bool // the first reading is over
}

// New makes a Scheduler.
func New(cfg Config) (*Scheduler, error) {
	if cfg.Broker == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "schedule: new", "a broker is needed")
	}
	s := &Scheduler{broker: cfg.Broker, log: cfg.Logger, now: cfg.Now, wake: make(chan struct{}, 1), entries: map[string]*entry{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// Run adds jobs at their ticks until ctx is done, then ends what it has begun and
// returns nil. An error means that the engine cannot keep schedules.
func (s *Scheduler) Run(ctx context.Context) error {
	read := time.NewTimer(0)
	defer read.Stop()
	tick := time.NewTimer(readEvery)
	defer tick.Stop()
	wait := firstRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-tick.C:
		case <-read.C:
			err := s.readAll(ctx)
			again := readEvery
			switch {
			case forebay.CodeOf(err) == forebay.CodeUnsupported:
				return err
			case ctx.Err() != nil:
				return nil
			case err != nil:
				s.log.Warn("schedule: schedules cannot be read; it is tried again", "error", err, "after", wait)
				again, wait = wait, min(2*wait, lastRetry)
			default:
				wait = firstRetry
			}
			read.Reset(again)
		}
		next := s.work(ctx)
		if next.IsZero() {
			tick.Stop()
			continue
		}
		tick.Reset(max(0, next.Sub(s.now())))
	}
}

// work does all that is due, and tells when there is something again.
func (s *Scheduler) work(ctx context.Context) (next time.Time) {
	for ctx.Err() == nil {
		var works []*work
		works, next = s.due()
		if len(works) == 0 {
			break
		}
		s.round(works)
	}
	return next
}

// readAll makes the entries what is stored.
func (s *Scheduler) readAll(ctx context.Context) error {
	s.mu.Lock()
	began := s.changes
	s.mu.Unlock()
	seen := map[string]bool{}
	for after := ""; ; {
		docs, err := s.list(ctx, after, readAtOnce)
		if err != nil {
			return err
		}
		if len(docs) == 0 {
			break
		}
		for _, d := range docs {
			seen[d.Key] = true
			s.took(d, began)
		}
		after = docs[len(docs)-1].Key
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.entries {
		if !seen[name] && e.changed <= began {
			s.drop(e)
		}
	}
	s.loaded = true
	return nil
}

func (s *Scheduler) list(ctx context.Context, after string, limit int) ([]engine.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.broker.Documents(ctx, collection, after, limit)
}
