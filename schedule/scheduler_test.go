package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/schedule"
)

// noon runs a test in a bubble that begins at 2026-11-29T12:00:00Z.
func noon(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)))
		test(t)
	})
}

const minute = time.Minute

func TestTicksAddTheJobOfTheTemplate(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		s.put(schedule.Definition{Name: "nightly", Cron: "0 3 * * *", Timezone: "Asia/Tokyo", Job: schedule.Template{
			Queue: "work", Kind: "report", Data: json.RawMessage(`{"a":1}`), Headers: map[string]string{"h": "v"},
			Priority: forebay.At(2), Limits: forebay.Limits{Attempts: 3}, Group: "g", LimitKey: "l", Timeout: minute,
			Deadline: time.Hour, Expires: 30 * minute, Tenant: "t", Owner: "o", Tags: []string{"x"},
		}})
		time.Sleep(6*time.Hour + 2*time.Second)
		jobs := s.jobs("nightly")
		if len(jobs) != 1 {
			t.Fatalf("there are %d jobs", len(jobs))
		}
		j := jobs[0]
		want(t, "id", j.ID, "schedule:nightly:20261129T180000Z")
		want(t, "job", words(j.Queue, j.Kind, string(j.Payload), j.Headers, j.Priority.Level(), j.Limits.Attempts, j.Group, j.LimitKey),
			words("work", "report", `{"a":1}`, map[string]string{"h": "v", "schedule": "nightly", "tick": "2026-11-29T18:00:00Z"}, 2, 3, "g", "l"))
		o := j.Job
		want(t, "options", words(o.Timeout, o.Deadline.UTC(), o.Expires.UTC(), o.Tenant, o.Owner, o.Tags),
			words(minute, time.Date(2026, 11, 29, 19, 0, 0, 0, time.UTC), time.Date(2026, 11, 29, 18, 30, 0, 0, time.UTC), "t", "o", []string{"schedule:nightly", "x"}))
		v := s.get("nightly")
		want(t, "state", words(v.Count, v.Skipped, v.LastJob, v.Last.Job, len(v.Pending), v.Next.UTC(), v.Trouble),
			words(1, 0, j.ID, j.ID, 0, time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC), ""))
		if late := j.SentAt.Sub(v.Last.Tick); late < 0 || late > time.Second {
			t.Errorf("the job was sent %s after its tick", late)
		}
	})
}

// missedCase is what a down time of 5 minutes and 30 s does to a schedule of each minute.
type missedCase struct {
	d     schedule.Definition
	down  time.Duration
	ticks string // after it
	skip  string
}

func TestMissedTicks(t *testing.T) {
	for name, c := range map[string]missedCase{
		"once":                {schedule.Definition{}, 330 * time.Second, "12:06:00", "missed 4 12:05:00"},
		"skip":                {schedule.Definition{Missed: schedule.MissedSkip}, 330 * time.Second, "", "missed 5 12:06:00"},
		"skip, one on time":   {schedule.Definition{Missed: schedule.MissedSkip}, 305 * time.Second, "12:06:00", "missed 4 12:05:00"},
		"all":                 {schedule.Definition{Missed: schedule.MissedAll}, 330 * time.Second, "12:02:00 12:03:00 12:04:00 12:05:00 12:06:00", ""},
		"all, to its limit":   {schedule.Definition{Missed: schedule.MissedAll, Limit: 3}, 330 * time.Second, "12:02:00 12:03:00", "missed 3 12:06:00"},
		"all, without itself": {schedule.Definition{Missed: schedule.MissedAll, Overlap: schedule.OverlapSkip}, 330 * time.Second, "12:06:00", "missed 4 12:05:00"},
		"none":                {schedule.Definition{}, 20 * time.Second, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			missed(t, c)
		})
	}
}

func missed(t *testing.T, c missedCase) {
	t.Helper()
	noon(t, func(t *testing.T) {
		s := beginOnFile(t)
		c.d.Name, c.d.Cron = "s", "* * * * *"
		s.put(c.d)
		time.Sleep(61 * time.Second)
		want(t, "before", s.ticks("s"), "[12:01:00]")
		s.settle(forebay.Ack)
		s.close()
		time.Sleep(c.down)
		s.open()
		time.Sleep(time.Second)
		want(t, "after", strings.Join(s.ticks("s")[1:], " "), c.ticks)
		v, skip := s.get("s"), ""
		if v.Skip != nil {
			skip = fmt.Sprintf("%s %d %s", v.Skip.Code, v.Skipped, v.Skip.Tick.UTC().Format("15:04:05"))
			if v.Skip.Reason == "" {
				t.Error("there is no reason")
			}
		}
		want(t, "skipped", skip, c.skip)
		want(t, "count", v.Count, len(s.ticks("s")))
	})
}

func TestCatchingUpIsBounded(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := beginOnFile(t)
		s.put(schedule.Definition{Name: "s", Every: time.Minute, Missed: schedule.MissedAll})
		s.close()
		time.Sleep(10*time.Hour + 30*time.Second)
		s.open()
		time.Sleep(time.Second)
		ticks, v := s.ticks("s"), s.get("s")
		want(t, "jobs", words(len(ticks), ticks[0], ticks[99]), "100 20:21:00 22:00:00")
		want(t, "skipped", words(v.Count, v.Skipped, v.Skip.Tick.UTC().Format("15:04:05")), "100 500 20:20:00")
	})
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		for _, o := range []schedule.Overlap{schedule.OverlapAllow, schedule.OverlapSkip, schedule.OverlapWait, schedule.OverlapCancel} {
			s.put(schedule.Definition{Name: string(o), Cron: "* * * * *", Overlap: o})
		}
		time.Sleep(61 * time.Second)
		want(t, "handed out", len(s.receive()), 4)
		time.Sleep(2 * minute)
		want(t, "allow", s.ticks("allow"), "[12:01:00 12:02:00 12:03:00]")
		want(t, "skip", s.ticks("skip"), "[12:01:00]")
		want(t, "wait", s.ticks("wait"), "[12:01:00 12:02:00 12:03:00]")
		want(t, "cancel", s.ticks("cancel"), "[12:01:00 12:02:00 12:03:00]")

		v := s.get("skip")
		want(t, "skipped", words(v.Count, v.Skipped, v.Skip.Code, v.Skip.Reason, v.Last.Job),
			"1 2 overlap the former job schedule:skip:20261129T120100Z is still active ")
		first := s.jobs("cancel")
		want(t, "cancelled", words(first[0].State, first[0].CancelRequested, first[1].State, first[2].State), "active true cancelled waiting")

		// Those in a group wait for the one that runs; the others do not.
		names := map[string]int{}
		for _, d := range s.receive() {
			names[d.Headers[schedule.HeaderSchedule]]++
		}
		want(t, "run beside a former one", names, map[string]int{"allow": 2})
	})
}

// A former job that is dead, or removed, never stops a schedule: in others that share
// an id or a key with it, it does, and nobody is told.
func TestAFormerJobThatIsDeadStopsNothing(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		for _, o := range []schedule.Overlap{schedule.OverlapSkip, schedule.OverlapWait, schedule.OverlapCancel} {
			s.put(schedule.Definition{Name: string(o), Cron: "* * * * *", Overlap: o})
		}
		for range 3 {
			time.Sleep(time.Minute)
			synctest.Wait()
			want(t, "dead", s.settle(forebay.Dead), 3)
		}
		jobs := s.jobs("skip")
		must[[]error](t)(s.broker.Remove(t.Context(), []string{jobs[2].ID}))
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, name := range []string{"skip", "wait", "cancel"} {
			v := s.get(name)
			want(t, name, words(v.Count, v.Skipped), "4 0")
		}
	})
}

func TestLimitStartAndEnd(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		noon := s.now()
		s.put(schedule.Definition{Name: "limit", Cron: "* * * * *", Limit: 2})
		s.put(schedule.Definition{Name: "range", Cron: "* * * * *", Start: noon.Add(3 * minute), End: noon.Add(5 * minute)})
		s.put(schedule.Definition{Name: "every", Every: 2 * minute, Start: noon.Add(30 * time.Second), End: noon.Add(5 * minute)})
		time.Sleep(10 * minute)
		want(t, "limit", s.ticks("limit"), "[12:01:00 12:02:00]")
		want(t, "range", s.ticks("range"), "[12:03:00 12:04:00 12:05:00]")
		want(t, "every", s.ticks("every"), "[12:00:30 12:02:30 12:04:30]")
		for _, name := range []string{"limit", "range", "every"} {
			if v := s.get(name); !v.Next.IsZero() || v.Skipped != 0 {
				t.Errorf("%s goes on at %s, %d skipped", name, v.Next, v.Skipped)
			}
		}
	})
}

func TestJitterDelaysWithinItsBound(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		s.put(schedule.Definition{Name: "s", Cron: "* * * * *", Jitter: 20 * time.Second, Job: schedule.Template{Queue: "work", Kind: "do", Expires: minute}})
		time.Sleep(10*minute + 30*time.Second)
		different := map[time.Duration]bool{}
		for _, j := range s.jobs("s") {
			tick := must[time.Time](t)(time.Parse(time.RFC3339, j.Headers[schedule.HeaderTick]))
			d := j.NotBefore.Sub(tick)
			if d < 0 || d > 20*time.Second || !j.Job.Expires.Equal(j.NotBefore.Add(minute)) {
				t.Errorf("the job of %s may begin %s later, and expires at %s", tick, d, j.Job.Expires)
			}
			different[d] = true
		}
		if len(different) < 5 {
			t.Errorf("of ten jobs only %d have a jitter of their own", len(different))
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		s.put(schedule.Definition{Name: "s", Cron: "* * * * *", Missed: schedule.MissedAll})
		time.Sleep(61 * time.Second)
		v := must[schedule.Schedule](t)(s.Pause(t.Context(), "s"))
		want(t, "next while paused", v.Next.IsZero(), true)
		time.Sleep(3 * minute)
		want(t, "paused", s.ticks("s"), "[12:01:00]")
		must[schedule.Schedule](t)(s.Resume(t.Context(), "s"))
		time.Sleep(time.Minute)
		want(t, "resumed", s.ticks("s"), "[12:01:00 12:05:00]")
		want(t, "skipped", s.get("s").Skipped, 0)
	})
}

// A definition that is changed while it runs keeps its place: what it has done is done
// once, and what is new holds from now on.
func TestChangesKeepThePlace(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		s.put(schedule.Definition{Name: "s", Cron: "*/10 * * * *", Missed: schedule.MissedAll, Limit: 4})
		time.Sleep(21 * minute)
		other := schedule.Template{Queue: "work", Kind: "other"}
		s.put(schedule.Definition{Name: "s", Cron: "*/10 * * * *", Missed: schedule.MissedAll, Limit: 4, Job: other})
		time.Sleep(10 * minute)
		want(t, "another job", s.ticks("s"), "[12:10:00 12:20:00 12:30:00]")
		want(t, "kind", s.jobs("s")[2].Kind, "other")
		s.put(schedule.Definition{Name: "s", Cron: "* * * * *", Missed: schedule.MissedAll, Limit: 4, Job: other})
		time.Sleep(5 * minute)
		want(t, "other times", s.ticks("s"), "[12:10:00 12:20:00 12:30:00 12:32:00]")
		v := s.get("s")
		want(t, "count", words(v.Count, v.Skipped), "4 0")

		// every goes on in its own rhythm
		s.put(schedule.Definition{Name: "e", Every: 10 * minute})
		time.Sleep(11 * minute)
		s.put(schedule.Definition{Name: "e", Every: 10 * minute, Job: other})
		time.Sleep(10 * minute)
		want(t, "every", s.ticks("e"), "[12:46:00 12:56:00]")
	})
}

func TestRevisionsAreKept(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		d := schedule.Definition{Name: "s", Every: minute, Job: schedule.Template{Queue: "q", Kind: "k"}}
		v, created, err := s.Put(t.Context(), d, 0)
		want(t, "new", words(created, err), "true <nil>")
		_, _, err = s.Put(t.Context(), d, 0)
		want(t, "again", err, `there is a schedule "s" already`)
		want(t, "code", forebay.CodeOf(err), forebay.CodeConflict)
		v, created, err = s.Put(t.Context(), d, v.Rev)
		want(t, "replaced", words(created, err), "false <nil>")
		_, _, err = s.Put(t.Context(), d, v.Rev-1)
		want(t, "old", forebay.CodeOf(err), forebay.CodeConflict)
		want(t, "delete", s.Delete(t.Context(), "s", engine.AnyRev), nil)
		want(t, "gone", forebay.CodeOf(s.Delete(t.Context(), "s", engine.AnyRev)), forebay.CodeNotFound)
		_, _, err = s.Put(t.Context(), d, v.Rev)
		want(t, "deleted", forebay.CodeOf(err), forebay.CodeNotFound)
		time.Sleep(5 * minute)
		want(t, "jobs of a deleted one", len(s.jobs("s")), 0)
	})
}

func TestRunNow(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := begin(t)
		s.put(schedule.Definition{Name: "s", Cron: "0 * * * *", Overlap: schedule.OverlapSkip, Limit: 1, Paused: true})
		job := must[string](t)(s.RunNow(t.Context(), "s", "x"))
		want(t, "again", must[string](t)(s.RunNow(t.Context(), "s", "x")), job)
		_, err := s.RunNow(t.Context(), "s", "")
		want(t, "another", words(forebay.CodeOf(err), err), `conflict the former job schedule:s:run:x of the schedule "s" is still waiting`)
		v := s.get("s")
		want(t, "state", words(v.Count, v.LastJob, len(v.Pending)), "0 schedule:s:run:x 0")
		want(t, "jobs", len(s.jobs("s")), 1)
		must[schedule.Schedule](t)(s.Resume(t.Context(), "s"))
		time.Sleep(61 * minute)
		want(t, "overlaps", words(s.get("s").Count, s.get("s").Skip.Code), "0 overlap")
		s.settle(forebay.Ack)
		must[string](t)(s.RunNow(t.Context(), "s", ""))
		s.settle(forebay.Ack)
		time.Sleep(60 * minute)
		want(t, "ticks", s.ticks("s"), "[14:00:00]")
		_, err = s.RunNow(t.Context(), "none", "")
		want(t, "none", forebay.CodeOf(err), forebay.CodeNotFound)
	})
}

func TestRunEndsWhereSchedulesCannotBeKept(t *testing.T) {
	t.Parallel()
	noon(t, func(t *testing.T) {
		s := &stand{t: t}
		s.open()
		s.stop()
		s.stop = nil
		b := bare{s.engine}
		s.use(b)
		err := s.Run(context.Background())
		want(t, "Run", forebay.CodeOf(err), forebay.CodeUnsupported)
		s.broker.Close()
	})
}
