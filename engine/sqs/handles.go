package sqs

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
)

// handling is a number of deletes or changes of visibility that somebody waits for.
type handling struct {
	ctx  context.Context
	left atomic.Int64
	done chan struct{}
}

// handleItem is one of them. err is what became of it, once told is true.
type handleItem struct {
	q        *queue
	handle   string
	seconds  int       // of a change
	deadline time.Time // up to which it is worth to be repeated
	remove   bool      // it is a delete

	of   *handling
	err  error
	told atomic.Bool
}

func (h *handleItem) lane() string { return "" }
func (h *handleItem) bytes() int   { return 0 }

func (h *handleItem) skip() bool {
	h.err = h.of.ctx.Err()
	return h.err != nil
}

func (h *handleItem) finish() {
	h.told.Store(true)
	if h.of.left.Add(-1) == 0 {
		close(h.of.done)
	}
}

// outcome tells what became of an item; one that nobody waited for to the end is
// unavailable.
func (h *handleItem) outcome() error {
	if !h.told.Load() {
		return forebay.Errorf(forebay.CodeUnavailable, "sqs", "SQS has not answered")
	}
	return h.err
}

// handles does items, and repeats those that SQS may do later, until their deadlines.
// Its error is that of ctx.
func (e *Engine) handles(ctx context.Context, items []*handleItem) error {
	todo := items
	for try := 0; len(todo) > 0; try++ {
		if try > 0 && !pause(ctx, backoff(try, 100*time.Millisecond, 5*time.Second)) {
			return ctx.Err()
		}
		h := &handling{ctx: ctx, done: make(chan struct{})}
		deletes, changes := make(map[*queue][]*handleItem), make(map[*queue][]*handleItem)
		now := time.Now()
		for _, it := range todo {
			if try > 0 && !now.Before(it.deadline) {
				continue // the last answer stays
			}
			it.of = h
			it.told.Store(false)
			h.left.Add(1)
			if it.remove {
				deletes[it.q] = append(deletes[it.q], it)
			} else {
				changes[it.q] = append(changes[it.q], it)
			}
		}
		if h.left.Load() == 0 {
			return nil
		}
		for q, some := range deletes {
			q.deletes.add(some...)
		}
		for q, some := range changes {
			q.changes.add(some...)
		}
		select {
		case <-h.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		var again []*handleItem
		for _, it := range todo {
			if it.of == h && it.err != nil && passing(it.err) {
				again = append(again, it)
			}
		}
		todo = again
	}
	return nil
}

// backoff grows from first to most; its upper half is random.
func backoff(try int, first, most time.Duration) time.Duration {
	d := min(most, first<<min(try-1, 16))
	return d/2 + rand.N(d/2+1)
}

// pause waits; false: ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) deleteBatch(ctx context.Context, q *queue, batch []*handleItem) {
	in := &awssqs.DeleteMessageBatchInput{QueueUrl: &q.url}
	for i, it := range batch {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: new(strconv.Itoa(i)), ReceiptHandle: &it.handle})
	}
	out, err := e.client.DeleteMessageBatch(ctx, in, once)
	var ok []*string
	if err == nil {
		for i := range out.Successful {
			ok = append(ok, out.Successful[i].Id)
		}
		e.count.deleted.Add(int64(len(ok)))
		book(batch, e.answers("delete", len(batch), ok, out.Failed))
		return
	}
	book(batch, e.unanswered("delete", len(batch), err))
}

func (e *Engine) changeBatch(ctx context.Context, q *queue, batch []*handleItem) {
	in := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url}
	for i, it := range batch {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: new(strconv.Itoa(i)), ReceiptHandle: &it.handle, VisibilityTimeout: int32(it.seconds)})
	}
	out, err := e.client.ChangeMessageVisibilityBatch(ctx, in, once)
	var ok []*string
	if err == nil {
		for i := range out.Successful {
			ok = append(ok, out.Successful[i].Id)
		}
		book(batch, e.answers("change visibility", len(batch), ok, out.Failed))
		return
	}
	book(batch, e.unanswered("change visibility", len(batch), err))
}

// book notes what became of handles. What SQS refuses for good has no lease there.
func book(batch []*handleItem, errs []error) {
	for i, it := range batch {
		it.err = errs[i]
		if it.err != nil && !passing(it.err) {
			it.err = forebay.Errorf(forebay.CodeLeaseLost, "sqs", "%w", it.err)
		}
	}
}
