package redis_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// What is asked for by the clock of this machine is due by that of Redis, whichever is ahead.
func TestClocksThatDiffer(t *testing.T) {
	heard := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := heard.Add(time.Minute)
	for ahead, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, -time.Hour: -time.Hour, 99 * time.Millisecond: 0, 0: 0} {
		if got := redis.ByServer(heard.Add(ahead), heard, now, now.Add(10*time.Second)); got.Sub(now) != want+10*time.Second {
			t.Errorf("Redis is ahead by %s: in 10 s is by its clock in %s, want %s more", ahead, got.Sub(now), want)
		}
	}
	if got := redis.ByServer(heard.Add(time.Hour), heard, now, time.UnixMilli(0)); !got.IsZero() {
		t.Errorf("no time became %s", got)
	}
}

// apart opens an engine on a server whose clock is another than this machine's, and sends what
// ends at a time of this machine's clock.
func apart(t *testing.T, ahead time.Duration) *redis.Engine {
	t.Helper()
	e, err := redis.OpenApart(t.Context(), redis.Config{URL: redistest.Start(t, redistest.Config{}).URL(0)}, ahead)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	soon, late := time.Now().Add(time.Second), time.Now().Add(10*time.Minute)
	res, err := e.Send(t.Context(), []forebay.Message{
		jobOf("late", func(m *forebay.Message) { m.NotBefore = late }),
		jobOf("expires", func(m *forebay.Message) { m.Job.Expires = late }),
		jobOf("ends", func(m *forebay.Message) { m.Job.Deadline = late }),
		jobOf("expired", func(m *forebay.Message) { m.Queue, m.Job.Expires = "other", soon }),
		jobOf("ended", func(m *forebay.Message) { m.Queue, m.Job.Deadline = "other", soon }),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return e
}

// about tells whether a time is another by less than a difference of clocks.
func about(a, b time.Time) bool { return a.Sub(b).Abs() < 5*time.Minute }

// What is asked for by the clock of this machine holds, and what is told is by it.
func TestServerWithAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		e := apart(t, ahead)
		ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 9, Lease: 10 * time.Minute})
		if err != nil || len(ds) != 2 {
			t.Fatalf("%s ahead: %d came of two that are in time, %v", ahead, len(ds), err)
		}
		for _, d := range ds {
			if !about(d.LeaseUntil, time.Now().Add(10*time.Minute)) {
				t.Errorf("%s ahead: the lease of ten minutes of %s is told to last %s", ahead, d.ID, time.Until(d.LeaseUntil))
			}
		}
		page, err := e.Peek(t.Context(), engine.PeekQuery{Queue: "q"})
		if err != nil || len(page.Messages) != 3 {
			t.Fatal(page, err)
		}
		for _, p := range page.Messages {
			if at := cmp.Or(p.LeaseUntil, p.NotBefore); !about(at, time.Now().Add(10*time.Minute)) {
				t.Errorf("%s ahead: a look tells of %s that it is until %s", ahead, p.Message.ID, at)
			}
		}
		j, err := e.Job(t.Context(), "late")
		if err != nil || !about(j.Due, j.NotBefore) {
			t.Errorf("%s ahead: a job for %s is told to be due at %s, %v", ahead, j.NotBefore, j.Due, err)
		}
		for id, want := range map[string]forebay.State{"expired": forebay.StateExpired, "ended": forebay.StateDead} {
			for i := 0; j.State != want; i++ {
				if j, err = e.Job(t.Context(), id); err != nil || i == 50_000 {
					t.Fatalf("%s ahead: %s is %s, want %s: %v", ahead, id, j.State, want, err)
				}
			}
		}
	}
}

// A document is there until its time.
func TestDocumentsOfAServerWithAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		e := apart(t, ahead)
		for key, in := range map[string]time.Duration{"there": 10 * time.Minute, "gone": time.Millisecond} {
			d := engine.Document{Collection: "c", Key: key, Rev: engine.AnyRev, Value: []byte("1"), Expires: time.Now().Add(in)}
			if _, err := e.PutDocument(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Document(t.Context(), "c", "there"); err != nil {
			t.Errorf("%s ahead: %v", ahead, err)
		}
		for i, err := 0, error(nil); forebay.CodeOf(err) != forebay.CodeNotFound; i++ {
			if _, err = e.Document(t.Context(), "c", "gone"); i == 50_000 {
				t.Fatalf("%s ahead: what has expired is still there, %v", ahead, err)
			}
		}
	}
}
