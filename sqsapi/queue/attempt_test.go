package queue_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

func attempt(id string) func(*queue.ReceiveInput) {
	return func(in *queue.ReceiveInput) { in.ReceiveRequestAttemptId = id }
}

func TestReceiveAttempt(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g-1", "g-2")
		first := v.receive(q, attempt("1"), most(1))
		v.bodies(first, "g-1")
		time.Sleep(20 * time.Second)
		again := v.receive(q, attempt("1"), most(1))
		v.bodies(again, "g-1")
		if again[0].ReceiptHandle != first[0].ReceiptHandle || again[0].Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("first %+v, again %+v", first[0], again[0])
		}
		time.Sleep(20 * time.Second)
		v.bodies(v.receive(q, attempt("2"))) // the visibility began anew
		v.fine(v.remove(q, first[0]))
		v.bodies(v.receive(q, attempt("1")), "g-2") // what was changed is received anew
		_, err := v.s.ReceiveMessage(v.ctx, queue.ReceiveInput{QueueUrl: q, ReceiveRequestAttemptId: "a b"})
		v.refused(err, "InvalidParameterValueException")
		v.create("a")
		_, err = v.s.ReceiveMessage(v.ctx, queue.ReceiveInput{QueueUrl: "a", ReceiveRequestAttemptId: "x"})
		v.refused(err, "InvalidParameterValueException")
	})
}

func TestReceiveAttemptIsForgottenAfterFiveMinutes(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g-1", "h-1")
		v.bodies(v.receive(q, attempt("1"), most(1), hidden(3600)), "g-1")
		time.Sleep(5 * time.Minute)
		v.bodies(v.receive(q, attempt("1"), most(1), hidden(3600)), "h-1")
	})
}

func TestFirstReceive(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		v.send(q, "x")
		time.Sleep(5 * time.Second)
		first := v.one(q, "x").Attributes["ApproximateFirstReceiveTimestamp"]
		time.Sleep(time.Minute)
		m := v.one(q, "x")
		if is := m.Attributes["ApproximateFirstReceiveTimestamp"]; is != first || is <= m.Attributes["SentTimestamp"] {
			t.Errorf("first at %s, then told %s", first, is)
		}
	})
}
