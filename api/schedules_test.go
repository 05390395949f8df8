package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/schedule"
)

func startSchedules(t *testing.T) *server {
	t.Helper()
	return start(t, func(c *api.Config) {
		c.Schedules = must[*schedule.Scheduler](t)(schedule.New(schedule.Config{Broker: c.Broker}))
		background(t, c.Schedules.Run)
	})
}

func TestSchedulesOverTheAPI(t *testing.T) {
	t.Parallel()
	s := startSchedules(t)
	ctx := t.Context()
	put := api.PutSchedule{ScheduleDefinition: api.ScheduleDefinition{
		Cron: "30 2 * * *", Timezone: "Europe/Berlin", Jitter: api.Duration(time.Minute), Limit: 9, Missed: schedule.MissedAll, Overlap: schedule.OverlapSkip,
		Start: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC),
		Job: api.ScheduledJob{
			Queue: "reports", Name: "daily", Data: json.RawMessage(`{"a":1}`), Priority: new(3), Attempts: 4, Timeout: api.Duration(time.Minute),
			Backoff: &api.Backoff{Kind: "fixed", Base: api.Duration(time.Second)}, Tags: []string{"x"},
			Retention: &api.Retention{Finished: &api.Keep{Age: api.Duration(time.Hour)}},
		},
	}, Rev: new(int64)}
	made := must[api.Schedule](t)(s.PutSchedule(ctx, "nightly", put))
	equal(t, "definition", asJSON(t, made.ScheduleDefinition), asJSON(t, put.ScheduleDefinition))
	equal(t, "next", made.Next, time.Date(2027, 1, 1, 1, 30, 0, 0, time.UTC))
	if _, err := s.PutSchedule(ctx, "nightly", put); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("a second one is %v", err)
	}
	ticks := must[[]time.Time](t)(s.PreviewSchedule(ctx, "nightly", 3))
	equal(t, "preview", len(ticks), 3)
	ticks = must[[]time.Time](t)(s.PreviewDefinition(ctx, api.PreviewSchedule{Every: api.Duration(time.Hour), Start: put.Start}))
	equal(t, "preview of a definition", len(ticks), 10)

	paused := must[api.Schedule](t)(s.PauseSchedule(ctx, "nightly"))
	equal(t, "paused", *paused.Paused, true)
	put.Rev, put.Paused, put.Limit = nil, nil, 10
	changed := must[api.Schedule](t)(s.PutSchedule(ctx, "nightly", put))
	equal(t, "paused still, and changed", asJSON(t, []any{changed.Paused, changed.Limit}), "[true,10]")
	resumed := must[api.Schedule](t)(s.ResumeSchedule(ctx, "nightly"))
	equal(t, "resumed", resumed.Paused == nil, true)

	run := must[api.ScheduleRun](t)(s.RunSchedule(ctx, "nightly", "key-1"))
	equal(t, "run again", must[api.ScheduleRun](t)(s.RunSchedule(ctx, "nightly", "key-1")), run)
	if _, err := s.RunSchedule(ctx, "nightly", ""); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("one that overlaps is %v", err)
	}
	job := must[forebay.Job](t)(s.broker.Job(ctx, run.JobID))
	equal(t, "job", asJSON(t, []any{job.Queue, job.Kind, job.Job.Tags, job.Priority.Level(), job.Limits.Attempts, job.Job.Keep.Finished.Age}),
		`["reports","daily",["schedule:nightly","x"],3,4,3600000000000]`)
	shown := must[api.Schedule](t)(s.Schedule(ctx, "nightly"))
	equal(t, "last job", *shown.LastJob, api.LastJob{JobID: run.JobID, State: forebay.StateWaiting})

	for _, name := range []string{"a", "b"} {
		must[api.Schedule](t)(s.PutSchedule(ctx, name, put))
	}
	page := must[api.ScheduleList](t)(s.Schedules(ctx, "", 2))
	equal(t, "first page", page.Items[0].Name+page.Items[1].Name+page.Next, "abb")
	page = must[api.ScheduleList](t)(s.Schedules(ctx, page.Next, 2))
	equal(t, "second page", page.Items[0].Name+page.Next, "nightly")

	must[api.ScheduleGone](t)(s.DeleteSchedule(ctx, "nightly"))
	for what, call := range map[string]func() error{
		"get":     func() error { _, err := s.Schedule(ctx, "nightly"); return err },
		"delete":  func() error { _, err := s.DeleteSchedule(ctx, "nightly"); return err },
		"pause":   func() error { _, err := s.PauseSchedule(ctx, "nightly"); return err },
		"resume":  func() error { _, err := s.ResumeSchedule(ctx, "nightly"); return err },
		"run":     func() error { _, err := s.RunSchedule(ctx, "nightly", ""); return err },
		"preview": func() error { _, err := s.PreviewSchedule(ctx, "nightly", 1); return err },
	} {
		if err := call(); forebay.CodeOf(err) != forebay.CodeNotFound {
			t.Errorf("%s of one that is gone: %v", what, err)
		}
	}
}

// Ticks are told in the schedule's zone, whatever is near a change of its clocks and
// however its start was written; without a zone in UTC.
func TestPreviewIsInTheZone(t *testing.T) {
	t.Parallel()
	s := startSchedules(t)
	far := time.FixedZone("", 5*3600)
	for name, c := range map[string]struct {
		d    api.PreviewSchedule
		want string
	}{
		"a gap": {api.PreviewSchedule{Cron: "30 2 * * *", Timezone: "Europe/Berlin", Start: time.Date(2027, 3, 27, 0, 0, 0, 0, far), N: 3},
			`["2027-03-27T02:30:00+01:00","2027-03-28T03:00:00+02:00","2027-03-29T02:30:00+02:00"]`},
		"no zone": {api.PreviewSchedule{Cron: "30 2 * * *", Start: time.Date(2027, 3, 27, 0, 0, 0, 0, far), N: 1}, `["2027-03-27T02:30:00Z"]`},
		"every":   {api.PreviewSchedule{Every: api.Duration(time.Hour), Start: time.Date(2027, 3, 27, 0, 0, 0, 0, far), N: 2}, `["2027-03-26T19:00:00Z","2027-03-26T20:00:00Z"]`},
	} {
		equal(t, name, asJSON(t, must[[]time.Time](t)(s.PreviewDefinition(t.Context(), c.d))), c.want)
	}
}

func TestSchedulesThatAreWrong(t *testing.T) {
	t.Parallel()
	s := startSchedules(t)
	for body, want := range map[string][2]string{
		`{"cron":"61 * * * *","job":{"queue":"q","name":"n"}}`:                                  {"cron", `the minute "61" at position 1 is not allowed; 0 to 59`},
		`{"cron":"* * * * *","timezone":"Mars/Base","job":{"queue":"q","name":"n"}}`:            {"timezone", `"Mars/Base" is not known`},
		`{"cron":"* * * * *","every":"5m","job":{"queue":"q","name":"n"}}`:                      {"every", "only one of them"},
		`{"every":"1500ms","job":{"queue":"q","name":"n"}}`:                                     {"every", "whole seconds"},
		`{"every":"5 minutes","job":{"queue":"q","name":"n"}}`:                                  {"every", "no duration"},
		`{"job":{"queue":"q","name":"n"}}`:                                                      {"cron", "one of them is needed"},
		`{"cron":"0 0 31 2 *","job":{"queue":"q","name":"n"}}`:                                  {"cron", "names no day"},
		`{"every":"5m","missed":"maybe","job":{"queue":"q","name":"n"}}`:                        {"missed", "skip, once or all are allowed"},
		`{"every":"5m","overlap":"wait","job":{"queue":"q","name":"n","group":"g"}}`:            {"job.group", "leave one of them out"},
		`{"every":"5m","job":{"queue":"a b","name":"n"}}`:                                       {"job.queue", "allowed are"},
		`{"every":"5m","job":{"queue":"q"}}`:                                                    {"job.name", "no name"},
		`{"every":"5m","job":{"queue":"q","name":"n","attempts":5000}}`:                         {"job.attempts", "0 (the default) to 1000"},
		`{"every":"5m","job":{"queue":"q","name":"n","tags":[""]}}`:                             {"job.tags", "a tag is empty"},
		`{"every":"5m","job":{"queue":"q","name":"n","delay":"5m"}}`:                            {"job.delay", `no field "job.delay"`},
		`{"every":"5m","end":"2020-01-01T00:00:00Z","start":"2021-01-01T00:00:00Z","job":{}}`:   {"end", "not after the start"},
		`{"every":"5m","jitter":"48h","job":{"queue":"q","name":"n"}}`:                          {"jitter", "to 24h0m0s are allowed"},
		`{"cron":"* * * * *","job":{"queue":"q","name":"n","timeout":"1h","deadline":"9000d"}}`: {"job.deadline", "364 days"},
	} {
		req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"/api/schedules/s", strings.NewReader(body)))
		resp := must[*http.Response](t)(s.http.Do(req))
		var p api.Problem
		b := must[[]byte](t)(io.ReadAll(resp.Body))
		resp.Body.Close()
		if err := json.Unmarshal(b, &p); err != nil || resp.StatusCode != http.StatusBadRequest || p.Field != want[0] || !strings.Contains(p.Detail, want[1]) {
			t.Errorf("%s\nis answered %d %s", body, resp.StatusCode, b)
		}
	}
	if _, err := s.PutSchedule(t.Context(), "a b", api.PutSchedule{}); err == nil || !strings.Contains(err.Error(), "position 2") {
		t.Errorf("a bad name is %v", err)
	}
}

func TestWithoutSchedules(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if _, err := s.Schedules(t.Context(), "", 0); forebay.CodeOf(err) != forebay.CodeUnsupported {
		t.Errorf("a server without schedules answers %v", err)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	return string(must[[]byte](t)(json.Marshal(v)))
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}
