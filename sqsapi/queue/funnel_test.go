package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

func itoa(n int) string { return fmt.Sprint(n) }

func TestFifoNumbersGrowInTheOrderOfStoring(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		var mu sync.Mutex
		numbers := map[string]string{}
		var all sync.WaitGroup
		for c := range 20 {
			all.Go(func() {
				for n := range 20 {
					body := fmt.Sprintf("%d-%d", c, n)
					out, err := v.trySend(q, body, group("g"), dedup(body))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					numbers[body] = out.SequenceNumber
					mu.Unlock()
				}
			})
		}
		all.Wait()
		last, n, next := "", 0, map[string]int{}
		for got := v.receive(q); len(got) > 0; got = v.receive(q) {
			for _, m := range got {
				number := m.Attributes["SequenceNumber"]
				if number <= last || number != numbers[m.Body] {
					t.Errorf("%s has %s after %s; its sender was told %s", m.Body, number, last, numbers[m.Body])
				}
				var c, at int
				fmt.Sscanf(m.Body, "%d-%d", &c, &at)
				if at != next[itoa(c)] {
					t.Errorf("of sender %d message %d came, want %d", c, at, next[itoa(c)])
				}
				next[itoa(c)]++
				last = number
				n++
				v.fine(v.remove(q, m))
			}
		}
		if n != 400 {
			t.Errorf("%d of 400 came", n)
		}
	})
}

// stuck is an engine whose sends wait for a signal.
type stuck struct {
	engine.Engine
	begun   chan int
	release chan struct{}
}

func (s *stuck) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	s.begun <- len(msgs)
	<-s.release
	return s.Engine.Send(ctx, msgs)
}

func (s *stuck) Unwrap() engine.Engine { return s.Engine }

func TestFifoSendsGather(t *testing.T) {
	bubble(t, func(v *env) {
		e := &stuck{Engine: v.e, begun: make(chan int, 10), release: make(chan struct{})}
		s, err := queue.New(queue.Config{Engine: e})
		v.fine(err)
		v.s = s
		q := v.create("a.fifo")
		var all sync.WaitGroup
		send := func(ctx context.Context, id string, want error) {
			all.Go(func() {
				in := queue.SendInput{QueueUrl: q, MessageBody: id, MessageGroupId: &id, MessageDeduplicationId: &id}
				if _, err := v.s.SendMessage(ctx, in); err != want {
					t.Errorf("%s: %v, want %v", id, err, want)
				}
			})
		}
		left, leave := context.WithCancel(v.ctx)
		send(left, "leads-and-leaves", nil) // the others' messages, and its own, go on
		if n := <-e.begun; n != 1 {
			t.Errorf("%d at first", n)
		}
		leave()
		gone, goes := context.WithCancel(v.ctx)
		send(gone, "leaves-while-it-waits", context.Canceled)
		time.Sleep(time.Second)
		goes()
		for i := range 5 {
			send(v.ctx, itoa(i), nil)
		}
		time.Sleep(time.Second)
		e.release <- struct{}{}
		if n := <-e.begun; n != 5 {
			t.Errorf("then %d", n)
		}
		e.release <- struct{}{}
		all.Wait()
		if n := len(v.receive(q)); n != 6 {
			t.Errorf("%d were stored", n)
		}
	})
}
