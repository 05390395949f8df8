package queue

import (
	"context"
	"time"

	"github.com/forebayhq/forebay/engine"
)

// PurgeQueue drops all messages of a queue, those in flight too, and what it knows of
// dedup ids.
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
	_, err := p.Purge(ctx, name)
	if err == nil {
		_, err = s.late.EndActive(ctx, name)
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// DeleteQueue removes a queue and its messages. Its name can be used again a minute
// later only. If it ever had a message, that it was deleted stays known, so that the
// engine's queue does not bring it back.
func (s *Service) DeleteQueue(ctx context.Context, in NamedInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	used, err := s.engineHas(ctx, q.name)
	if err != nil {
		return err
	}
	_, err = s.change(ctx, q.name, func(_ *queue, r *record) error {
		*r = record{Life: r.Life, Created: r.Created, Deleted: s.cfg.Now().UnixMilli(), Unused: !used}
		return nil
	})
	if err != nil {
		return err
	}
	if err = s.purge(ctx, q.name); isShape(err, "UnsupportedOperation") {
		return nil // a queue of this name that is created later drops them
	}
	return err
}
