package queue

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// PurgeQueue drops all messages of a queue, and what it knows of dedup ids. Those in
// flight are dropped when they come back.
func (s *Service) PurgeQueue(ctx context.Context, in NamedInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	_, err = s.change(ctx, q.name, func(q *queue, r *record) error {
		now := s.cfg.Now()
		if r.Purged != 0 && now.Sub(time.UnixMilli(r.Purged)) < restAfterPurge {
			return fault("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
		}
		r.Purged, r.Since = now.UnixMilli(), max(now.UnixNano(), r.Since+1)
		return nil
	})
	if err != nil {
		return err
	}
	return s.purge(ctx, q.name)
}

func (s *Service) purge(ctx context.Context, name string) error {
	p, can := engine.As[engine.Purger](s.engine)
	if !can {
		return fault("UnsupportedOperation", "The engine of this queue cannot purge.")
	}
	if _, err := p.Purge(ctx, name); err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// DeleteQueue removes a queue and its messages. That it was there stays known, so
// that messages which others put into the engine's queue do not bring it back, and
// its name can be used again a minute later only.
func (s *Service) DeleteQueue(ctx context.Context, in NamedInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	_, err = s.change(ctx, q.name, func(_ *queue, r *record) error {
		*r = record{Life: r.Life, Created: r.Created, Deleted: s.cfg.Now().UnixMilli()}
		return nil
	})
	if err != nil {
		return err
	}
	err = s.purge(ctx, q.name)
	if f, is := err.(*Fault); is && f.Shape == "UnsupportedOperation" {
		return nil // a queue of this name that is created later drops them
	}
	return err
}

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
