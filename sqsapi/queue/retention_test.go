package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

func TestRetention(t *testing.T) {
	bubble(t, func(v *env) {
		for _, q := range []string{v.create("a", "MessageRetentionPeriod", "60"), v.create("a.fifo", "MessageRetentionPeriod", "60")} {
			send := func(body string) {
				if q == "a.fifo" {
					v.sendTo(q, body)
				} else {
					v.send(q, body)
				}
			}
			time.Sleep(time.Second) // beside the sweeps, which hold messages for a moment
			send("g-1")
			time.Sleep(30 * time.Second)
			send("g-2")
			time.Sleep(30 * time.Second)
			v.bodies(v.receive(q), "g-2")
			time.Sleep(30 * time.Second) // its lease ends as its time does
			v.bodies(v.receive(q, wait(5)))
		}
	})
}

func TestRetentionRemovesWhatNobodyReceives(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "MessageRetentionPeriod", "3600")
		for i := range 120 {
			_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: entries(10, fmt.Sprint(i))})
			v.fine(err)
		}
		time.Sleep(30 * time.Minute)
		m := v.send(q, "younger")
		time.Sleep(35 * time.Minute)
		if n := v.waiting(q); n != "1" {
			t.Errorf("%s are left", n)
		}
		got := v.one(q, "younger")
		if got.MessageId != m.MessageId || got.Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("the sweep counted as a receive: %v", got.Attributes)
		}
		v.fine(v.hide(q, got, 0))
		v.fine(v.set(q, "MessageRetentionPeriod", "60")) // lowering it removes
		time.Sleep(2 * time.Minute)
		if n := v.waiting(q); n != "0" {
			t.Errorf("%s are left", n)
		}
	})
}

// A message of a standard queue is as old in the dead letter queue as it was.
func TestRetentionInTheDeadLetterQueue(t *testing.T) {
	bubble(t, func(v *env) {
		dead := v.create("dead", "MessageRetentionPeriod", "120")
		q := v.create("a", "RedrivePolicy", policyTo("dead", 1))
		v.send(q, "x")
		time.Sleep(100 * time.Second)
		v.receive(q, hidden(0))
		v.bodies(v.receive(q))
		time.Sleep(15 * time.Second)
		v.one(dead, "x", hidden(0))
		time.Sleep(10 * time.Second)
		v.bodies(v.receive(dead))
	})
}
