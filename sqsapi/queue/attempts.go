package queue

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// attempts remembers what receives with a ReceiveRequestAttemptId were given, for five
// minutes, so that a repeated one gets the same messages. It is bounded, and a new
// process knows nothing: then the groups are locked until their leases end.
type attempts struct {
	mu   sync.Mutex
	by   map[string]*attempt
	ends []*attempt // in the order in which they began
}

type attempt struct {
	key   string
	began time.Time
	busy  chan struct{} // closed when it has an answer
	ds    []forebay.Delivery
	at    time.Time // when they were leased
}

// Bounds of what is remembered.
const (
	attemptAge   = 5 * time.Minute
	attemptsMost = 10_000
	attemptBytes = 1 << 20 // of the messages of one; more are not remembered
)

func newAttempts() *attempts { return &attempts{by: map[string]*attempt{}} }

// once gives what an attempt was given before, if held says that it still has all of
// it; else it takes anew. A call that comes while another of the same attempt runs
// waits for it.
func (s *attempts) once(ctx context.Context, key string, now time.Time, held func([]forebay.Receipt) bool,
	take func() ([]forebay.Delivery, time.Time, error)) ([]forebay.Delivery, time.Time, error) {
	for {
		s.mu.Lock()
		s.trim(now)
		old := s.by[key]
		if old == nil {
			a := &attempt{key: key, began: now, busy: make(chan struct{})}
			s.by[key], s.ends = a, append(s.ends, a)
			s.mu.Unlock()
			ds, at, err := take()
			s.keep(a, ds, at)
			return ds, at, err
		}
		s.mu.Unlock()
		select {
		case <-old.busy:
		case <-ctx.Done():
			return nil, now, ctx.Err()
		}
		if len(old.ds) > 0 && held(receiptsOf(old.ds)) {
			return old.ds, old.at, nil
		}
		s.drop(old)
	}
}

// keep notes what an attempt was given, or forgets it if that was nothing.
func (s *attempts) keep(a *attempt, ds []forebay.Delivery, at time.Time) {
	size := 0
	for i := range ds {
		size += len(ds[i].Payload)
	}
	if len(ds) == 0 || size > attemptBytes {
		s.drop(a)
	} else {
		a.ds, a.at = ds, at
	}
	close(a.busy)
}

func (s *attempts) drop(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[a.key] == a {
		delete(s.by, a.key)
	}
}

// trim forgets what is too old, or too much.
func (s *attempts) trim(now time.Time) {
	for len(s.ends) > 0 && (len(s.ends) > attemptsMost || now.Sub(s.ends[0].began) >= attemptAge) {
		if a := s.ends[0]; s.by[a.key] == a {
			delete(s.by, a.key)
		}
		s.ends[0] = nil
		s.ends = s.ends[1:]
	}
}

// stillHeld tells whether messages are in flight by these very receipts, and hides
// them for the whole time again.
func (s *Service) stillHeld(ctx context.Context, receipts []forebay.Receipt, visibility time.Duration) bool {
	if visibility == 0 {
		return false
	}
	errs, err := s.engine.Extend(ctx, receipts, visibility)
	for _, e := range errs {
		if e != nil {
			return false
		}
	}
	return err == nil
}
