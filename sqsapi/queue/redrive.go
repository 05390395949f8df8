package queue

import (
	"context"
	"crypto/sha256"
	"maps"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
)

// deadLetterQueue is where messages of a queue go that were received too often. nil:
// it is not there, and they stay.
func (s *Service) deadLetterQueue(ctx context.Context, q *queue) *queue {
	name := s.ours(q.redrive.Target)
	if name == "" || name == q.name {
		return nil
	}
	to, err := s.byName(ctx, name)
	if err != nil {
		return nil
	}
	return to
}

// movedID is the id of a message in the queue that it is moved to. The same move
// gives the same id, so that it cannot come about twice.
func movedID(id string, to *queue) string {
	sum := sha256.Sum256([]byte(id + "\x00" + to.name + "\x00" + to.Life))
	return uuid(sum[:16])
}

// moved is a message as it goes to another queue.
func (s *Service) moved(ctx context.Context, d *forebay.Delivery, to *queue, id string) (forebay.Message, error) {
	m := forebay.Message{
		ID: id, Queue: to.name, Kind: d.Kind, Payload: d.Payload, Headers: maps.Clone(d.Headers), Priority: d.Priority,
		Group: d.Group, LimitKey: d.LimitKey, Limits: d.Limits, DedupWindow: time.Millisecond, Fingerprint: 1,
	}
	if to.fifo {
		number, err := s.numbers.take(ctx, 1)
		if err != nil {
			return m, err
		}
		m.ID = numbered(id, number)
	}
	return m, nil
}

// toDead is a message as it goes to the dead letter queue: with its MessageId and all
// that it had. On a standard queue it stays as old as it is; on a FIFO queue its time
// begins again, and its dedup id is its MessageId.
func (s *Service) toDead(ctx context.Context, d *forebay.Delivery, from, to *queue) (forebay.Message, error) {
	m, err := s.moved(ctx, d, to, movedID(d.ID, to))
	header(&m, headID, messageID(&d.Message))
	header(&m, headFrom, from.name)
	header(&m, headCount, itoa(d.Deliveries-1+countBefore(d))) // the last hand-out was to us
	if to.fifo {
		header(&m, headDedup, messageID(&d.Message))
		delete(m.Headers, headSent)
	} else {
		header(&m, headSent, strconv.FormatInt(sentAt(d).UnixMilli(), 10))
	}
	return m, err
}

// countBefore is how often a message was received in the queues before this one.
func countBefore(d *forebay.Delivery) int {
	n, _ := strconv.Atoi(d.Headers[headCount])
	return n
}
