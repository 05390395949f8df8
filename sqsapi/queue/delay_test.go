package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// counts wants what waits, is in flight, and is delayed.
func (v *env) counts(name string, want string) {
	v.Helper()
	got := v.attribute(name, "ApproximateNumberOfMessages") + " " + v.attribute(name, "ApproximateNumberOfMessagesNotVisible") + " " +
		v.attribute(name, "ApproximateNumberOfMessagesDelayed")
	if got != want {
		v.Fatalf("waiting, in flight, delayed: %s, want %s", got, want)
	}
}

func TestDelayOfAFifoQueueReachesWhatIsThere(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g-1", "g-2", "h-1")
		time.Sleep(4 * time.Second)
		v.sendTo(q, "h-2")
		v.fine(v.set(q, "DelaySeconds", "10"))
		v.bodies(v.receive(q))
		v.counts(q, "0 0 4")
		start := time.Now()
		got := v.receive(q, wait(20), most(1))
		v.bodies(got, "g-1")
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("received after %s", took)
		}
		v.bodies(v.receive(q), "h-1") // g is locked; h-2 has four more seconds
		v.counts(q, "1 2 1")
		v.fine(v.hide(q, got[0], 0)) // it was received: the delay is over for it
		v.fine(v.set(q, "DelaySeconds", "900"))
		v.bodies(v.receive(q), "g-1")
		v.counts(q, "0 2 2")
		v.fine(v.set(q, "DelaySeconds", "0"))
		v.counts(q, "2 2 0")
	})
}

func TestDelayOfAFifoQueueLoweredWakesALongPoll(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "DelaySeconds", "900")
		v.sendTo(q, "g-1", "g-2")
		start := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			if err := v.set(q, "DelaySeconds", "2"); err != nil {
				t.Error(err)
			}
		}()
		v.bodies(v.receive(q, wait(20)), "g-1", "g-2")
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("woken after %s", took)
		}
	})
}

func TestDelayOfAStandardQueueDoesNotReachWhatIsThere(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		v.send(q, "x")
		v.fine(v.set(q, "DelaySeconds", "10"))
		v.one(q, "x")
		v.send(q, "y")
		v.fine(v.set(q, "DelaySeconds", "0"))
		v.bodies(v.receive(q))
		v.bodies(v.receive(q, wait(20)), "y")
	})
}

// The delay is there after a restart; also where the process ended between the record
// and the engine, whoever asks first.
func TestDelayOfAFifoQueueSurvivesARestart(t *testing.T) {
	restarting(t, func(v *env, again func()) {
		q := v.create("a.fifo", "DelaySeconds", "60")
		v.sendTo(q, "g-1", "g-2")
		again()
		v.bodies(v.receive(q))
		v.counts(q, "0 0 2")
		v.fine(v.e.(engine.Delayer).SetDelay(v.ctx, q, 0)) // as if it had never been told
		again()
		time.Sleep(time.Second)
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: q, Max: 10})
		if err != nil || len(ds) != 0 {
			t.Fatalf("the engine handed out %v, %v", ds, err)
		}
		time.Sleep(59 * time.Second)
		v.bodies(v.receive(q), "g-1", "g-2")
	})
}

// A process that cannot tell the engine says so, and tells it later.
func TestDelayThatTheEngineRefusesIsToldAgain(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		v.sendTo(q, "g-1")
		e := &deaf{Engine: v.e, err: forebay.Errorf(forebay.CodeUnavailable, "", "not now")}
		s, err := queue.New(queue.Config{Engine: e})
		v.fine(err)
		v.s = s
		v.refused(v.set(q, "DelaySeconds", "10"), "ServiceUnavailable")
		e.err = nil
		time.Sleep(6 * time.Second) // the record is read again
		v.bodies(v.receive(q))
		v.counts(q, "0 0 1")
	})
}

// deaf refuses delays with err.
type deaf struct {
	engine.Engine
	err error
}

func (d *deaf) Unwrap() engine.Engine { return d.Engine }

func (d *deaf) SetDelay(ctx context.Context, name string, to time.Duration) error {
	in, _ := engine.As[engine.Delayer](d.Engine)
	return errors.Join(d.err, in.SetDelay(ctx, map[bool]string{true: name, false: "nobody"}[d.err == nil], to))
}

func (d *deaf) Delay(ctx context.Context, name string) (time.Duration, error) {
	in, _ := engine.As[engine.Delayer](d.Engine)
	return in.Delay(ctx, name)
}

func TestDelayOfADeletedFifoQueueIsGone(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo", "DelaySeconds", "900")
		v.sendTo(q, "g-1")
		v.fine(v.s.DeleteQueue(v.ctx, queue.NamedInput{QueueUrl: q}))
		if d, err := v.e.(engine.Delayer).Delay(v.ctx, "a.fifo"); err != nil || d != 0 {
			t.Errorf("the engine still delays by %v, %v", d, err)
		}
		time.Sleep(time.Minute)
		q = v.create("a.fifo")
		v.sendTo(q, "g-1")
		v.one(q, "g-1")
	})
}

// Many that wait: the order of each group holds while the delay goes to and fro.
func TestDelayOfManyKeepsTheOrder(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a.fifo")
		for i := range 300 {
			v.sendTo(q, fmt.Sprintf("g%d-%03d", i%7, i))
		}
		last := map[string]string{}
		for seen, round := 0, 0; seen < 300; round++ {
			v.fine(v.set(q, "DelaySeconds", fmt.Sprint(round%3*300)))
			for _, m := range v.receive(q) {
				if g := m.Attributes["MessageGroupId"]; m.Body <= last[g] {
					t.Fatalf("%s came after %s", m.Body, last[g])
				} else {
					last[g] = m.Body
				}
				seen++
				v.fine(v.remove(q, m))
			}
			time.Sleep(time.Second)
		}
	})
}
