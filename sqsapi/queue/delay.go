package queue

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay/engine"
)

// The delay of a FIFO queue is that of all its messages, those that wait already too. So
// it is the engine's (engine.Delayer), and no message has a time of its own. The record
// of the queue says what it is. The engine is told when that was changed, and whenever
// the record is read and says something else: so a process that ended between the two
// leaves nothing wrong for longer than the next one takes to start, and another process
// that uses the queue for longer than a record is believed.

// told is what the engine was told of a queue in this process.
type told struct {
	mu    sync.Mutex
	known bool
	delay time.Duration
}

// tells tells whether the delay of a queue is the engine's.
func (s *Service) tells(q *queue) bool { return q.fifo && s.delayer != nil }

// tellDelay has the engine delay what a FIFO queue has. One that is deleted, or was not
// found (nil), has no delay any more.
func (s *Service) tellDelay(ctx context.Context, q *queue) error {
	if q == nil || !s.tells(q) {
		return nil
	}
	if q.live == nil { // deleted
		return s.setDelay(ctx, q.name, 0)
	}
	t := &q.live.told
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known && t.delay == q.delay {
		return nil
	}
	if err := s.setDelay(ctx, q.name, q.delay); err != nil {
		return err
	}
	t.known, t.delay = true, q.delay
	return nil
}

// setDelay writes only what differs.
func (s *Service) setDelay(ctx context.Context, name string, d time.Duration) error {
	is, err := s.delayer.Delay(ctx, name)
	if err == nil && is != d {
		err = s.delayer.SetDelay(ctx, name, d)
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// tellDelays tells the engine of all FIFO queues.
func (s *Service) tellDelays(ctx context.Context) error {
	if s.delayer == nil {
		return nil
	}
	for after := ""; ; {
		docs, err := s.docs.Documents(ctx, queueDocs, after, engine.MaxDocuments)
		if err != nil || len(docs) == 0 {
			return err
		}
		for i := range docs {
			if after = docs[i].Key; !isFifo(after) {
				continue
			}
			if _, err := s.load(ctx, after); err != nil {
				return err
			}
		}
	}
}
