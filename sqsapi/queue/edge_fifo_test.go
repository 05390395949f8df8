package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// sendTo sends bodies to a FIFO queue; the part before the dash is the group.
func (v *env) sendTo(q string, bodies ...string) {
	v.Helper()
	for _, body := range bodies {
		g, _, _ := strings.Cut(body, "-")
		v.send(q, body, group(g), dedup(body))
	}
}

func TestEdge02AndReport13FifoRefusesAnExpiredHandle(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "VisibilityTimeout", "1")
		v.sendTo(q, "g-1")
		m := v.one(q, "g-1")
		time.Sleep(2 * time.Second)
		if f := v.refused(v.remove(q, m), "InvalidParameterValueException"); !strings.Contains(f.Message, "has expired") {
			t.Errorf("says %q", f.Message)
		}
		v.refused(v.hide(q, m, 60), "InvalidParameterValueException")
		m = v.one(q, "g-1")
		v.fine(v.hide(q, m, 60))
		time.Sleep(2 * time.Second)
		v.fine(v.remove(q, m)) // the extension holds
		v.fine(v.remove(q, m))
		v.refused(v.hide(q, m, 60), "InvalidParameterValueException")
	})
}

func TestEdge07FifoTakesGroupByGroupAndLocksThem(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g1-1", "g2-1", "g1-2", "g1-3")
		got := v.receive(q)
		v.bodies(got, "g1-1", "g1-2", "g1-3", "g2-1")
		v.sendTo(q, "g1-4", "g2-2")
		v.bodies(v.receive(q))
		v.fine(v.remove(q, got[3]))
		v.bodies(v.receive(q), "g2-2") // unlocked by the delete
		v.fine(v.remove(q, got[0]))
		v.fine(v.remove(q, got[1]))
		v.bodies(v.receive(q)) // one of g1 is still in flight
	})
}

func TestEdge07FifoFillsFromOneGroupFirst(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g1-1", "g2-1", "g1-2", "g2-2", "g1-3", "g1-4")
		v.bodies(v.receive(q, most(3)), "g1-1", "g1-2", "g1-3")
		v.bodies(v.receive(q, most(3)), "g2-1", "g2-2")
	})
}

func TestEdge07FifoDeleteWakesALongPoll(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g-1", "g-2")
		m := v.one(q, "g-1", most(1))
		start := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			if err := v.remove(q, m); err != nil {
				t.Error(err)
			}
		}()
		v.one(q, "g-2", wait(20))
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("woken after %s", took)
		}
	})
}

func TestEdge08FifoKeepsAVisibilityForEachMessage(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "VisibilityTimeout", "10")
		v.sendTo(q, "g-1", "g-2", "g-3", "g-4")
		got := v.receive(q)
		v.bodies(got, "g-1", "g-2", "g-3", "g-4")
		v.fine(v.hide(q, got[2], 60)) // hides 3, and 4 behind it
		time.Sleep(11 * time.Second)
		back := v.receive(q)
		v.bodies(back, "g-1", "g-2")
		v.fine(v.remove(q, back[0]))
		v.fine(v.remove(q, back[1]))
		v.bodies(v.receive(q))
		time.Sleep(50 * time.Second)
		v.bodies(v.receive(q), "g-3", "g-4")
	})
}

func TestEdge08FifoZeroOnTheFirstReturnsJustThatOne(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g-1", "g-2", "g-3")
		got := v.receive(q, most(2))
		v.bodies(got, "g-1", "g-2")
		v.fine(v.hide(q, got[0], 0))
		v.one(q, "g-1")
		v.bodies(v.receive(q))
	})
}

func TestEdge09FifoDedup(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		first := v.send(q, "one", group("g1"), dedup("d"))
		again := v.send(q, "two", group("g2"), dedup("d")) // the queue is the scope
		if again.MessageId != first.MessageId || again.SequenceNumber != first.SequenceNumber {
			t.Errorf("the duplicate got %+v, the first %+v", again, first)
		}
		m := v.one(q, "one")
		if m.MessageId != first.MessageId || m.Attributes["SequenceNumber"] != first.SequenceNumber || m.Attributes["MessageDeduplicationId"] != "d" {
			t.Errorf("received %+v, sent %+v", m, first)
		}
		v.fine(v.remove(q, m))
		v.send(q, "three", group("g1"), dedup("d")) // also after the delete
		v.bodies(v.receive(q))
		time.Sleep(5 * time.Minute)
		v.send(q, "four", group("g1"), dedup("d"))
		v.bodies(v.receive(q), "four")
	})
}

func TestEdge09FifoDedupByGroup(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "DeduplicationScope", "messageGroup")
		v.send(q, "one", group("g1"), dedup("d"))
		v.send(q, "two", group("g2"), dedup("d"))
		v.send(q, "three", group("g2"), dedup("d"))
		v.bodies(v.receive(q), "one", "two")
	})
}

func TestEdge09FifoPurgeClearsDedup(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.send(q, "one", group("g"), dedup("d"))
		v.send(q, "gone", group("h"), dedup("e"))
		m := v.receive(q)
		v.fine(v.remove(q, m[1]))
		time.Sleep(time.Millisecond)
		v.fine(v.s.PurgeQueue(v.ctx, queue.NamedInput{QueueUrl: q}))
		v.send(q, "two", group("g2"), dedup("d"))
		v.send(q, "three", group("g2"), dedup("e"))
		v.send(q, "four", group("g"), dedup("f")) // nothing locks what was in flight's group
		v.bodies(v.receive(q), "two", "three", "four")
		v.fine(v.remove(q, m[0])) // it is gone, and its handle does nothing
		v.refused(v.hide(q, m[0], 60), "InvalidParameterValueException")
		if n := v.attribute(q, "ApproximateNumberOfMessagesNotVisible"); n != "3" {
			t.Errorf("%s in flight", n)
		}
		time.Sleep(time.Minute)
		v.bodies(v.receive(q), "two", "three", "four") // what was in flight at the purge does not come back
	})
}

func TestFifoDedupEndsAfterFiveMinutesThoughTheFirstIsStillThere(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		sent := func(body string) queue.SendOutput { return v.send(q, body, group("g"), dedup("d")) }
		one := sent("one")
		time.Sleep(5*time.Minute + time.Second)
		two := sent("two")
		if two.MessageId == one.MessageId || two.SequenceNumber <= one.SequenceNumber {
			t.Fatalf("first %+v, then %+v", one, two)
		}
		time.Sleep(4 * time.Minute)
		if again := sent("again"); again.MessageId != two.MessageId || again.SequenceNumber != two.SequenceNumber {
			t.Errorf("the duplicate got %+v, the second one %+v", again, two)
		}
		got := v.receive(q)
		v.bodies(got, "one", "two")
		v.fine(v.remove(q, got[0])) // the engine's key is free now
		if again := sent("again"); again.MessageId != two.MessageId {
			t.Errorf("the duplicate got %+v, the second one %+v", again, two)
		}
		time.Sleep(time.Minute + time.Second)
		v.fine(v.remove(q, v.one(q, "two")))
		sent("three")
		v.one(q, "three")
	})
}

func TestFifoContentBasedDedup(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "ContentBasedDeduplication", "true")
		v.send(q, "hello", group("g"), text("a", "1"))
		v.send(q, "hello", group("g"), text("a", "2")) // attributes do not count
		v.send(q, "hello", group("g"), dedup("own"))
		got := v.receive(q)
		v.bodies(got, "hello", "hello")
		if id := got[0].Attributes["MessageDeduplicationId"]; id != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
			t.Errorf("the dedup id is %s", id)
		}
	})
}

func TestEdge10FifoIDs(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		_, err := v.trySend(q, "x", dedup("d"))
		v.refused(err, "MissingRequiredParameterException")
		_, err = v.trySend(q, "x", group("g"))
		v.refused(err, "InvalidParameterValueException")
		batch := func(with ...func(*queue.SendInput)) error {
			in := queue.SendInput{ID: "1", MessageBody: "x"}
			for _, f := range with {
				f(&in)
			}
			_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: []queue.SendInput{in}})
			return err
		}
		if f := v.refused(batch(dedup("d")), "InvalidParameterValueException"); !strings.Contains(f.Message, "MessageGroupId") {
			t.Errorf("says %q", f.Message)
		}
		v.refused(batch(group("g")), "InvalidParameterValueException")
		for _, bad := range []string{"", "a b", "ä", strings.Repeat("x", 129), "a\n"} {
			_, err = v.trySend(q, "x", group(bad), dedup("d"))
			v.refused(err, "InvalidParameterValueException")
			_, err = v.trySend(q, "x", group("g"), dedup(bad))
			v.refused(err, "InvalidParameterValueException")
		}
		longest := strings.Repeat("!", 128)
		v.send(q, "x", group(longest), dedup(longest))
		m := v.one(q, "x")
		if m.Attributes["MessageGroupId"] != longest || m.Attributes["MessageDeduplicationId"] != longest {
			t.Errorf("got %v", m.Attributes)
		}
		_, err = v.trySend(q, "x", group("g"), dedup("d"), delay(2))
		v.refused(err, "InvalidParameterValueException")
		v.send(q, "y", group("g"), dedup("d"), delay(0))
	})
}
