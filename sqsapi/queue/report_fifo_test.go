package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

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

func TestReport07DedupOutlivesTheDelete(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "ContentBasedDeduplication", "true")
		v.send(q, "x", group("g"))
		v.fine(v.remove(q, v.one(q, "x")))
		v.send(q, "x", group("g"))
		v.bodies(v.receive(q, wait(5)))
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
