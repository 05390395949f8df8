package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/worker"
)

func TestJobsAreListedAndFound(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i := range 5 {
		s.add(t, api.NewJob{ID: fmt.Sprint("w", i), Queue: "q", Name: "mail.welcome", Data: json.RawMessage(fmt.Sprintf(`{"user":{"id":%d}}`, i))})
	}
	dead := s.add(t, api.NewJob{Queue: "other", Name: "k"}).JobID
	s.work(t, "other", forebay.Dead)
	list := func(q string, limit int) (ids []string) {
		after := ""
		for {
			page := must[api.JobList](t)(s.Jobs(t.Context(), q, after, limit))
			for _, j := range page.Items {
				ids = append(ids, j.JobID)
			}
			if after = page.Next; after == "" {
				return ids
			}
		}
	}
	for q, want := range map[string]string{
		"":                               "w4 w3 w2 w1 w0 " + dead,
		"queue:q":                        "w4 w3 w2 w1 w0",
		"state:dead":                     dead,
		"payload.user.id:3 kind:*lcome":  "w3",
		`code:broken error:"IT BROKE"`:   dead,
		"queue:q payload.user.id:9":      "",
		"state:dead state:waiting id:w1": "w1",
	} {
		for _, limit := range []int{1, 2, 50} {
			if got := strings.Join(list(q, limit), " "); got != want {
				t.Errorf("%q in pages of %d: %s, want %s", q, limit, got, want)
			}
		}
	}
	_, err := s.Jobs(t.Context(), "sate:dead", "", 10)
	wantCode(t, err, forebay.CodeInvalid)
	if !strings.Contains(err.Error(), "column 1") {
		t.Error(err)
	}
	if r := s.do(t, "GET", "/api/jobs?limit=1001", "", nil); r.status != 422 {
		t.Errorf("a limit over the limit: %d", r.status)
	}
}

func TestActionsOnAllThatAFilterMeans(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx := t.Context()
	w := must[*worker.Worker](t)(worker.New(s.broker, worker.Config{Queue: api.BulkQueue, Jobs: api.BulkHandler(s.broker)}))
	background(t, w.Run)
	var jobs []api.NewJob
	for i := range 1500 { // more than a page
		jobs = append(jobs, api.NewJob{ID: fmt.Sprint("j", i), Queue: "q", Name: []string{"even", "odd"}[i%2], Delay: api.Duration(time.Hour)})
	}
	must[api.BulkAdded](t)(s.AddJobs(ctx, jobs[:1000], ""))
	must[api.BulkAdded](t)(s.AddJobs(ctx, jobs[1000:], ""))

	dry := must[api.BulkStarted](t)(s.ActOnJobs(ctx, api.BulkAction{Action: "cancel", Q: "kind:odd", DryRun: true}))
	if dry.JobID != "" || *dry.Matched != 750 || dry.More || len(dry.Sample) != 20 || dry.Sample[0].Name != "odd" {
		t.Errorf("%d matched, %d shown", *dry.Matched, len(dry.Sample))
	}
	act := func(a api.BulkAction) api.BulkOutcome {
		t.Helper()
		started := must[api.BulkStarted](t)(s.ActOnJobs(ctx, a))
		progress := 0
		end := must[api.Job](t)(s.WatchJob(ctx, started.JobID, func(u api.JobUpdate) error {
			if u.Event == "progress" {
				progress++
			}
			return nil
		}))
		var out api.BulkOutcome
		if err := json.Unmarshal(end.Result, &out); err != nil || end.State != forebay.StateCompleted || end.Progress.Percent != 100 {
			t.Fatalf("%v: %+v", err, end)
		}
		return out
	}
	if out := act(api.BulkAction{Action: "cancel", Q: "kind:odd"}); out.Matched != 750 || out.Done != 750 || out.Failed != 0 {
		t.Errorf("cancel: %+v", out)
	}
	if j := must[api.Job](t)(s.Job(ctx, "j1")); j.State != forebay.StateCancelled {
		t.Errorf("an odd one: %+v", j)
	}
	if out := act(api.BulkAction{Action: "promote", Q: "queue:q payload:null"}); out.Done != 750 {
		t.Errorf("promote: %+v", out)
	}
	if q := must[api.Queue](t)(s.Queue(ctx, "q")); q.Waiting != 750 || q.Delayed != 0 {
		t.Errorf("%+v", q)
	}
	s.work(t, "q", forebay.Dead)
	if out := act(api.BulkAction{Action: "retry", All: true}); out.Done != 1 { // dead ones only
		t.Errorf("retry: %+v", out)
	}
	if out := act(api.BulkAction{Action: "retry", Q: "state:cancelled"}); out.Done != 750 {
		t.Errorf("retry of cancelled ones: %+v", out)
	}
	if out := act(api.BulkAction{Action: "remove", Q: "queue:q"}); out.Done != 750 {
		t.Errorf("remove: %+v", out)
	}
	for _, a := range []api.BulkAction{
		{Action: "cancel"}, {Action: "cancel", Q: "queue:q", All: true}, {Action: "cancel", Q: "state:dead"}, {Action: "promote", Q: "x"}, {Action: "explode", All: true},
	} {
		_, err := s.ActOnJobs(ctx, a)
		wantCode(t, err, forebay.CodeInvalid)
	}
}
