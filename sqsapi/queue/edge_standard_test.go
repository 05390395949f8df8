package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// The tests named TestEdge are the behaviour that was recorded against AWS, by its
// number in the list.

func TestEdge01StandardDeletesByAnExpiredHandle(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "VisibilityTimeout", "1")
		v.send(q, "x")
		m := v.one(q, "x")
		time.Sleep(2 * time.Second)
		v.fine(v.hide(q, m, 5)) // 200, and it stays visible
		v.fine(v.remove(q, m))
		v.bodies(v.receive(q))
	})
}

func TestEdge01StandardActsByAnOlderHandle(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "VisibilityTimeout", "1")
		v.send(q, "x")
		old := v.one(q, "x")
		time.Sleep(2 * time.Second)
		again := v.one(q, "x", hidden(600))
		v.bodies(v.receive(q))
		v.fine(v.hide(q, old, 0))
		third := v.one(q, "x", hidden(600))
		if third.ReceiptHandle == again.ReceiptHandle || third.ReceiptHandle == old.ReceiptHandle {
			t.Error("each receive has its own handle")
		}
		v.fine(v.remove(q, old))
		time.Sleep(time.Hour)
		v.bodies(v.receive(q))
	})
}

func TestEdge03Handles(t *testing.T) {
	bubble(t, func(v *env) {
		a, b := v.create("a"), v.create("b")
		v.send(a, "x")
		m := v.one(a, "x")
		for name, handle := range map[string]string{
			"garbage": "garbage", "blank": " ", "long": strings.Repeat("A", 5000), "not base64": "!!!!",
			"a letter changed": flipped(m.ReceiptHandle, len(m.ReceiptHandle)/2), "the mac changed": flipped(m.ReceiptHandle, 0),
			"cut": m.ReceiptHandle[:len(m.ReceiptHandle)-4],
		} {
			bad := queue.Message{ReceiptHandle: handle}
			if f := v.refused(v.remove(a, bad), "ReceiptHandleIsInvalid"); f == nil {
				t.Errorf("%s: accepted", name)
			}
			v.refused(v.hide(a, bad, 1), "ReceiptHandleIsInvalid")
		}
		v.refused(v.remove(a, queue.Message{}), "MissingRequiredParameterException")
		v.refused(v.remove(b, m), "ReceiptHandleIsInvalid") // it is of another queue
		v.fine(v.remove(a, m))
		v.fine(v.remove(a, m))
		v.refused(v.hide(a, m, 10), "InvalidParameterValueException")
	})
}

func flipped(s string, at int) string {
	c := byte('A')
	if s[at] == c {
		c = 'B'
	}
	return s[:at] + string(c) + s[at+1:]
}

func TestEdge04LimitsOfAReceive(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		for _, with := range []func(*queue.ReceiveInput){most(11), most(0), most(-1), wait(21), wait(-1), hidden(-1), hidden(43_201)} {
			in := queue.ReceiveInput{QueueUrl: q}
			with(&in)
			_, err := v.s.ReceiveMessage(v.ctx, in)
			v.refused(err, "InvalidParameterValueException")
		}
		_, err := v.s.ReceiveMessage(v.ctx, queue.ReceiveInput{QueueUrl: q, SystemAttributeNames: []string{"Nothing"}})
		v.refused(err, "InvalidAttributeName")
	})
}

func TestEdge11GroupIDOnAStandardQueue(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		v.send(q, "1", group("tenant"))
		v.send(q, "2", group("tenant"))
		// Both at once: a group bounds nothing here.
		first, second := v.one(q, "1", most(1)), v.one(q, "2", most(1))
		for _, m := range []queue.Message{first, second} {
			if m.Attributes["MessageGroupId"] != "tenant" || m.Attributes["SequenceNumber"] != "" {
				t.Errorf("got %v", m.Attributes)
			}
		}
		_, err := v.trySend(q, "x", group("a b"))
		v.refused(err, "InvalidParameterValueException")
		_, err = v.trySend(q, "x", dedup("d"))
		v.refused(err, "InvalidParameterValueException")
	})
}

func TestEdge12EmptyBodyAndEmptyAttribute(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		_, err := v.trySend(q, "")
		v.refused(err, "MissingRequiredParameterException")
		_, err = v.trySend(q, "x", text("k", ""))
		if f := v.refused(err, "InvalidParameterValueException"); !strings.Contains(f.Message, "must contain a non-empty value of type 'String'") {
			t.Errorf("says %q", f.Message)
		}
		v.bodies(v.receive(q))
	})
}

func TestVisibilityTimeouts(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "VisibilityTimeout", "10")
		v.send(q, "x")
		m := v.one(q, "x")
		time.Sleep(9 * time.Second)
		v.fine(v.hide(q, m, 20))
		time.Sleep(19 * time.Second)
		v.bodies(v.receive(q))
		time.Sleep(2 * time.Second)
		m = v.one(q, "x")
		v.fine(v.hide(q, m, 0))
		m = v.one(q, "x", hidden(0))
		if n := m.Attributes["ApproximateReceiveCount"]; n != "3" {
			t.Errorf("received %s times", n)
		}
		v.one(q, "x")
	})
}

func TestVisibilityEndsAfterTwelveHoursInAll(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		v.send(q, "x")
		m := v.one(q, "x")
		v.fine(v.hide(q, m, 43_200))
		time.Sleep(time.Hour)
		v.refused(v.hide(q, m, 43_200), "InvalidParameterValueException")
		v.fine(v.hide(q, m, 43_200-3600))
		time.Sleep(11*time.Hour - time.Second)
		v.bodies(v.receive(q))
		time.Sleep(2 * time.Second)
		v.one(q, "x")
	})
}

func TestDelays(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a", "DelaySeconds", "10")
		v.send(q, "queue's")
		v.send(q, "none", delay(0))
		v.send(q, "own", delay(900))
		v.bodies(v.receive(q), "none")
		if n := v.attribute(q, "ApproximateNumberOfMessagesDelayed"); n != "2" {
			t.Errorf("%s are delayed", n)
		}
		v.bodies(v.receive(q, wait(20)), "queue's")
		time.Sleep(900 * time.Second)
		v.receive(q)
		_, err := v.trySend(q, "x", delay(901))
		v.refused(err, "InvalidParameterValueException")
		_, err = v.trySend(q, "x", delay(-1))
		v.refused(err, "InvalidParameterValueException")
	})
}
