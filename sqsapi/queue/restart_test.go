package queue_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// restarting is a bubble with an engine on disk; again opens it, and the service, anew.
func restarting(t *testing.T, f func(v *env, again func())) {
	t.Helper()
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.db")
	synctest.Test(t, func(t *testing.T) {
		v := &env{T: t, ctx: t.Context()}
		stop := func() {}
		again := func() {
			stop()
			e, err := sqlite.Open(sqlite.Config{Path: path})
			v.fine(err)
			s, err := queue.New(queue.Config{Engine: e, Now: func() time.Time { return time.Now().Add(v.skew) }})
			v.fine(err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			stop = func() {
				cancel()
				if err := errors.Join(<-ended, e.Close()); err != nil {
					t.Error(err)
				}
			}
			v.e, v.s = e, s
		}
		defer func() { stop() }()
		again()
		f(v, again)
	})
}

func TestReport09RestartKeepsQueuesMessagesAndLeases(t *testing.T) {
	restarting(t, func(v *env, again func()) {
		q := v.create("a", "VisibilityTimeout", "60")
		v.send(q, "x", text("k", "v"))
		v.send(q, "y")
		m := v.one(q, "x", most(1))
		other := v.one(q, "y")
		again()
		if n := v.attribute(q, "VisibilityTimeout") + " " + v.attribute(q, "ApproximateNumberOfMessagesNotVisible"); n != "60 2" {
			t.Errorf("after the restart: %s", n)
		}
		v.bodies(v.receive(q)) // both are in flight
		v.fine(v.hide(q, m, 10))
		v.fine(v.remove(q, other))
		time.Sleep(11 * time.Second)
		got := v.one(q, "x")
		if n := got.Attributes["ApproximateReceiveCount"]; n != "2" {
			t.Errorf("received %s times", n)
		}
		v.fine(v.remove(q, m))
	})
}

func TestRestartOfFifo(t *testing.T) {
	restarting(t, func(v *env, again func()) {
		q := v.create("a.fifo")
		first := v.send(q, "1", group("g"), dedup("1"))
		v.send(q, "2", group("g"), dedup("2"))
		m := v.one(q, "1", most(1))
		again()
		v.bodies(v.receive(q)) // the group is locked
		if dup := v.send(q, "1", group("g"), dedup("1")); dup.MessageId != first.MessageId || dup.SequenceNumber != first.SequenceNumber {
			t.Errorf("the duplicate got %+v, the first %+v", dup, first)
		}
		next := v.send(q, "3", group("g"), dedup("3"))
		if next.SequenceNumber <= first.SequenceNumber {
			t.Errorf("%s after %s", next.SequenceNumber, first.SequenceNumber)
		}
		v.fine(v.remove(q, m))
		v.bodies(v.receive(q), "2", "3")
	})
}

func TestRestartKnowsLateDuplicates(t *testing.T) {
	restarting(t, func(v *env, again func()) {
		q := v.create("a.fifo")
		v.send(q, "old", group("g"), dedup("d"))
		time.Sleep(6 * time.Minute)
		sent := v.send(q, "new", group("g"), dedup("d"))
		v.fine(v.remove(q, v.receive(q)[0])) // nothing of the engine guards the id now
		again()
		if dup := v.send(q, "dup", group("g"), dedup("d")); dup.MessageId != sent.MessageId {
			t.Errorf("the duplicate got %+v, the first %+v", dup, sent)
		}
		time.Sleep(5 * time.Minute)
		v.send(q, "later", group("g"), dedup("d"))
		v.bodies(v.receive(q), "new", "later")
	})
}

func TestRestartNumbersNeverGoBack(t *testing.T) {
	restarting(t, func(v *env, again func()) {
		q := v.create("a.fifo")
		last := ""
		for i := range 5 {
			n := v.send(q, "x", group("g"), dedup(fmt.Sprint(i))).SequenceNumber
			if n <= last || len(n) != 20 {
				t.Errorf("%s after %s", n, last)
			}
			last = n
			v.skew -= time.Hour // the clock is set back, too
			again()
		}
	})
}

func TestRestartGoesOnWithAMoveTask(t *testing.T) {
	restarting(t, func(v *env, again func()) {
		v.deadLetters(10, "a")
		v.start(slow(1))
		time.Sleep(3500 * time.Millisecond)
		again()
		if task := v.tasks()[0]; task.Status != "RUNNING" || task.Moved != 3 {
			t.Errorf("got %+v", task)
		}
		time.Sleep(10 * time.Second)
		if task := v.tasks()[0]; task.Status != "COMPLETED" || task.Moved != 10 {
			t.Errorf("got %+v", task)
		}
		if n := v.waiting("a"); n != "10" {
			t.Errorf("%s came back", n)
		}
	})
}
