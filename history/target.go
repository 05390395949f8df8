package history

import (
	"context"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

// Sender sends messages; *broker.Broker is one.
type Sender interface {
	Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error)
}

// HeaderOf names, in a message that was replayed into a queue, the id that it had.
const HeaderOf = "forebay-replay-of"

// ToQueue sends messages again, as new ones with ids of their own: those that follow
// from the replay and their place, so that a batch that comes twice is known. They
// are the least urgent of their queue. Empty name: each goes to the queue it was sent to.
func ToQueue(s Sender, name string) Target { return toQueue{s, name} }

type toQueue struct {
	sender Sender
	name   string
}

const leastUrgent = 9

func (q toQueue) Write(ctx context.Context, replay string, entries []engine.LogEntry) (refused int, reason, err error) {
	msgs := make([]forebay.Message, len(entries))
	for i := range entries {
		msgs[i] = q.again(replay, &entries[i])
	}
	results, err := q.sender.Send(ctx, msgs)
	if err != nil {
		return 0, nil, err
	}
	for _, res := range results {
		switch forebay.CodeOf(res.Err) {
		case "":
		case forebay.CodeInvalid, forebay.CodeTooLarge, forebay.CodeUnsupported:
			refused, reason = refused+1, res.Err
		default:
			return 0, nil, res.Err
		}
	}
	return refused, reason, nil
}

// again makes the new message. Times that have passed, and what joined it with others
// then, do not hold for it.
func (q toQueue) again(replay string, e *engine.LogEntry) forebay.Message {
	m := e.Message
	headers := make(map[string]string, len(m.Headers)+1)
	for k, v := range m.Headers {
		headers[k] = v
	}
	headers[HeaderOf] = m.ID
	m.ID, m.Headers = fmt.Sprintf("%s-%d", replay, e.Seq), headers
	m.DedupKey, m.DedupWindow, m.NotBefore, m.Priority = "", 0, time.Time{}, forebay.At(leastUrgent)
	if q.name != "" {
		m.Queue = q.name
	}
	if m.Job != nil {
		job := *m.Job
		job.Deadline, job.Expires, job.Dedup = time.Time{}, time.Time{}, forebay.DedupWindowed
		m.Job = &job
	}
	return m
}

// ToBatch gives messages to a batch handler, such as a sink, as if they were delivered.
// What it fails for good is refused; any other error gives it the batch again.
func ToBatch(h worker.BatchHandler) Target { return toBatch{h} }

type toBatch struct{ handler worker.BatchHandler }

func (b toBatch) Write(ctx context.Context, _ string, entries []engine.LogEntry) (refused int, reason, err error) {
	ds := make([]forebay.Delivery, len(entries))
	for i := range entries {
		ds[i] = forebay.Delivery{Message: entries[i].Message, Attempt: 1, Deliveries: 1, SentAt: entries[i].SentAt}
	}
	for _, one := range b.handler.HandleBatch(ctx, ds) {
		switch {
		case one == nil:
		case forebay.IsPermanent(one):
			refused, reason = refused+1, one
		default:
			return 0, nil, one
		}
	}
	return refused, reason, ctx.Err()
}
