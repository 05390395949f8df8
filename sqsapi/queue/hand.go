package queue

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// hand gives a receive its messages, and tells when they were leased.
func (s *Service) hand(ctx context.Context, q *queue, a *asked) ([]forebay.Delivery, time.Time, error) {
	now := s.cfg.Now()
	if full, err := s.checkFlight(ctx, q, a); full || err != nil {
		return nil, now, err
	}
	take := func() ([]forebay.Delivery, time.Time, error) {
		ds, err := s.take(ctx, q, a)
		return ds, s.cfg.Now(), err
	}
	if a.attempt == "" {
		return take()
	}
	held := func(receipts []forebay.Receipt) bool { return s.stillHeld(ctx, receipts, a.visibility) }
	return s.attempts.once(ctx, q.Life+"\x00"+a.attempt, now, held, take)
}

// take leases messages that may be handed out. Those whose time is over, or that
// were received too often, are moved out of the way meanwhile.
func (s *Service) take(ctx context.Context, q *queue, a *asked) ([]forebay.Delivery, error) {
	end := s.cfg.Now().Add(a.wait)
	for {
		r := engine.Receive{Queue: q.name, Max: a.max, Wait: max(end.Sub(s.cfg.Now()), 0), Lease: max(a.visibility, engine.MinLease), Kept: true}
		ds, err := s.engine.Receive(ctx, r)
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		if len(ds) == 0 {
			return nil, nil
		}
		if ds, err = s.sift(ctx, q, ds); err != nil {
			return nil, err
		}
		if len(ds) == 0 {
			continue
		}
		if q.fifo {
			ds = sequenced(ds)
		}
		return ds, s.hideNot(ctx, a, ds)
	}
}

// hideNot ends the leases of a receive that hides nothing.
func (s *Service) hideNot(ctx context.Context, a *asked, ds []forebay.Delivery) error {
	if a.visibility > 0 {
		return nil
	}
	_, err := s.engine.Extend(ctx, receiptsOf(ds), 0)
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

func receiptsOf(ds []forebay.Delivery) []forebay.Receipt {
	receipts := make([]forebay.Receipt, len(ds))
	for i := range ds {
		receipts[i] = ds[i].Receipt
	}
	return receipts
}

// sift takes out of a claim what is not to be handed out: what was purged, or is older
// than the queue keeps messages, is dropped; what was received too often goes to the
// dead letter queue. All of it is one step of the engine.
func (s *Service) sift(ctx context.Context, q *queue, ds []forebay.Delivery) ([]forebay.Delivery, error) {
	var out []forebay.Settlement
	now := s.cfg.Now()
	good := ds[:0]
	var to *queue
	for i := range ds {
		d := &ds[i]
		switch {
		case d.Job != nil: // Forebay's own ledger decides about it
		case q.over(d, now):
			out = append(out, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Expired})
			continue
		case q.redrive != nil && d.Deliveries > q.redrive.Max:
			if to == nil {
				to = s.deadLetterQueue(ctx, q)
			}
			if to != nil {
				next, err := s.toDead(ctx, d, q, to)
				if err != nil {
					return nil, s.failed(ctx, err)
				}
				out = append(out, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Next: []forebay.Message{next}})
				continue
			}
		}
		good = append(good, *d)
	}
	if len(out) == 0 {
		return good, nil
	}
	// One that is refused has lost its lease: it is met again.
	if _, err := s.engine.Settle(ctx, out); err != nil {
		return nil, s.failed(ctx, err)
	}
	return good, nil
}

// over tells whether a message is not to be seen any more.
func (q *queue) over(d *forebay.Delivery, now time.Time) bool {
	return d.SentAt.UnixNano() < q.Since || now.Sub(sentAt(d)) >= q.retention
}

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
