package sqs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
)

// Finding is something about a queue that will hurt one day.
type Finding struct {
	Queue string
	What  string // what is so
	Do    string // what to do about it
}

// Audit reads the settings of the queues, and says what is wrong with them.
func (e *Engine) Audit(ctx context.Context) ([]Finding, error) {
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return nil, err
	}
	defer leave()
	return e.audit(call)
}

func (e *Engine) audit(ctx context.Context) ([]Finding, error) {
	all := e.known()
	slices.SortFunc(all, func(a, b *queue) int { return cmp.Compare(a.name, b.name) })
	var found []Finding
	for _, q := range all {
		some, err := e.auditQueue(ctx, q)
		if err != nil {
			return found, err
		}
		found = append(found, some...)
	}
	return found, nil
}

func (e *Engine) auditQueue(ctx context.Context, q *queue) ([]Finding, error) {
	a, err := e.attributes(ctx, q.url, types.QueueAttributeNameAll)
	if err != nil {
		return nil, err
	}
	var found []Finding
	say := func(do, what string, args ...any) {
		found = append(found, Finding{Queue: q.name, What: fmt.Sprintf(what, args...), Do: do})
	}
	if n, most := number(a, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible), int64(maxLater); n > most*8/10 {
		say("add consumers, or make retries shorter", "%d messages are in flight; SQS stops handing out at about %d", n, most)
	}
	if number(a, types.QueueAttributeNameReceiveMessageWaitTimeSeconds) == 0 {
		say("set ReceiveMessageWaitTimeSeconds to 20", "other consumers than Forebay poll it short, which costs more and misses messages")
	}
	visibility := time.Duration(number(a, types.QueueAttributeNameVisibilityTimeout)) * time.Second
	if e.cfg.HandlerTimeout > visibility {
		say("set VisibilityTimeout above it", "its visibility timeout of %s is below the handlers' timeout of %s: consumers that do not renew leases would do work twice", visibility, e.cfg.HandlerTimeout)
	}
	if q.fifo && a[string(types.QueueAttributeNameFifoThroughputLimit)] != "perMessageGroupId" {
		say("set DeduplicationScope to messageGroup and FifoThroughputLimit to perMessageGroupId", "it takes 300 calls a second in all, not for each group")
	}
	err = e.auditDead(ctx, a, say) // adds to found
	return found, err
}

// auditDead looks at where dead letters go.
func (e *Engine) auditDead(ctx context.Context, a map[string]string, say func(do, what string, args ...any)) error {
	target := parsePolicy(a).Target
	if target == "" {
		say("give it a redrive policy", "it has no redrive policy: a message that always fails goes round until its retention ends")
		return nil
	}
	account, name := splitARN(target)
	url, err := e.urlOf(ctx, name, account)
	if err != nil {
		if forebay.CodeOf(err) == forebay.CodeNotFound {
			say("make the queue, or change the redrive policy", "the queue of its dead letters, %s, does not exist", target)
			return nil
		}
		return err
	}
	d, err := e.attributes(ctx, url, types.QueueAttributeNameAll)
	if err != nil {
		return err
	}
	kept := func(a map[string]string) time.Duration {
		return time.Duration(number(a, types.QueueAttributeNameMessageRetentionPeriod)) * time.Second
	}
	if kept(d) <= kept(a) && !strings.HasSuffix(name, ".fifo") {
		say("set MessageRetentionPeriod of that queue to 14 days", "dead letters are kept for %s, and messages for %s; the time of a dead letter counts from when it was sent", kept(d), kept(a))
	}
	if n := number(d, types.QueueAttributeNameApproximateNumberOfMessages); n > 0 {
		say("look at them, then replay or discard them", "%d dead letters wait in %s", n, name)
	}
	return nil
}

// auditAtOpen warns of what it finds. SQS may be out of reach: then nothing is said.
func (e *Engine) auditAtOpen() {
	ctx, cancel := context.WithTimeout(e.closing, e.cfg.Timeout)
	defer cancel()
	found, _ := e.audit(ctx)
	for _, f := range found {
		e.log.Warn("a queue of SQS: "+f.What, "queue", f.Queue, "do", f.Do)
	}
}
