package sqlite_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// Where the clock of the machine is stepped, leases and rates keep their spans, and what is
// due by a time is due by the new one, at once.
func TestSteppedClock(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": 5 * time.Hour, "back": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var at atomic.Int64
			at.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
			now := func() time.Time { return time.Unix(0, at.Load()) }
			pass := func(d time.Duration) { at.Add(int64(d)) }
			e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db"), Now: now})
			if err := e.SetLimits(context.Background(), "rated", engine.QueueLimits{Rate: engine.Rate{Count: 1, Per: 10 * time.Second}}); err != nil {
				t.Fatal(err)
			}
			ask := func(queue string) []forebay.Delivery {
				ds, err := e.Receive(context.Background(), engine.Receive{Queue: queue, Max: 1, Lease: 30 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				return ds
			}
			want := func(queue string, n int, when string) {
				t.Helper()
				if ds := ask(queue); len(ds) != n {
					t.Errorf("%s: %d messages of %s, want %d", when, len(ds), queue, n)
				}
			}
			// Some of a queue were due before: one has gone, one waits, and a third is due in a minute.
			send(t, e, later("gone", now().Add(time.Second)), later("waits", now().Add(2*time.Second)), later("minute", now().Add(time.Minute)))
			pass(2 * time.Second)
			want("later", 1, "after 2 s")
			delayed(t, e, 1, "before")

			send(t, e, forebay.Message{ID: "leased", Queue: "leased"}, forebay.Message{ID: "r1", Queue: "rated"}, forebay.Message{ID: "r2", Queue: "rated"})
			want("leased", 1, "before")
			want("rated", 1, "before")

			e.Stepped(by)
			pass(by)
			if by < 0 {
				delayed(t, e, 1, "after the step")
				want("later", 1, "what was due")
				want("later", 0, "and no more")
			} else {
				delayed(t, e, 0, "after the step")
				want("later", 1, "what was due")
				want("later", 1, "what the step made due")
			}
			send(t, e, later("later", now().Add(10*time.Second)), forebay.Message{ID: "now", Queue: "now"})
			if ds := ask("now"); len(ds) != 1 || !ds[0].LeaseUntil.Equal(now().Add(30*time.Second)) {
				t.Errorf("at %v: %+v", now(), ds)
			}
			pass(9 * time.Second)
			want("later", 0, "9 s after")
			want("rated", 0, "9 s after")
			pass(2 * time.Second)
			want("later", 1, "11 s after")
			want("rated", 1, "11 s after")
			want("leased", 0, "11 s after")
			pass(18 * time.Second)
			want("leased", 0, "29 s after")
			pass(2 * time.Second)
			want("leased", 1, "31 s after")
		})
	}
}

func later(id string, at time.Time) forebay.Message {
	return forebay.Message{ID: id, Queue: "later", NotBefore: at}
}

// delayed asks how many of the queue later are delayed.
func delayed(t *testing.T, e *sqlite.Engine, want int64, when string) {
	t.Helper()
	if stats, err := e.Stats(context.Background(), "later"); err != nil || stats[0].Delayed != want {
		t.Errorf("%s: %+v, %v, want %d delayed", when, stats, err, want)
	}
}

// A group whose first message is due, and that nobody has asked for yet, is handed out again after the clock went back
// and has come to that time once more. It stood still for ever.
func TestGroupThatIsDueWhileTheClockGoesBack(t *testing.T) {
	t.Parallel()
	var at atomic.Int64
	at.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	now := func() time.Time { return time.Unix(0, at.Load()) }
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db"), Now: now})
	send(t, e, forebay.Message{ID: "first", Queue: "q", Group: "g"}, forebay.Message{ID: "second", Queue: "q", Group: "g"})
	ask := func() []forebay.Delivery {
		t.Helper()
		ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	ds := ask()
	if len(ds) != 1 {
		t.Fatalf("received %v", ds)
	}
	errs, err := e.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Queue: "q", Verdict: forebay.Retry, After: time.Second}})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	at.Add(int64(2 * time.Second))
	send(t, e, forebay.Message{ID: "other", Queue: "other"}) // the engine sees that the group is due
	const by = -40 * time.Second
	e.Stepped(by)
	at.Add(int64(by))
	if ds := ask(); len(ds) != 0 {
		t.Errorf("before it is due again: %v", ds)
	}
	at.Add(int64(-by))
	if ds := ask(); len(ds) != 1 || ds[0].ID != "first" {
		t.Errorf("received %v, want the first of the group", ds)
	}
}
