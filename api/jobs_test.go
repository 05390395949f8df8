package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
)

// work hands the next job of a queue out and settles it.
func (s *server) work(t *testing.T, queue string, v forebay.Verdict) string {
	t.Helper()
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: queue, Max: 1, Wait: 10 * time.Second}))
	if len(ds) != 1 {
		t.Fatalf("nothing waits in %s", queue)
	}
	one := forebay.Settlement{Receipt: ds[0].Receipt, Queue: queue, Verdict: v}
	if v == forebay.Ack {
		one.Result = []byte(`{"n":1}`)
	} else {
		one.Cause = forebay.Cause{Code: "broken", Message: "it broke", At: time.Now()}
	}
	if errs, err := s.broker.Settle(t.Context(), []forebay.Settlement{one}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	return ds[0].ID
}

func (s *server) add(t *testing.T, n api.NewJob) api.AddedJob {
	t.Helper()
	return must[api.AddedJob](t)(s.AddJob(t.Context(), n, ""))
}

func TestAJobOverTheAPI(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	expires := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	resp := s.do(t, "POST", "/api/jobs", strings.Replace(`{"queue":"mail","name":"welcome","data":{"to":"a@example.com"},
		"delay":"1h","priority":2,"attempts":3,"deliveries":9,"backoff":{"kind":"fixed","base":"2s","cap":"1m","jitter":0.5},
		"timeout":"30s","deadline":"2d","expires":"EXPIRES","dedup":{"key":"d1","mode":"until_finished","window":"10m"},
		"limitKey":"l1","tags":["a","b"],"tenant":"t1","owner":"o1","retention":{"finished":{"age":"7d","count":10},"dead":{"age":"30d"}},
		"parent":"p1","id":"j1","headers":{"h":"v"}}`, "EXPIRES", expires.Format(time.RFC3339), 1),
		map[string]string{"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	var added api.AddedJob
	if err := json.Unmarshal([]byte(resp.body), &added); err != nil || resp.status != 202 || resp.header.Get("Location") != "/api/jobs/j1" {
		t.Fatalf("%+v %v", resp, err)
	}
	if added.JobID != "j1" || added.State != forebay.StateDelayed || added.ProgressURL != "/api/jobs/j1/progress" || added.StreamURL != "/api/jobs/j1/stream" {
		t.Errorf("%+v", added)
	}
	j := must[forebay.Job](t)(s.broker.Job(t.Context(), "j1"))
	o := *j.Job
	if until := time.Until(o.Deadline); until < 47*time.Hour || until > 48*time.Hour || !o.Expires.Equal(expires) {
		t.Errorf("deadline %s, expires %s", o.Deadline, o.Expires)
	}
	o.Deadline, o.Expires = time.Time{}, time.Time{}
	want := forebay.JobOptions{
		Timeout: 30 * time.Second, Backoff: forebay.Backoff{Kind: "fixed", Base: 2 * time.Second, Cap: time.Minute, Jitter: 0.5},
		Dedup: forebay.DedupUntilFinished, Tenant: "t1", Owner: "o1", Tags: []string{"a", "b"}, Parent: "p1",
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Keep:  forebay.Retention{Finished: forebay.Keep{Age: 7 * 24 * time.Hour, Count: 10}, Dead: forebay.Keep{Age: 30 * 24 * time.Hour}},
	}
	if fmt.Sprint(o) != fmt.Sprint(want) {
		t.Errorf("options\n got %+v\nwant %+v", o, want)
	}
	if j.Limits != (forebay.Limits{Attempts: 3, Deliveries: 9}) || j.Priority.Level() != 2 || j.DedupKey != "d1" || j.LimitKey != "l1" ||
		j.Headers["h"] != "v" || j.Kind != "welcome" || string(j.Payload) != `{"to":"a@example.com"}` {
		t.Errorf("%+v", j)
	}
	shown := must[api.Job](t)(s.Job(t.Context(), "j1"))
	if string(shown.Data) != `{"to":"a@example.com"}` || shown.RunAt.IsZero() || shown.Timeout != "30s" || shown.Name != "welcome" {
		t.Errorf("%+v", shown)
	}
	if again := s.add(t, api.NewJob{Queue: "mail", Name: "welcome", Dedup: &api.Dedup{Key: "d1", Mode: "until_finished"}}); again.JobID != "j1" || !again.Duplicate {
		t.Errorf("a duplicate: %+v", again)
	}
}

func TestTheCourseOfAJob(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.add(t, api.NewJob{Queue: "q", Name: "k"}).JobID
	_, err := s.JobResult(t.Context(), id)
	wantCode(t, err, forebay.CodeConflict)
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1}))
	must[[]error](t)(s.broker.Progress(t.Context(), []forebay.ProgressUpdate{{Receipt: ds[0].Receipt,
		Progress: &forebay.Progress{Stage: "load", Percent: 40, Data: []byte(`{"rows":7}`), At: time.Now()},
		Log:      []forebay.LogLine{{At: time.Now(), Text: "seven rows"}},
	}}))
	p := must[api.JobProgress](t)(s.JobProgress(t.Context(), id))
	if p.State != forebay.StateActive || p.Progress.Percent != 40 || string(p.Progress.Data) != `{"rows":7}` {
		t.Errorf("%+v", p)
	}
	must[[]error](t)(s.broker.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Queue: "q", Verdict: forebay.Ack, Result: []byte(`[1]`)}}))
	if r := must[api.JobResult](t)(s.JobResult(t.Context(), id)); r.State != forebay.StateCompleted || string(r.Result) != `[1]` {
		t.Errorf("%+v", r)
	}
	if l := must[api.LogList](t)(s.JobLogs(t.Context(), id, 0, 10)); len(l.Items) != 1 || l.Items[0].Text != "seven rows" {
		t.Errorf("%+v", l)
	}
	var types []string
	after := int64(0)
	for { // in pages of one
		h := must[api.EventList](t)(s.JobHistory(t.Context(), id, after, 1))
		for _, e := range h.Items {
			types = append(types, string(e.Type))
		}
		if after = h.Next; !h.More {
			break
		}
	}
	if got := strings.Join(types, " "); got != "added started progress log completed" {
		t.Errorf("history: %s", got)
	}
	for _, path := range []string{"", "/progress", "/result", "/history", "/logs", "/stream"} {
		if r := s.do(t, "GET", "/api/jobs/none"+path, "", nil); r.status != 404 || r.problem.Code != forebay.CodeNotFound {
			t.Errorf("%s of an unknown job: %d %s", path, r.status, r.body)
		}
	}
}

func TestWhatIsWrongWithANewJobIsSaid(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	tests := []struct{ body, field, says string }{
		{``, "", "empty"},
		{`{"queue":`, "", "not JSON"},
		{`[]`, "", "the body cannot be an array"},
		{`{"queue":{},"name":"k"}`, "queue", "queue cannot be an object"},
		{`{"queue":"q"}`, "name", "no name"},
		{`{"name":"k"}`, "queue", "no name"},
		{`{"queue":"a b","name":"k"}`, "queue", "character"},
		{`{"queue":"q","name":"k","dely":"1s"}`, "dely", "no field"},
		{`{"queue":"q","name":"k","queue":"r"}`, "", "duplicate"},
		{`{"queue":"q","name":"k","delay":5}`, "delay", `cannot be a number here; it is a text with a unit, such as "250ms"`},
		{`{"queue":"q","name":"k","deadline":5}`, "deadline", "duration from now such as"},
		{`{"queue":"q","name":"k","runAt":1767225600000}`, "runAt", `a text such as "2026`},
		{`{"queue":"q","name":"k","attempts":1e3}`, "attempts", "a whole number"},
		{`{"queue":"q","name":"k","priority":5.5}`, "priority", "a whole number"},
		{`{"queue":"q","name":"k","delay":"5"}`, "delay", "250ms, 90s"},
		{`{"queue":"q","name":"k","delay":"-5s"}`, "delay", "no duration"},
		{`{"queue":"q","name":"k","delay":"500d"}`, "runAt", "365 days"},
		{`{"queue":"q","name":"k","delay":"1s","runAt":"2026-01-01T00:00:00Z"}`, "delay", "not both"},
		{`{"queue":"q","name":"k","priority":10}`, "priority", "0 (most urgent) to 9"},
		{`{"queue":"q","name":"k","deadline":"soon"}`, "deadline", "RFC"},
		{`{"queue":"q","name":"k","backoff":{"base":"x"}}`, "backoff.base", "no duration"},
		{`{"queue":"q","name":"k","backoff":{"kind":"odd"}}`, "backoff.kind", "fixed"},
		{`{"queue":"q","name":"k","dedup":{"mode":"throttle"}}`, "dedup.key", "no key"},
		{`{"queue":"q","name":"k","dedup":{"key":"a","mode":"odd"}}`, "dedup.mode", "odd"},
		{`{"queue":"q","name":"k","tags":["` + strings.Repeat("x", 65) + `"]}`, "tags", "64"},
		{`{"queue":"q","name":"k","attempts":-1}`, "attempts", "attempts"},
	}
	for _, tt := range tests {
		r := s.do(t, "POST", "/api/jobs", tt.body, nil)
		says := strings.ReplaceAll(tt.says, "RFC", "neither a time")
		if r.status != 400 || r.problem.Code != forebay.CodeInvalid || !strings.Contains(r.problem.Detail, says) || tt.field != "" && r.problem.Field != tt.field {
			t.Errorf("%s\n answers %d %+v; it should name %q and %q", tt.body, r.status, r.problem, tt.field, says)
		}
	}
	large := `{"queue":"q","name":"k","data":"` + strings.Repeat("x", 1<<20) + `"}`
	if r := s.do(t, "POST", "/api/jobs", large, nil); r.status != 413 {
		t.Errorf("data over the limit: %d", r.status)
	}
	if r := s.do(t, "POST", "/api/jobs", `{"queue":"q","name":"k","data":"`+strings.Repeat("x", 2<<20), nil); r.status != 413 {
		t.Errorf("a body over the limit: %d", r.status)
	}
}

func TestManyJobsEachWithItsResult(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.do(t, "POST", "/api/jobs/bulk", `{"items":[
		{"queue":"q","name":"k","id":"a"}, {"queue":"q"}, {"queue":"q","name":"k","delay":"soon"},
		{"queue":"q","name":"k","id":"a"}, 7, {"queue":"b d","name":"k"}, {"queue":"q","name":"k","id":"b","delay":"1h"}]}`, nil)
	var out api.BulkAdded
	if err := json.Unmarshal([]byte(r.body), &out); err != nil || r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	var got []string
	for _, item := range out.Items {
		if item.Error != nil {
			got = append(got, string(item.Error.Code)+" "+item.Error.Field)
		} else {
			got = append(got, fmt.Sprint(item.JobID, " ", item.State, " ", item.Duplicate))
		}
	}
	want := "a waiting false|invalid name|invalid delay|a waiting true|invalid |invalid queue|b delayed false"
	if strings.Join(got, "|") != want || out.Added != 3 || out.Failed != 4 {
		t.Errorf("got %q, %+v", strings.Join(got, "|"), out)
	}
	jobs := make([]api.NewJob, 1000)
	for i := range jobs {
		jobs[i] = api.NewJob{Queue: "many", Name: "k"}
	}
	if v := must[api.BulkAdded](t)(s.AddJobs(t.Context(), jobs, "")); v.Added != 1000 || v.Items[999].JobID == "" {
		t.Errorf("added %d", v.Added)
	}
	_, err := s.AddJobs(t.Context(), append(jobs, jobs[0]), "")
	wantCode(t, err, forebay.CodeInvalid)
	_, err = s.AddJobs(t.Context(), nil, "")
	wantCode(t, err, forebay.CodeInvalid)
	if r := s.do(t, "POST", "/api/jobs/bulk", `{"items":["`+strings.Repeat("x", 8<<20)+`"]}`, nil); r.status != 413 {
		t.Errorf("a body over the limit: %d", r.status)
	}
}

// A long poll ends with the change, and with what has not been seen yet.
func TestAWaitEndsWithTheChange(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	<-s.broker.Watcher().Ready()
	id := s.add(t, api.NewJob{Queue: "q", Name: "k"}).JobID
	got := make(chan response, 1)
	wait := func(seen string) {
		go func() {
			got <- s.do(t, "GET", "/api/jobs/"+id+"?wait=50s", "", map[string]string{"If-None-Match": seen})
		}()
	}
	first := s.do(t, "GET", "/api/jobs/"+id, "", nil)
	wait(first.header.Get("ETag"))
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1}))
	second := <-got
	if !strings.Contains(second.body, `"state":"active"`) || second.header.Get("ETag") == first.header.Get("ETag") {
		t.Errorf("%+v", second)
	}
	wait(first.header.Get("ETag")) // what changed meanwhile is told at once
	if r := <-got; r.header.Get("ETag") != second.header.Get("ETag") {
		t.Errorf("%+v", r)
	}
	wait(second.header.Get("ETag"))
	must[[]error](t)(s.broker.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Queue: "q", Verdict: forebay.Ack}}))
	if r := <-got; !strings.Contains(r.body, `"state":"completed"`) {
		t.Errorf("%+v", r)
	}
	wait("") // it has finished: nothing will change
	if r := <-got; r.status != 200 {
		t.Errorf("%+v", r)
	}
	if r := s.do(t, "GET", "/api/jobs/"+id+"?wait=51s", "", nil); r.status != 400 || r.problem.Field != "wait" {
		t.Errorf("%+v", r)
	}
	other := s.add(t, api.NewJob{Queue: "q", Name: "k"}).JobID
	if j := must[api.Job](t)(s.WaitJob(t.Context(), other, time.Millisecond)); j.State != forebay.StateWaiting {
		t.Errorf("%+v", j)
	}
}
