package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
)

func TestActionsOnOneJob(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx := t.Context()
	hour := api.Duration(time.Hour)

	id := s.add(t, api.NewJob{Queue: "q", Name: "k", Delay: hour}).JobID
	if v := must[api.Acted](t)(s.PromoteJob(ctx, id)); v.State != forebay.StateWaiting {
		t.Errorf("promoted: %+v", v)
	}
	two := 2
	if v := must[api.Acted](t)(s.ChangeJob(ctx, id, api.JobPatch{Priority: &two, Delay: &hour, Data: json.RawMessage(`{"n":2}`)})); v.State != forebay.StateDelayed {
		t.Errorf("changed: %+v", v)
	}
	if j := must[api.Job](t)(s.Job(ctx, id)); j.Priority != 2 || string(j.Data) != `{"n":2}` || time.Until(j.RunAt) < 59*time.Minute {
		t.Errorf("changed: %+v", j)
	}
	_, err := s.ChangeJob(ctx, id, api.JobPatch{})
	wantCode(t, err, forebay.CodeInvalid)
	_, err = s.ChangeJob(ctx, id, api.JobPatch{Delay: &hour, RunAt: time.Now()})
	wantCode(t, err, forebay.CodeInvalid)
	_, err = s.RemoveJob(ctx, id)
	wantCode(t, err, forebay.CodeConflict)
	_, err = s.RetryJob(ctx, id)
	wantCode(t, err, forebay.CodeConflict)

	if v := must[api.Acted](t)(s.CancelJob(ctx, id, "wrong list")); v.State != forebay.StateCancelled {
		t.Errorf("cancelled: %+v", v)
	}
	if j := must[api.Job](t)(s.Job(ctx, id)); j.State != forebay.StateCancelled || j.FailedReason != "wrong list" {
		t.Errorf("cancelled: %+v", j)
	}
	_, err = s.CancelJob(ctx, id, "")
	wantCode(t, err, forebay.CodeConflict)
	_, err = s.PromoteJob(ctx, id)
	wantCode(t, err, forebay.CodeConflict)
	retried := must[api.Acted](t)(s.RetryJob(ctx, id))
	if j := must[api.Job](t)(s.Job(ctx, retried.JobID)); retried.JobID == id || j.Parent != id || j.State != forebay.StateWaiting {
		t.Errorf("retried: %+v, %+v", retried, j)
	}
	must[api.Acted](t)(s.RemoveJob(ctx, id))
	_, err = s.Job(ctx, id)
	wantCode(t, err, forebay.CodeNotFound)

	dead := s.work(t, "q", forebay.Dead)
	if v := must[api.Acted](t)(s.RetryJob(ctx, dead)); v.JobID != dead {
		t.Errorf("a dead one: %+v", v)
	}
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(ctx, engine.Receive{Queue: "q", Max: 1}))
	if v := must[api.Acted](t)(s.CancelJob(ctx, ds[0].ID, "")); v.State != forebay.StateActive {
		t.Errorf("a running one: %+v", v)
	}
	if j := must[api.Job](t)(s.Job(ctx, ds[0].ID)); !j.CancelRequested {
		t.Errorf("a running one: %+v", j)
	}
	for _, act := range []func(context.Context, string) (api.Acted, error){s.RetryJob, s.PromoteJob, s.RemoveJob} {
		_, err := act(ctx, "none")
		wantCode(t, err, forebay.CodeNotFound)
	}
}

// What is refused names the field, and not the part of the server that refused it.
func TestRefusalsAreForUsers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.add(t, api.NewJob{ID: "j", Queue: "q", Name: "k", Group: "g"})
	r := s.do(t, "PATCH", "/api/jobs/j", `{"priority":3}`, nil)
	if p := r.problem; r.status != 400 || p.Field != "priority" || !strings.HasPrefix(p.Detail, "a job of a group") {
		t.Errorf("%+v", r)
	}
	for _, path := range []string{"/api/jobs/none", "/api/jobs/none/stream", "/api/dead/99"} {
		if r := s.do(t, "GET", path, "", nil); r.status != 404 || r.problem.Detail == "" || strings.Contains(r.problem.Detail, ": ") {
			t.Errorf("%s: %+v", path, r)
		}
	}
}
