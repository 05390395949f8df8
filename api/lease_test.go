package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/stream"
)

func (s *server) lease(t *testing.T, n int) []api.Lease {
	t.Helper()
	leased := must[[]api.Lease](t)(s.LeaseJobs(t.Context(), "q", api.LeaseRequest{Max: n, Wait: api.Duration(10 * time.Second), LeaseSeconds: 60}))
	if len(leased) != n {
		t.Fatalf("leased %d of %d", len(leased), n)
	}
	return leased
}

func TestAWorkerThatPulls(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx := t.Context()
	one := 1
	for i, n := range []api.NewJob{{}, {}, {Attempts: 1}, {}, {}, {}} {
		n.ID, n.Queue, n.Name, n.Data, n.Priority = fmt.Sprint("j", i), "q", "k", json.RawMessage(`{"n":1}`), &one
		s.add(t, n)
	}
	l := s.lease(t, 6)
	if l[0].JobID != "j0" || string(l[0].Data) != `{"n":1}` || l[0].Attempt != 1 || time.Until(l[0].LeaseUntil) < 50*time.Second {
		t.Errorf("%+v", l[0])
	}
	told := must[[]api.LeaseResult](t)(s.TellProgress(ctx, api.TellProgress{Items: []api.ToldProgress{
		{Receipt: l[0].Receipt, Progress: &stream.Progress{Stage: "half", Percent: 50}, Log: []api.LogLine{{Text: "line"}}},
		{Receipt: "nonsense", Progress: &stream.Progress{}},
		{Receipt: l[1].Receipt, Progress: &stream.Progress{Percent: 500}},
	}}))
	if told[0].Error != nil || told[1].Error == nil || told[1].Error.Field != "receipt" || told[2].Error == nil {
		t.Errorf("%+v", told)
	}
	if p := must[api.JobProgress](t)(s.JobProgress(ctx, "j0")); p.Progress.Stage != "half" {
		t.Errorf("%+v", p)
	}
	must[api.Acted](t)(s.CancelJob(ctx, "j4", "no more"))
	extended := must[[]api.LeaseResult](t)(s.ExtendLeases(ctx, api.ExtendLeases{Receipts: []string{l[0].Receipt, l[4].Receipt}}))
	if extended[0].Cancel || extended[0].Error != nil || !extended[1].Cancel {
		t.Errorf("%+v", extended)
	}
	after := api.Duration(time.Hour)
	broken := &api.LeaseCause{Code: "E1", Message: "it broke", Detail: map[string]string{"a": "b"}}
	settled := must[[]api.LeaseResult](t)(s.SettleLeases(ctx, api.SettleLeases{Items: []api.SettleLease{
		{Receipt: l[0].Receipt, Verdict: "ack", Result: json.RawMessage(`{"ok":true}`), Next: []api.NewJob{{ID: "next", Queue: "later", Name: "k"}}},
		{Receipt: l[1].Receipt, Verdict: "retry", After: &after, Cause: broken},
		{Receipt: l[2].Receipt, Verdict: "retry", Cause: broken}, // its last attempt
		{Receipt: l[3].Receipt, Verdict: "release"},
		{Receipt: l[4].Receipt, Verdict: "cancelled"},
		{Receipt: l[5].Receipt, Verdict: "dead", Cause: broken},
		{Receipt: l[0].Receipt, Verdict: "ack"}, // void now
		{Receipt: l[5].Receipt, Verdict: "ack", After: &after},
	}}))
	var got []string
	for _, r := range settled {
		if r.Error != nil {
			got = append(got, string(r.Error.Code))
		} else {
			got = append(got, string(r.State))
		}
	}
	if want := "[completed delayed dead waiting cancelled dead lease_lost invalid]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s: %+v", got, want, settled)
	}
	for id, want := range map[string]forebay.State{
		"j0": "completed", "j1": "delayed", "j2": "dead", "j3": "waiting", "j4": "cancelled", "j5": "dead", "next": "waiting",
	} {
		j := must[api.Job](t)(s.Job(ctx, id))
		if j.State != want {
			t.Errorf("%s is %s, want %s", id, j.State, want)
		}
		if id == "j5" && (j.Cause.Code != "E1" || j.Cause.Detail["a"] != "b") || id == "next" && j.Parent != "j0" || id == "j0" && string(j.Result) != `{"ok":true}` {
			t.Errorf("%+v", j)
		}
		if id == "j1" && (j.Attempts != 1 || time.Until(j.RunAt) < 59*time.Minute) || id == "j3" && j.Deliveries != 0 {
			t.Errorf("%+v", j)
		}
	}
}

func TestLeasesWithinTheirLimits(t *testing.T) {
	t.Parallel()
	s, ctx := start(t, nil), t.Context()
	_, err := s.LeaseJobs(ctx, "q", api.LeaseRequest{Wait: api.Duration(time.Minute)})
	wantCode(t, err, forebay.CodeInvalid)
	_, err = s.LeaseJobs(ctx, "a b", api.LeaseRequest{})
	wantCode(t, err, forebay.CodeInvalid)
}

// Who writes the bodies by hand need not tell what can be left out.
func TestProgressTakesWhatThereIs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.add(t, api.NewJob{ID: "j", Queue: "q", Name: "k"})
	held := s.lease(t, 1)[0].Receipt
	for _, item := range []string{`"progress":{"stage":"bank"}`, `"log":[{"text":"line"}]`} {
		body := `{"items":[{"receipt":"` + held + `",` + item + `}]}`
		if r := s.do(t, "POST", "/api/leases/progress", body, nil); r.status != 200 || strings.Contains(r.body, "error") {
			t.Errorf("%s: %+v", item, r)
		}
	}
	if p := must[api.JobProgress](t)(s.JobProgress(t.Context(), "j")); p.Progress.Stage != "bank" || time.Since(p.Progress.At) > time.Minute {
		t.Errorf("%+v", p)
	}
}

// A target of a push has no key: the receipt that it was given is proof enough, for
// progress and nothing else.
func TestReceiptsAreProof(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Loopback = false })
	var err error
	if s.Client, err = api.NewClient(s.url, token, s.http); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"j1", "j2"} {
		s.add(t, api.NewJob{ID: id, Queue: "q", Name: "k"})
	}
	l := s.lease(t, 2)
	own, _, _ := strings.Cut(l[0].Receipt, ".")
	_, other, _ := strings.Cut(l[1].Receipt, ".")
	tell := func(receipts ...string) response {
		t.Helper()
		var items []string
		for _, r := range receipts {
			items = append(items, `{"receipt":"`+r+`","progress":{"stage":"bank","percent":5}}`)
		}
		return s.do(t, "POST", "/api/leases/progress", `{"items":[`+strings.Join(items, ",")+`]}`, nil)
	}
	for name, forged := range map[string]string{"unsigned": own, "no signature": own + ".", "another's signature": own + "." + other, "nonsense": "x.y"} {
		if r := tell(l[1].Receipt, forged); r.status != 401 || r.problem.Code != forebay.CodeUnauthorized || r.problem.Field != "items[1].receipt" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if p := must[api.JobProgress](t)(s.JobProgress(t.Context(), "j2")); p.Progress.Stage != "" {
		t.Errorf("told with a forged one: %+v", p)
	}
	if r := tell(l[0].Receipt); r.status != 200 || strings.Contains(r.body, "error") {
		t.Errorf("%+v", r)
	}
	if p := must[api.JobProgress](t)(s.JobProgress(t.Context(), "j1")); p.Progress.Stage != "bank" {
		t.Errorf("%+v", p)
	}
	large := `{"items":[{"receipt":"` + l[0].Receipt + `","progress":{"message":"` + strings.Repeat("x", 1<<20) + `"}}]}`
	if r := s.do(t, "POST", "/api/leases/progress", large, nil); r.status != 413 {
		t.Errorf("a large one: %d %s", r.status, r.body)
	}
	for path, body := range map[string]string{
		"/api/leases/extend": `{"receipts":["` + l[0].Receipt + `"]}`,
		"/api/leases/settle": `{"items":[{"receipt":"` + l[0].Receipt + `","verdict":"ack"}]}`,
	} {
		if r := s.do(t, "POST", path, body, nil); r.status != 401 {
			t.Errorf("%s: %+v", path, r)
		}
	}
	wrong := map[string]string{"Authorization": "Bearer nonsense"}
	if r := s.do(t, "POST", "/api/leases/progress", `{"items":[{"receipt":"`+l[0].Receipt+`"}]}`, wrong); r.status != 401 {
		t.Errorf("with a wrong key: %+v", r)
	}
	must[[]api.LeaseResult](t)(s.SettleLeases(t.Context(), api.SettleLeases{Items: []api.SettleLease{{Receipt: l[0].Receipt, Verdict: "ack"}}}))
	if r := tell(l[0].Receipt); r.status != 200 || !strings.Contains(r.body, "lease_lost") {
		t.Errorf("after the end: %+v", r)
	}
}

// curl -d calls every body a form.
func TestBodiesOfFormsAreJSON(t *testing.T) {
	t.Parallel()
	s := startSchedules(t)
	s.add(t, api.NewJob{ID: "j", Queue: "q", Name: "k"})
	s.add(t, api.NewJob{ID: "j2", Queue: "q", Name: "k"})
	held := s.lease(t, 1)[0].Receipt
	for _, c := range [][3]string{
		{"POST", "/api/jobs", `{"queue":"q","name":"k"}`},
		{"PATCH", "/api/jobs/j2", `{"priority":3}`},
		{"POST", "/api/jobs/j2/cancel", `{"reason":"no more"}`},
		{"POST", "/api/jobs/actions", `{"action":"cancel","q":"queue:other","dryRun":true}`},
		{"POST", "/api/queues/q/lease", `{"max":1}`},
		{"POST", "/api/leases/extend", `{"receipts":["RECEIPT"]}`},
		{"POST", "/api/leases/progress", `{"items":[{"receipt":"RECEIPT","progress":{"percent":5}}]}`},
		{"POST", "/api/leases/settle", `{"items":[{"receipt":"RECEIPT","verdict":"ack"}]}`},
		{"PUT", "/api/schedules/nightly", `{"every":"1h","job":{"queue":"q","name":"k"}}`},
		{"POST", "/api/schedules/preview", `{"every":"1h"}`},
	} {
		form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		r := s.do(t, c[0], c[1], strings.ReplaceAll(c[2], "RECEIPT", held), form)
		if r.status >= 300 || strings.Contains(r.body, "error") {
			t.Errorf("%s: %+v", c[1], r)
		}
	}
}

// Whoever takes several at once has to know which of them are one group, to keep its order.
func TestALeaseNamesItsGroup(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, group := range []string{"g", "g", ""} {
		s.add(t, api.NewJob{Queue: "q", Name: "k", Group: group})
	}
	var groups []string
	for _, l := range s.lease(t, 3) {
		groups = append(groups, l.Group)
	}
	if slices.Sort(groups); !slices.Equal(groups, []string{"", "g", "g"}) {
		t.Errorf("groups %q", groups)
	}
}
