package queue

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of a sweep.
const (
	sweepEvery = time.Minute
	sweepSlice = 500
	sweepMost  = 100 // slices of one queue
	sweepLease = 10 * time.Second
)

// sweep removes messages that nobody receives, and whose time is over: those at the
// front of a queue, in slices, until one is met that is not.
func (s *Service) sweep(ctx context.Context) error {
	stats, err := s.engine.Stats(ctx)
	if err != nil {
		return err
	}
	for i := range stats {
		st := &stats[i]
		if st.Waiting == 0 {
			continue
		}
		q, err := s.known(ctx, st.Queue)
		if err != nil {
			return err
		}
		if q == nil {
			continue
		}
		for n := 0; n < sweepMost; n++ {
			more, err := s.sweepSome(ctx, q, st.Oldest)
			if err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}

// known is a queue that has a record and is there; nil: none. Sweeping creates none.
func (s *Service) known(ctx context.Context, name string) (*queue, error) {
	d, err := s.docs.Document(ctx, queueDocs, name)
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	q, err := s.keep(name, d)
	if q == nil || q.Deleted != 0 {
		return nil, err
	}
	return q, err
}

// sweepSome takes a slice if its oldest message is over. more: all of the slice was.
func (s *Service) sweepSome(ctx context.Context, q *queue, oldest time.Time) (more bool, err error) {
	now := s.cfg.Now()
	if now.Sub(oldest) < q.retention && oldest.UnixNano() >= q.Since {
		return false, nil
	}
	ds, err := s.engine.Receive(ctx, engine.Receive{Queue: q.name, Max: sweepSlice, Lease: sweepLease})
	if err != nil || len(ds) == 0 {
		return false, err
	}
	out := make([]forebay.Settlement, len(ds))
	over := 0
	for i := range ds {
		out[i] = forebay.Settlement{Receipt: ds[i].Receipt, Verdict: forebay.Release}
		if ds[i].Job == nil && q.over(&ds[i], now) {
			out[i].Verdict = forebay.Expired
			over++
		}
	}
	if _, err := s.engine.Settle(ctx, out); err != nil {
		return false, err
	}
	return over == len(ds), nil
}
