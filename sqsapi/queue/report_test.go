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
// in the list. Those of the protocols (2, 3, 4 and 20) are in package sqsapi; 5, 1 MiB,
// is in content_test.go, and 9, restarts, in restart_test.go.

// counted counts the receives that an engine is asked for.
type counted struct {
	engine.Engine
	receives atomic.Int64
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

func TestReport01FifoReadsDoNotScanWhatIsRetained(t *testing.T) {
	bubble(t, func(v *env) {
		c := v.count()
		q := v.create("a.fifo", "ContentBasedDeduplication", "true")
		var in []queue.SendInput
		for i := range 5000 {
			in = append(in, queue.SendInput{ID: fmt.Sprint(i % 10), MessageBody: fmt.Sprint(i), MessageGroupId: new(fmt.Sprint(i % 1000))})
			if len(in) == 10 {
				_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: in})
				v.fine(err)
				in = in[:0]
			}
		}
		for n := range 100 { // each takes what nobody holds; those before stay locked
			got := v.receive(q)
			v.bodies(got[:1], fmt.Sprint(n*10))
		}
		if n := c.receives.Load(); n != 100 {
			t.Errorf("100 receives asked the engine %d times", n)
		}
	})
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

func TestReport07DedupOutlivesTheDelete(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "ContentBasedDeduplication", "true")
		v.send(q, "x", group("g"))
		v.fine(v.remove(q, v.one(q, "x")))
		v.send(q, "x", group("g"))
		v.bodies(v.receive(q, wait(5)))
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

func TestReport11And12TwoReceiversNeverHoldOneGroup(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		for i := range 200 {
			v.send(q, fmt.Sprint(i), group(fmt.Sprint(i%7)), dedup(fmt.Sprint(i)))
		}
		var mu sync.Mutex
		held, next, seen := map[string]bool{}, map[string]int{}, 0
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					got := v.receive(q, wait(5))
					if len(got) == 0 {
						return
					}
					mine := map[string]bool{}
					mu.Lock()
					for _, m := range got {
						g := m.Attributes["MessageGroupId"]
						if held[g] && !mine[g] {
							t.Errorf("group %s is with two", g)
						}
						held[g], mine[g] = true, true
						if want := next[g]*7 + int(g[0]-'0'); m.Body != fmt.Sprint(want) {
							t.Errorf("group %s: got %s, want %d", g, m.Body, want)
						}
						next[g]++
						seen++
					}
					mu.Unlock()
					time.Sleep(100 * time.Millisecond)
					mu.Lock()
					for g := range mine {
						held[g] = false
					}
					mu.Unlock()
					for _, m := range got {
						if err := v.remove(q, m); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		all.Wait()
		if seen != 200 {
			t.Errorf("%d were received", seen)
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

func TestReport23ADelayedMessageDoesNotHoldUpThoseBefore(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "DelaySeconds", "10")
		v.sendTo(q, "g-1")
		v.bodies(v.receive(q))
		time.Sleep(10 * time.Second)
		v.sendTo(q, "g-2")
		m := v.one(q, "g-1")
		v.fine(v.remove(q, m))
		v.bodies(v.receive(q))
		v.bodies(v.receive(q, wait(20)), "g-2")
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
