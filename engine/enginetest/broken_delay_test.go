package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/forebayhq/forebay/engine"
)

// delayBroken is a model that is broken in what it does with delays of queues.
type delayBroken struct {
	*Model
	set func(o *oracle, queue string, d time.Duration)
}

func (b *delayBroken) SetDelay(_ context.Context, queue string, d time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(b.o, queue, d)
	b.wake()
	return nil
}

var delayFaults = []struct {
	name  string
	set   func(o *oracle, queue string, d time.Duration)
	fails []string
}{
	{"only for what comes", func(o *oracle, queue string, d time.Duration) { o.delays[queue] = d },
		[]string{"delay/reaches what waits already", "delay/lowered, it wakes a receiver", "delay/groups keep their order"}},
	{"only for what is there", func(o *oracle, queue string, d time.Duration) {
		o.delay(queue, d)
		delete(o.delays, queue)
	}, []string{"delay/holds what is sent, and wakes who waits", "delay/of one queue only, and read back"}},
	{"also what was handed out", func(o *oracle, queue string, d time.Duration) {
		o.delay(queue, d)
		for _, e := range o.entries {
			e.due = later(e.due, e.heldUntil)
		}
	}, []string{"delay/not what was handed out before"}},
	{"for all queues", func(o *oracle, queue string, d time.Duration) {
		o.delay(queue, d)
		o.delays["r"] = d
	}, []string{"delay/of one queue only, and read back"}},
	{"anything goes", func(o *oracle, queue string, d time.Duration) { o.delay(queue, d) }, []string{"delay/wrong ones are refused"}},
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestSuiteCatchesBrokenDelays(t *testing.T) {
	for _, f := range delayFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := Harness{Unit: time.Second, Open: func(testing.TB) engine.Engine { return &delayBroken{NewModel(), f.set} }}
			for _, name := range f.fails {
				mustFail(t, h, name)
			}
		})
	}
}
