package sqs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
)

// Stats counts as SQS does: about right, some seconds late. How old the oldest is and
// how many bytes wait, SQS does not tell. With no names it counts the queues that this
// engine knows.
func (e *Engine) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return nil, err
	}
	defer leave()
	if len(queues) == 0 {
		for _, q := range e.known() {
			queues = append(queues, q.name)
		}
		slices.Sort(queues)
	}
	out, errs := make([]forebay.QueueStats, len(queues)), make([]error, len(queues))
	e.beside8(len(queues), func(i int) { out[i], errs[i] = e.statsOf(call, queues[i]) })
	if e.ended(ctx) != nil {
		return nil, e.ended(ctx)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
	}
	return out, nil
}

// beside8 calls f(0) … f(n-1), eight side by side at most.
func (e *Engine) beside8(n int, f func(i int)) {
	var all sync.WaitGroup
	room := make(chan struct{}, 8)
	for i := range n {
		room <- struct{}{}
		all.Go(func() {
			f(i)
			<-room
		})
	}
	all.Wait()
}

func (e *Engine) statsOf(ctx context.Context, name string) (forebay.QueueStats, error) {
	s := forebay.QueueStats{Queue: name}
	q := e.look(name)
	if q == nil {
		return s, nil
	}
	n, err := e.holds(ctx, q.url)
	if err != nil {
		return s, err
	}
	// What we put off is in flight for SQS, and waits for its time for everybody else.
	put := min(n.active, q.later.count(time.Now()))
	s.Waiting, s.Active, s.Delayed = n.waiting, n.active-put, n.delayed+put
	s.Sent, s.Completed, s.Cancelled, s.Expired = q.sent.Load(), q.completed.Load(), q.cancelled.Load(), q.expired.Load()
	dead, err := e.deadLetters(ctx, q)
	if err != nil {
		if forebay.CodeOf(err) == forebay.CodeUnsupported {
			err = nil // it keeps none
		}
		return s, err
	}
	d, err := e.holds(ctx, dead)
	s.Dead = d.waiting + d.active + d.delayed
	return s, err
}

// holding is what a queue of SQS says that it holds.
type holding struct{ waiting, active, delayed int64 }

func (e *Engine) holds(ctx context.Context, url string) (holding, error) {
	a, err := e.attributes(ctx, url, types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible, types.QueueAttributeNameApproximateNumberOfMessagesDelayed)
	return holding{
		waiting: number(a, types.QueueAttributeNameApproximateNumberOfMessages),
		active:  number(a, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible),
		delayed: number(a, types.QueueAttributeNameApproximateNumberOfMessagesDelayed),
	}, err
}

func number(a map[string]string, name types.QueueAttributeName) int64 {
	n, err := strconv.ParseInt(a[string(name)], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Check tells whether SQS answers for all queues that the engine knows.
func (e *Engine) Check(ctx context.Context) error {
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return err
	}
	defer leave()
	all := e.known()
	errs := make([]error, len(all))
	e.beside8(len(all), func(i int) {
		_, errs[i] = e.attributes(call, all[i].url, types.QueueAttributeNameQueueArn)
	})
	if e.ended(ctx) != nil {
		return e.ended(ctx)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Purge drops all messages of a queue. SQS does it once a minute, takes up to a minute
// for it, and drops what is in flight too; dropped is what it said it had.
func (e *Engine) Purge(ctx context.Context, queue string) (dropped int64, err error) {
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return 0, err
	}
	defer leave()
	q := e.look(queue)
	if q == nil {
		return 0, nil
	}
	n, err := e.holds(call, q.url)
	if err != nil {
		return 0, err
	}
	if _, err := e.client.PurgeQueue(call, &awssqs.PurgeQueueInput{QueueUrl: &q.url}); err != nil {
		err = fail("purge", err)
		e.count.failed(err)
		return 0, err
	}
	return n.waiting + n.active + n.delayed, nil
}
