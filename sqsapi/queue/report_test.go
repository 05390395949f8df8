package queue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// The tests named TestReport are what users of other servers reported, by its number
// in the list, here and in content_test.go, restart_test.go, redrive_test.go and
// edge_*_test.go. What is of the protocols (2, 3, 4 and 20) is shown in package sqsapi.
// 23 is also TestEdge09FifoDedupByGroup and TestEdge01, 24 TestEdge13 and TestRedriveCounts.

// counted counts what an engine is asked for.
type counted struct {
	engine.Engine
	receives, sends atomic.Int64
}

func (c *counted) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	c.sends.Add(1)
	return c.Engine.Send(ctx, msgs)
}

func (c *counted) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	c.receives.Add(1)
	return c.Engine.Receive(ctx, r)
}

func (c *counted) Unwrap() engine.Engine { return c.Engine }

// count puts a counter between the service and the engine.
func (v *env) count() *counted {
	v.Helper()
	c := &counted{Engine: v.e}
	s, err := queue.New(queue.Config{Engine: c})
	v.fine(err)
	v.s = s
	return c
}

func TestReport02And03EveryShapeHasItsQueryCode(t *testing.T) {
	for shape, want := range map[string]string{
		"QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue", "QueueNameExists": "QueueAlreadyExists",
		"InvalidParameterValueException": "InvalidParameterValue", "MissingRequiredParameterException": "MissingParameter",
		"ReceiptHandleIsInvalid": "ReceiptHandleIsInvalid", "InvalidAttributeName": "InvalidAttributeName",
		"BatchRequestTooLong": "AWS.SimpleQueueService.BatchRequestTooLong", "OverLimit": "OverLimit",
	} {
		f := queue.Fault{Shape: shape}
		if code, _, sender := f.Describe(); code != want || !sender {
			t.Errorf("%s has the code %s", shape, code)
		}
	}
}

func TestReport06FairQueuesTakeAGroupID(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		in := entries(2, "x")
		in[0].MessageGroupId = new("tenant")
		out, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: in})
		v.fine(err)
		if len(out.Failed) > 0 {
			t.Errorf("got %+v", out.Failed)
		}
	})
}

// A queue with a group id can be held to so many in flight for each, by the engine's limits.
func TestFairQueueByTheLimitsOfTheEngine(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		limiter, _ := engine.As[engine.Limiter](v.e)
		v.fine(limiter.SetLimits(v.ctx, q, engine.QueueLimits{KeyActive: 1}))
		v.send(q, "noisy 1", group("noisy"))
		v.send(q, "noisy 2", group("noisy"))
		v.send(q, "quiet", group("quiet"))
		v.bodies(v.receive(q), "noisy 1", "quiet")
	})
}

func TestReport08And17ASendWakesALongPoll(t *testing.T) {
	bubble(t, func(v *env) {
		for _, q := range []string{v.create("a"), v.create("a.fifo", "ContentBasedDeduplication", "true")} {
			start := time.Now()
			go func() {
				time.Sleep(3 * time.Second)
				if _, err := v.trySend(q, "x", group("g")); err != nil {
					t.Error(err)
				}
			}()
			v.one(q, "x", wait(20))
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("%s: woken after %s", q, took)
			}
		}
	})
}

func TestReport10MessagesAreSeenWithoutAReceive(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		v.send(q, "x", text("k", "v"))
		peeker, _ := engine.As[engine.Peeker](v.e)
		page, err := peeker.Peek(v.ctx, engine.PeekQuery{Queue: q})
		v.fine(err)
		if len(page.Messages) != 1 || string(page.Messages[0].Message.Payload) != "x" {
			t.Errorf("got %+v", page)
		}
		if m := v.one(q, "x"); m.Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("got %v", m.Attributes)
		}
	})
}

func TestReport15ManyConsumersOnABacklog(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		for range 100 {
			_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: entries(10, "x")})
			v.fine(err)
		}
		var n atomic.Int64
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				for got := v.receive(q); len(got) > 0; got = v.receive(q) {
					n.Add(int64(len(got)))
				}
			})
		}
		all.Wait()
		if n.Load() != 1000 {
			t.Errorf("30 consumers received %d of 1000", n.Load())
		}
	})
}

func TestReport16LongPollsDoNotTick(t *testing.T) {
	bubble(t, func(v *env) {
		c := v.count()
		q := v.create("a")
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { v.bodies(v.receive(q, wait(20))) })
		}
		all.Wait()
		if n := c.receives.Load(); n != 1000 {
			t.Errorf("1000 idle polls of 20 s asked the engine %d times", n)
		}
	})
}

func TestReport18ABatchIsOneCallOfTheEngine(t *testing.T) {
	bubble(t, func(v *env) {
		c := v.count()
		for _, q := range []string{v.create("a"), v.create("a.fifo", "ContentBasedDeduplication", "true")} {
			in := entries(10, "x")
			for i := range in {
				in[i].MessageGroupId, in[i].MessageBody = new("g"), itoa(i)
			}
			_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: in})
			v.fine(err)
			if n := len(v.receive(q)); n != 10 {
				t.Errorf("received %d", n)
			}
			if sends, receives := c.sends.Swap(0), c.receives.Swap(0); sends != 1 || receives != 1 {
				t.Errorf("%s: %d sends and %d receives", q, sends, receives)
			}
		}
	})
}

func TestReport20AQueueIsFoundByAnyURLOfIt(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("a")
		for _, url := range []string{"a", "http://localhost:9324/000000000000/a", "https://sqs.us-east-1.amazonaws.com/123456789012/a", "http://x/a/", "/a"} {
			v.send(url, url)
			v.one(url, url)
		}
	})
}

func TestReport21MaximumMessageSize(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "MaximumMessageSize", "1024")
		_, err := v.trySend(q, string(make([]byte, 1025)))
		v.refused(err, "InvalidParameterValueException")
		v.fine(v.set(q, "MaximumMessageSize", "2048"))
		_, err = v.trySend(q, fmt.Sprintf("%01025d", 0))
		v.fine(err)
	})
}

func TestReport22SenderIsTheCaller(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		v.send(q, "nobody")
		_, err := v.s.SendMessage(queue.WithCaller(v.ctx, "AKIDEXAMPLE"), queue.SendInput{QueueUrl: q, MessageBody: "somebody"})
		v.fine(err)
		got := v.receive(q)
		if a, b := got[0].Attributes["SenderId"], got[1].Attributes["SenderId"]; a != "000000000000" || b != "AKIDEXAMPLE" {
			t.Errorf("sent by %s and %s", a, b)
		}
	})
}

func TestReport24AbsurdNumbersAreRefused(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		v.send(q, "x")
		m := v.one(q, "x")
		for _, n := range []int{-1, -1 << 62, 1 << 62, 43_201} {
			v.refused(v.hide(q, m, n), "InvalidParameterValueException")
			_, err := v.s.ReceiveMessage(v.ctx, queue.ReceiveInput{QueueUrl: q, VisibilityTimeout: &n, WaitTimeSeconds: &n, MaxNumberOfMessages: &n})
			v.refused(err, "InvalidParameterValueException")
			_, err = v.trySend(q, "x", delay(n))
			v.refused(err, "InvalidParameterValueException")
		}
	})
}
