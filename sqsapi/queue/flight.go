package queue

import (
	"context"
	"sync"
	"time"
)

// flight is how many messages of a queue are in flight, as far as that was asked.
type flight struct {
	mu     sync.Mutex
	active int64
	at     time.Time
}

// flightAge is for how long the number is believed while it is far from the bound.
const flightAge = time.Second

// checkFlight holds a standard queue to its bound of messages in flight. A short poll
// is refused, as on AWS; a long one gets nothing.
func (s *Service) checkFlight(ctx context.Context, q *queue, a *asked) (full bool, err error) {
	most := s.limits.inFlight
	if q.fifo || most == 0 || q.live.flight.below(most/2, int64(a.max), s.cfg.Now()) {
		return false, nil
	}
	stats, err := s.engine.Stats(ctx, q.name)
	if err != nil {
		return false, s.failed(ctx, err)
	}
	q.live.flight.set(stats[0].Active, s.cfg.Now())
	if stats[0].Active < most {
		return false, nil
	}
	if a.wait == 0 {
		return false, fault("OverLimit", "The maximum number of messages in flight (%d) is reached.", most)
	}
	t := time.NewTimer(a.wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// below tells whether the number was asked lately and is less than a bound. It counts
// n more.
func (f *flight) below(most, n int64, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.at) >= flightAge || f.active >= most {
		return false
	}
	f.active += n
	return true
}

func (f *flight) set(active int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active, f.at = active, now
}
