package sqs

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// sending is one call of Send.
type sending struct {
	ctx     context.Context // ends when nobody waits for the call any more
	results []forebay.SendResult
	left    atomic.Int64
	done    chan struct{} // closed when none is left

	mu     sync.Mutex
	failed map[string]error // groups of which one message failed
}

// sendItem is one message on its way.
type sendItem struct {
	of    *sending
	at    int
	entry types.SendMessageBatchRequestEntry
	size  int
	group string // of a FIFO queue
}

func (s *sendItem) lane() string { return s.group }
func (s *sendItem) bytes() int   { return s.size }

func (s *sendItem) finish() {
	if s.of.left.Add(-1) == 0 {
		close(s.of.done)
	}
}

// skip leaves out what nobody waits for any more, and what would overtake.
func (s *sendItem) skip() bool {
	err := s.of.ctx.Err()
	if err == nil && s.group != "" {
		s.of.mu.Lock()
		err = s.of.failed[s.group]
		s.of.mu.Unlock()
	}
	if err != nil {
		s.fail(err)
	}
	return err != nil
}

func (s *sendItem) fail(err error) {
	s.of.results[s.at].Err = err
	if s.group != "" {
		s.of.mu.Lock()
		s.of.failed[s.group] = err
		s.of.mu.Unlock()
	}
}

// Send stores messages, as package engine says. Of one group of a FIFO queue, none is
// sent after one that failed.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if len(msgs) > engine.MaxSend {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sqs: send", "%d messages in one call; at most %d are allowed", len(msgs), engine.MaxSend)
	}
	call, leave, err := e.enter(ctx, e.base)
	if err != nil {
		return nil, err
	}
	defer leave()
	res, err := e.send(call, msgs)
	if err != nil {
		return nil, e.ended(ctx)
	}
	return res, nil
}

func (e *Engine) send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	s := &sending{ctx: ctx, results: make([]forebay.SendResult, len(msgs)), failed: make(map[string]error), done: make(chan struct{})}
	byQueue, lost := make(map[*queue][]*sendItem), make(unfound)
	s.left.Store(1) // until all are counted
	now := time.Now()
	for i := range msgs {
		s.results[i].ID = msgs[i].ID
		q, it, err := e.prepare(ctx, &msgs[i], now, lost)
		if err != nil {
			s.results[i].Err = err
			continue
		}
		it.of, it.at = s, i
		byQueue[q] = append(byQueue[q], it)
	}
	for q, items := range byQueue {
		s.left.Add(int64(len(items)))
		q.sends.add(items...)
	}
	if s.left.Add(-1) == 0 { // also if all are sent by now: nobody else closes done then
		return s.results, nil
	}
	select {
	case <-s.done:
		return s.results, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// unfound are the queues that a call could not find or make, and why. It does not try
// again: a later message of a group would go, and overtake those that were refused.
type unfound map[string]error

// prepare checks and encodes a message.
func (e *Engine) prepare(ctx context.Context, m *forebay.Message, now time.Time, lost unfound) (*queue, *sendItem, error) {
	if err := engine.CheckMessage(m, now); err != nil {
		return nil, nil, err
	}
	if err := lost[m.Queue]; err != nil {
		return nil, nil, err
	}
	q, err := e.find(ctx, m.Queue)
	if err != nil {
		lost[m.Queue] = err
		return nil, nil, err
	}
	entry, size, err := q.encode(m, now)
	if err != nil {
		return nil, nil, err
	}
	it := &sendItem{entry: entry, size: size}
	if q.fifo {
		it.group = deref(entry.MessageGroupId)
	} else if m.Group != "" {
		e.unordered(q)
	}
	return q, it, nil
}

// unordered says once that a queue keeps no order.
func (e *Engine) unordered(q *queue) {
	q.mu.Lock()
	said := q.said
	q.said = true
	q.mu.Unlock()
	if !said {
		e.log.Warn("messages with a group go to a standard queue of SQS: groups share it fairly, and have no order; a .fifo queue keeps it", "queue", q.name)
	}
}

// sendBatch is one request. The AWS SDK repeats it a few times where it may.
func (e *Engine) sendBatch(ctx context.Context, q *queue, batch []*sendItem) {
	in := &awssqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: make([]types.SendMessageBatchRequestEntry, len(batch))}
	for i, it := range batch {
		in.Entries[i] = it.entry
		in.Entries[i].Id = new(strconv.Itoa(i)) // the index: ids of ours may be too long for SQS
	}
	out, err := e.client.SendMessageBatch(ctx, in)
	var errs []error
	if err != nil {
		errs = e.unanswered("send", len(batch), err)
	} else {
		var ok []*string
		for i := range out.Successful {
			ok = append(ok, out.Successful[i].Id)
		}
		errs = e.answers("send", len(batch), ok, out.Failed)
	}
	for i, it := range batch {
		if errs[i] != nil {
			it.fail(errs[i])
			continue
		}
		e.count.sent.Add(1)
		q.sent.Add(1)
	}
}
