package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// queue is what is known here of one queue.
type queue struct {
	name   string
	url    string
	fifo   bool
	unwrap Unwrap

	sends   *tens[*sendItem]
	deletes *tens[*handleItem]
	changes *tens[*handleItem]
	polls   polls
	later   later

	sent, completed, cancelled, expired atomic.Int64

	mu   sync.Mutex // guards those below
	dead string     // URL of the queue of its dead letters, once known
	said bool       // that groups have no order here
}

func (e *Engine) newQueue(name, url string) *queue {
	q := &queue{name: name, url: url, fifo: isFIFO(url), unwrap: e.cfg.Unwrap[name]}
	q.sends = newTens(e, func(ctx context.Context, batch []*sendItem) { e.sendBatch(ctx, q, batch) })
	q.deletes = newTens(e, func(ctx context.Context, batch []*handleItem) { e.deleteBatch(ctx, q, batch) })
	q.changes = newTens(e, func(ctx context.Context, batch []*handleItem) { e.changeBatch(ctx, q, batch) })
	q.polls.most = e.cfg.Polls
	return q
}

func newTens[T item](e *Engine, call func(context.Context, []T)) *tens[T] {
	return &tens[T]{call: call, width: e.cfg.Calls, base: e.base, timeout: e.cfg.Timeout, lanes: make(map[string]*lane[T])}
}

func (q *queue) wait() {
	q.sends.wait()
	q.deletes.wait()
	q.changes.wait()
}

// find gives a queue by its name, and makes it where the configuration says so.
func (e *Engine) find(ctx context.Context, name string) (*queue, error) {
	if q := e.look(name); q != nil {
		return q, nil
	}
	if err := engine.CheckQueue(name); err != nil {
		return nil, err
	}
	if !e.cfg.Create {
		err := forebay.Errorf(forebay.CodeNotFound, "sqs", "no queue of SQS is named for %q", name)
		err.Field, err.Hint = "queue", "give its URL in the settings"
		return nil, err
	}
	select {
	case e.making <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-e.making }()
	if q := e.look(name); q != nil {
		return q, nil
	}
	url, err := e.create(ctx, name)
	if err != nil {
		return nil, err
	}
	q := e.newQueue(name, url)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queues[name] = q
	return q, nil
}

func (e *Engine) look(name string) *queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queues[name]
}

// create makes a queue and one for its dead letters. SQS itself moves messages only
// after a thousand hand-outs: how often is enough is the broker's to say.
func (e *Engine) create(ctx context.Context, name string) (url string, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	stem, fifo := strings.CutSuffix(name, ".fifo")
	attributes := map[string]string{"MessageRetentionPeriod": "1209600"}
	cut := func(end string) string { return stem[:min(len(stem), forebay.MaxQueueBytes-len(end))] + end }
	dead := cut("-dead")
	if fifo || e.cfg.CreateFIFO {
		name, dead = cut(".fifo"), cut("-dead.fifo")
		attributes["FifoQueue"] = "true"
	}
	made, err := e.createOne(ctx, dead, attributes)
	if err != nil {
		return "", err
	}
	known, err := e.attributes(ctx, made, types.QueueAttributeNameQueueArn)
	if err != nil {
		return "", err
	}
	attributes["ReceiveMessageWaitTimeSeconds"] = "20"
	attributes["MessageRetentionPeriod"] = "1209540"
	attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"1000"}`, known["QueueArn"])
	return e.createOne(ctx, name, attributes)
}

// createOne makes a queue; one that is there, whatever its attributes, is taken.
func (e *Engine) createOne(ctx context.Context, name string, attributes map[string]string) (string, error) {
	out, err := e.client.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err == nil {
		return deref(out.QueueUrl), nil
	}
	var exists *types.QueueNameExists
	if errors.As(err, &exists) {
		return e.urlOf(ctx, name, "")
	}
	e.count.failed(fail("create queue", err))
	return "", fail("create queue", err)
}

func (e *Engine) urlOf(ctx context.Context, name, account string) (string, error) {
	in := &awssqs.GetQueueUrlInput{QueueName: &name}
	if account != "" {
		in.QueueOwnerAWSAccountId = &account
	}
	out, err := e.client.GetQueueUrl(ctx, in)
	if err != nil {
		return "", fail("find queue", err)
	}
	return deref(out.QueueUrl), nil
}

func (e *Engine) attributes(ctx context.Context, url string, names ...types.QueueAttributeName) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	out, err := e.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		err = fail("attributes", err)
		e.count.failed(err)
		return nil, err
	}
	return out.Attributes, nil
}

// once is the AWS SDK's client without repeats of its own: who uses it repeats.
func once(o *awssqs.Options) { o.Retryer = aws.NopRetryer{} }

// later counts what this process has put off: for SQS it is in flight.
type later struct {
	mu  sync.Mutex
	due []time.Time // bounded; in no order
}

// maxLater is how many messages a queue may have in flight on SQS.
const maxLater = 120_000

func (l *later) add(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.due) < maxLater {
		l.due = append(l.due, until)
	}
}

func (l *later) count(now time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.due[:0]
	for _, t := range l.due {
		if t.After(now) {
			left = append(left, t)
		}
	}
	l.due = left
	return int64(len(left))
}
