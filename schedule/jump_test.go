package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/schedule"
)

// TestHundredSchedules runs 100 schedules through three restarts and a clock that
// jumps forward and back. Each tick of the clock on the wall is run or counted as
// skipped, as its policy says, and none is run twice.
func TestHundredSchedules(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := beginOnFile(t)
		policies := []schedule.Missed{schedule.MissedSkip, schedule.MissedOnce, schedule.MissedAll}
		for i := range 100 {
			d := schedule.Definition{Name: fmt.Sprintf("s%02d", i), Cron: fmt.Sprintf("%d * * * * *", i/3%60), Missed: policies[i%3]}
			if i >= 90 {
				d.Cron, d.Every = "", time.Minute
			}
			s.put(d)
		}
		for _, down := range []time.Duration{3*minute + 20*time.Second, 40 * time.Second, 11 * minute} {
			time.Sleep(4*minute + 37*time.Second)
			s.close()
			time.Sleep(down)
			s.open()
		}
		time.Sleep(3 * minute)
		check := func(what string) {
			t.Helper()
			sent := s.sent()
			for i := range 100 {
				name := fmt.Sprintf("s%02d", i)
				s.checkSchedule(what, name, sent[name])
			}
		}
		check("after restarts")

		s.jump.Add(int64(47 * minute))
		time.Sleep(3 * minute)
		check("after a jump forward")
		v := s.get("s02")
		ran, jobs := v.Count, len(s.ticks("s02"))

		s.jump.Add(-int64(30 * minute))
		time.Sleep(10 * minute)
		check("after a jump back")
		v = s.get("s02")
		want(t, "while the clock is behind", words(v.Count, len(s.ticks("s02"))), words(ran, jobs))
		if !strings.Contains(v.Trouble, "the clock was ahead") {
			t.Errorf("the trouble is %q", v.Trouble)
		}
		time.Sleep(25 * minute)
		check("after it came back")
		want(t, "goes on", s.get("s02").Count, ran+5)
	})
}

// checkSchedule holds what a schedule tells to its jobs.
func (s *stand) checkSchedule(what, name string, jobs []string) {
	s.t.Helper()
	v := s.get(name)
	if int(v.Count) != len(jobs) || len(v.Pending) > 0 {
		s.t.Errorf("%s: %s has %d jobs and counts %d, %d pending", what, name, len(jobs), v.Count, len(v.Pending))
	}
	if all := int64(v.After.Sub(v.Since.Truncate(minute)) / minute); v.Count+v.Skipped < all-1 || v.Count+v.Skipped > all+1 {
		s.t.Errorf("%s: of %d ticks of %s %d ran and %d were skipped", what, all, name, v.Count, v.Skipped)
	}
	if v.Missed == schedule.MissedAll && v.Skipped > 0 {
		s.t.Errorf("%s: %s skipped %d", what, name, v.Skipped)
	}
	if v.Missed != schedule.MissedAll && (v.Skip == nil || v.Skip.Code != schedule.SkipMissed) {
		s.t.Errorf("%s: %s tells of no skipped tick", what, name)
	}
}

// A clock that jumps while the process is down, and one that jumps between decision
// and sending.
func TestJumpsWhileItIsDown(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s, f := beginFaulty(t, true)
		s.put(schedule.Definition{Name: "s", Cron: "*/10 * * * *", Missed: schedule.MissedAll})
		time.Sleep(11 * minute)
		f.sent.Store(true)
		time.Sleep(10 * minute) // 12:20 is decided and sent, and that is not known
		s.close()
		f.sent.Store(false)
		s.jump.Store(-int64(15 * minute))
		s.open()
		time.Sleep(time.Second)
		want(t, "back", s.ticks("s"), "[12:10:00 12:20:00]")
		time.Sleep(10 * minute) // 12:16 on the wall
		want(t, "behind", s.ticks("s"), "[12:10:00 12:20:00]")
		s.close()
		s.jump.Store(int64(15 * minute)) // 12:46
		s.open()
		time.Sleep(time.Second)
		want(t, "forward", s.ticks("s"), "[12:10:00 12:20:00 12:30:00 12:40:00]")
	})
}

// TestIdleCostsNothing counts what schedules ask of the engine while none is due: one
// reading each 30 s.
func TestIdleCostsNothing(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		for i := range 100 {
			s.put(schedule.Definition{Name: fmt.Sprint("s", i), Cron: "0 0 1 1 *"})
		}
		s.close()
		c := &counting{}
		s.wrap = func(e *sqlite.Engine) engine.Engine { c.Engine = e; return c }
		s.open()
		time.Sleep(10*minute + time.Second)
		want(t, "calls in ten minutes", c.calls(), "21 of Documents") // with the one of the start
	})
}

// TestManyAtOnce lets more schedules come due together than one round takes.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		const n = 1000
		for i := range n {
			s.put(schedule.Definition{Name: fmt.Sprint("s", i), Cron: "5 * * * *"})
		}
		time.Sleep(6 * minute)
		stats := must[[]forebay.QueueStats](t)(s.broker.Stats(t.Context(), "work"))
		want(t, "jobs", words(stats[0].Waiting, stats[0].Duplicate), "1000 0")
		v := s.get("s999")
		want(t, "state", words(v.Count, v.Skipped, len(v.Pending)), "1 0 0")
	})
}
