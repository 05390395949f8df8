package sqs

import (
	"context"
	"slices"
	"strconv"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
)

// poll makes one ReceiveMessage. When ctx ends, it may still answer for a grace; what
// it brings then is given back.
func (e *Engine) poll(ctx context.Context, q *queue, limit int, wait, lease time.Duration) ([]forebay.Delivery, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+e.cfg.Watchdog)
	defer cancel()
	unhook := context.AfterFunc(ctx, func() {
		if e.cfg.Grace > 0 {
			time.AfterFunc(e.cfg.Grace, cancel)
		} else {
			cancel()
		}
	})
	defer unhook()
	whole := seconds(lease)
	in := &awssqs.ReceiveMessageInput{
		QueueUrl: &q.url, MaxNumberOfMessages: int32(limit), WaitTimeSeconds: int32(wait / time.Second), VisibilityTimeout: int32(whole),
		MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{ // no more than is read
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp,
			types.MessageSystemAttributeNameMessageGroupId,
		},
	}
	began := time.Now() // before the request: SQS cannot have begun to count the leases earlier
	var try attempt
	if q.fifo {
		try = q.polls.attempt(began)
		in.ReceiveRequestAttemptId = &try.id
	}
	options := []func(*awssqs.Options){once}
	if in.WaitTimeSeconds == 0 {
		options = append(options, short)
	}
	out, err := e.client.ReceiveMessage(call, in, options...)
	if err != nil {
		return nil, e.unpolled(ctx, call, q, try, err)
	}
	e.count.received.Add(int64(len(out.Messages)))
	if len(out.Messages) == 0 {
		e.count.empty.Add(1)
		return nil, nil
	}
	return e.taken(ctx, q, out.Messages, began, time.Duration(whole)*time.Second)
}

// unpolled books a poll that failed.
func (e *Engine) unpolled(ctx, call context.Context, q *queue, try attempt, err error) error {
	if q.fifo && !answered(err) {
		q.polls.lost(try)
	}
	if ctx.Err() != nil {
		return ctx.Err() // cut by us
	}
	if call.Err() != nil {
		e.count.cut.Add(1)
		e.fresh()
		err := forebay.Errorf(forebay.CodeUnavailable, "sqs: receive", "SQS did not answer by the end of the wait")
		e.count.failed(err)
		return err
	}
	err = fail("receive", err)
	e.count.failed(err)
	return err
}

// taken makes deliveries of what a poll brought.
func (e *Engine) taken(ctx context.Context, q *queue, raw []types.Message, began time.Time, span time.Duration) ([]forebay.Delivery, error) {
	got := make([]*lease, len(raw))
	for i := range raw {
		got[i] = &lease{q: q, raw: &raw[i], handle: deref(raw[i].ReceiptHandle), messageID: deref(raw[i].MessageId),
			received: began, set: began, deadline: began.Add(span)}
	}
	if ctx.Err() != nil {
		e.count.givenBack.Add(int64(len(got)))
		e.release(got)
		return nil, ctx.Err()
	}
	got = e.sortOut(got)
	if time.Since(began) > span/4 {
		got = e.renew(ctx, got, span)
	}
	now := time.Now()
	ds := make([]forebay.Delivery, 0, len(got))
	for _, l := range got {
		d := forebay.Delivery{Message: q.decode(l.raw), LeaseUntil: l.deadline, SentAt: now}
		d.Deliveries = max(1, l.number(types.MessageSystemAttributeNameApproximateReceiveCount))
		d.Attempt = d.Deliveries
		if ms := l.number(types.MessageSystemAttributeNameSentTimestamp); ms > 0 {
			d.SentAt = time.UnixMilli(int64(ms))
		}
		if d.Kind == testEvent && q.unwrap.S3 {
			e.count.testEvents.Add(1)
			e.drop([]*lease{l})
			continue
		}
		d.Receipt = e.leases.add(l, now)
		ds = append(ds, d)
	}
	return ds, nil
}

func (l *lease) number(name types.MessageSystemAttributeName) int {
	n, err := strconv.Atoi(l.raw.Attributes[string(name)])
	if err != nil {
		return 0
	}
	return n
}

// sortOut deletes what was done already, as far as we know.
func (e *Engine) sortOut(got []*lease) []*lease {
	var again, left []*lease
	for _, l := range got {
		if e.doomed.has(l.messageID) {
			again = append(again, l)
		} else {
			left = append(left, l)
		}
	}
	if len(again) > 0 {
		e.count.ackLost.Add(int64(len(again)))
		e.drop(again)
	}
	return left
}

// renew sets the leases anew of messages for which a poll has waited long: they are
// counted from before it, and would be short.
func (e *Engine) renew(ctx context.Context, got []*lease, span time.Duration) []*lease {
	began := time.Now()
	items := make([]*handleItem, len(got))
	for i, l := range got {
		items[i] = &handleItem{q: l.q, handle: l.handle, seconds: int(span / time.Second), deadline: began}
	}
	if e.handles(ctx, items) != nil {
		return nil // who waited has left; Close or the end of the leases frees them
	}
	left := got[:0]
	var behind []*lease // of groups whose order a lost one has broken
	stopped := make(map[string]bool)
	for i, l := range got {
		group := l.raw.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
		switch err := items[i].outcome(); {
		case l.q.fifo && stopped[group]:
			behind = append(behind, l)
		case err == nil:
			l.set, l.deadline = began, began.Add(span)
			left = append(left, l)
		case passing(err) && time.Now().Before(l.deadline):
			left = append(left, l)
		default:
			e.count.leaseLost.Add(1)
			stopped[group] = true
		}
	}
	if len(behind) > 0 {
		e.count.givenBack.Add(int64(len(behind)))
		slices.Reverse(behind) // the last first: none is free before those that come after it
		e.release(behind)
	}
	return left
}

// handTimeout bounds what is tidied up beside a poll.
const handTimeout = 2 * time.Second

// release makes messages visible again that nobody takes.
func (e *Engine) release(got []*lease) {
	ctx, cancel := context.WithTimeout(e.base, handTimeout)
	defer cancel()
	items := make([]*handleItem, len(got))
	for i, l := range got {
		items[i] = &handleItem{q: l.q, handle: l.handle, deadline: l.deadline}
	}
	_ = e.handles(ctx, items) // else their leases end
}

// drop deletes messages that nobody is to have.
func (e *Engine) drop(got []*lease) {
	ctx, cancel := context.WithTimeout(e.base, handTimeout)
	defer cancel()
	items := make([]*handleItem, len(got))
	for i, l := range got {
		items[i] = &handleItem{q: l.q, handle: l.handle, deadline: l.deadline, remove: true}
	}
	_ = e.handles(ctx, items) // else they come again
	for i, l := range got {
		if items[i].outcome() == nil {
			e.doomed.remove(l.messageID)
		}
	}
}
