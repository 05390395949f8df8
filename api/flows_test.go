package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// withFlows is a server that runs flows, whose steps of the queue work are done here.
func withFlows(t *testing.T, mux *task.Mux) *server {
	t.Helper()
	var r *runner.Runner
	s := start(t, func(cfg *api.Config) {
		r = must[*runner.Runner](t)(runner.New(cfg.Broker, runner.Config{Alone: true}))
		cfg.Flows, cfg.Known = r, flow.Known{Queues: map[string][]string{"work": mux.Kinds()}}
	})
	for _, cfg := range []worker.Config{
		{Queue: r.Queue(), Jobs: r.Handler()}, {Queue: r.AdvanceQueue(), Batch: r.Advances()}, {Queue: "work", Jobs: r.Steps(mux)},
	} {
		background(t, must[*worker.Worker](t)(worker.New(s.broker, cfg)).Run)
	}
	background(t, r.Run)
	return s
}

const order = `flow: order
input: {type: object, required: [n], properties: {n: {type: integer}}}
steps:
  double: {use: double, queue: work, with: "${input.n}"}
  look: # a person's
    needs: double
    wait: {approval: {role: ops}, timeout: 1h}
  ship: {use: ship, queue: outside, needs: look, with: {n: "${steps.double.output}"}, on_failure: skip}
  told: {wait: {event: {type: paid, match: event.n == input.n}, timeout: 1h}, needs: ship}
output: {n: "${steps.double.output}", shipped: "${steps.ship.state}"}
`

func heated(t *testing.T, s *server) {
	t.Helper()
	if heat := must[api.FlowHeat](t)(s.FlowHeat(t.Context(), "order", "1h")); heat.Runs != 1 || len(heat.Steps) == 0 || heat.Steps[0].ID != "double" || heat.Steps[0].Count != 1 || heat.Steps[0].Failed != 0 {
		t.Errorf("heat: %+v", heat)
	}
}

// One run from its start to its end, by all that the API has: an approval, a worker
// that pulls, an event, and a stream of it.
func TestARunOverTheAPI(t *testing.T) {
	t.Parallel()
	var mux task.Mux
	mux.Handle("double", task.Func(func(_ context.Context, _ *worker.Job, n int) (int, error) { return 2 * n, nil }))
	s, ctx := withFlows(t, &mux), t.Context()
	put := must[api.PutFlow](t)(s.PutFlow(ctx, "order", []byte(order)))
	if put.Version != 1 || !put.Created || len(put.Problems) != 1 || put.Problems[0].Code != flow.CodeUnworkedQueue {
		t.Errorf("put: %+v", put)
	}
	started := must[api.StartedRun](t)(s.StartRun(ctx, "order", api.StartRun{Input: json.RawMessage(`{"n":21}`), Tags: []string{"t"}}, "key-1"))
	if again := must[api.StartedRun](t)(s.StartRun(ctx, "order", api.StartRun{Input: json.RawMessage(`{"n":21}`), Tags: []string{"t"}}, "key-1")); again != started || started.Duplicate {
		t.Errorf("a repetition is %+v, and was %+v", again, started)
	}
	id, seen, places := started.RunID, map[string]bool{}, []string{}
	waits := func(r *api.FlowRun, step string) bool {
		return len(r.Waiting) > 0 && r.Waiting[0].Step == step && !seen[step]
	}
	end := must[api.FlowRun](t)(s.WatchRun(ctx, id, func(u api.RunUpdate) error {
		if u.ID != "" {
			places = append(places, u.ID)
		}
		if u.Step != nil {
			seen[u.Step.Step+" "+string(u.Step.Type)] = true
		}
		if u.Run == nil {
			return nil
		}
		switch r := u.Run; {
		case waits(r, "look"):
			seen["look"] = true
			if r.Steps[1].WaitsFor != "an approval by ops, for up to 1h" || r.Steps[0].Job.Attempts != 0 || r.Steps[0].State != flow.StepCompleted {
				t.Errorf("it waits: %+v", r.Steps)
			}
			_, err := s.ApproveRun(ctx, id, api.ApproveRun{Step: "look", By: "Ann"})
			return err
		case waits(r, "ship"):
			seen["ship"] = true
			return s.pull(ctx, t, "outside")
		case waits(r, "told"):
			seen["told"] = true
			other := must[int](t)(s.SendFlowEvent(ctx, api.FlowEvent{Type: "paid", Data: json.RawMessage(`{"n":1}`)}))
			ours := must[int](t)(s.SendFlowEvent(ctx, api.FlowEvent{Type: "paid", Data: json.RawMessage(`{"n":21}`)}))
			if other != 0 || ours != 1 {
				t.Errorf("told: %d by another's event, %d by its own", other, ours)
			}
		}
		return nil
	}))
	heated(t, s)
	if end.State != flow.RunCompleted || string(end.Output) != `{"n":42,"shipped":"skipped"}` || len(end.Waiting) > 0 || end.FinishedAt.IsZero() {
		t.Errorf("it ended as %+v, with %s", end, end.Output)
	}
	if out := string(end.Steps[1].Output); !strings.Contains(out, `"by":"Ann, told by`) || end.Steps[2].Error.Message != "no stock" {
		t.Errorf("the approval is %s, and the error %+v", out, end.Steps[2].Error)
	}
	for _, want := range []string{"look completed", "ship started", "ship cancelled", "told completed"} {
		if !seen[want] {
			t.Errorf("the stream did not tell %q, but %v", want, seen)
		}
	}
	s.comeAgain(t, "/api/runs/"+id+"/stream", places)
	list := must[api.RunList](t)(s.Runs(ctx, api.RunFilter{Flow: "order", State: flow.RunCompleted}, "", 10))
	if len(list.Items) != 1 || list.Items[0].RunID != id || list.Items[0].State != flow.RunCompleted {
		t.Errorf("the list is %+v", list)
	}
	if log := s.log.String(); log != "" {
		t.Error(log)
	}
}

// comeAgain opens the stream of a run that has ended, as clients do that have seen some
// of it, all, or something else.
func (s *server) comeAgain(t *testing.T, path string, places []string) {
	t.Helper()
	if resp := s.do(t, http.MethodGet, path, "", map[string]string{"Last-Event-ID": "x-1"}); resp.status != 200 || !strings.Contains(resp.body, "event: reset") || !strings.Contains(resp.body, "event: done") {
		t.Errorf("a place that is not there: %+v", resp)
	}
	if resp := s.do(t, http.MethodGet, path, "", map[string]string{"Last-Event-ID": places[len(places)-1]}); resp.status != 204 {
		t.Errorf("who has seen the end gets %+v", resp)
	}
	missed := s.do(t, http.MethodGet, path+"?last_event_id="+places[0], "", nil)
	if step, snapshot := strings.Index(missed.body, "event: step"), strings.Index(missed.body, "event: snapshot"); missed.status != 200 || step < 0 || snapshot < step || strings.Contains(missed.body, "event: reset") {
		t.Errorf("who has missed something gets %+v", missed)
	}
}

// pull does a step as a worker in another language does.
func (s *server) pull(ctx context.Context, t *testing.T, queue string) error {
	leases := must[[]api.Lease](t)(s.LeaseJobs(ctx, queue, api.LeaseRequest{}))
	if len(leases) != 1 || string(leases[0].Data) != `{"n":42}` {
		t.Fatalf("leased: %+v", leases)
	}
	results, err := s.SettleLeases(ctx, api.SettleLeases{Items: []api.SettleLease{
		{Receipt: leases[0].Receipt, Verdict: "dead", Cause: &api.LeaseCause{Message: "no stock"}},
	}})
	if err == nil && results[0].Error != nil {
		t.Errorf("%+v", results[0].Error)
	}
	return err
}

// What is wrong with a file is told with its places, and what is wrong with a request.
func TestWrongFlows(t *testing.T) {
	t.Parallel()
	var mux task.Mux
	mux.Handle("a", task.Func(func(context.Context, *worker.Job, any) (any, error) { return nil, nil }))
	s, ctx := withFlows(t, &mux), t.Context()
	bad := "flow: f\nsteps:\n  a: {use: b, queue: work}\n  c: {use: a, queue: work, needs: d}\n"
	resp := s.do(t, http.MethodPut, "/api/flows/f", bad, nil)
	var p api.Problem
	if err := json.Unmarshal([]byte(resp.body), &p); err != nil || resp.status != 400 || len(p.Problems) != 2 || p.Problems[0].Code != "unknown_handler" || p.Problems[1].Line != 4 {
		t.Errorf("put: %d %s", resp.status, resp.body)
	}
	checked := must[api.CheckedFlow](t)(s.CheckFlow(ctx, []byte("flow: f\nsteps:\n  s: {flow: other}\n")))
	if !checked.Valid || len(checked.Problems) != 1 || checked.Problems[0].Code != "unknown_flow" || checked.Problems[0].Line != 3 || len(checked.Steps) != 1 {
		t.Errorf("checked: %+v", checked)
	}
	first := "flow: f # ours\nsteps:\n  a: {use: a, queue: work}\n"
	must[api.PutFlow](t)(s.PutFlow(ctx, "f", []byte(first)))
	edited := s.do(t, http.MethodPost, "/api/flows/edit", `{"source":"flow: f # ours\nsteps:\n  a: {use: a, queue: work}\n","edits":[{"path":"steps.a.timeout","value":"5s"},{"path":"steps.b","value":{"delay":"1s"}}]}`, nil)
	var text api.FlowText
	if err := json.Unmarshal([]byte(edited.body), &text); err != nil || !strings.HasPrefix(text.Source, "flow: f # ours\n") {
		t.Fatalf("edit: %+v", edited)
	}
	if d := must[api.FlowDiff](t)(s.DiffFlowFile(ctx, "f", 0, []byte(text.Source))); d.From != 1 || len(d.Changes) != 2 {
		t.Errorf("diff: %+v", d)
	}
	must[api.PutFlow](t)(s.PutFlow(ctx, "f", []byte(text.Source)))
	versions := must[api.FlowVersions](t)(s.FlowVersions(ctx, "f", 0, 10))
	if len(versions.Items) != 2 || versions.Items[0].Version != 2 || len(versions.Items[0].Changes) != 2 {
		t.Errorf("versions: %+v", versions)
	}
	if v := must[api.Flow](t)(s.Flow(ctx, "f", 1)); v.Source != first || v.Latest != 2 || v.Version != 1 {
		t.Errorf("version 1: %+v", v)
	}
	if list := must[api.FlowList](t)(s.Flows(ctx, "", 10)); len(list.Items) != 1 || list.Items[0].Steps != 2 {
		t.Errorf("list: %+v", list)
	}
	run := must[api.StartedRun](t)(s.StartRun(ctx, "f", api.StartRun{}, ""))
	for _, c := range []struct{ method, path, body, want string }{
		{"PUT", "/api/flows/g", first, `400 flow the file is of the flow "f", and the path names "g"`},
		{"GET", "/api/flows/none", "", `404  there is no flow "none"`},
		{"GET", "/api/flows/f?version=7", "", `404  the flow f has no version 7`},
		{"POST", "/api/flows/none/runs", "{}", `404  there is no flow "none"`},
		{"GET", "/api/flows/none/runs", "", `404  there is no flow "none"`},
		{"GET", "/api/runs/none", "", `404  there is no run "none"`},
		{"GET", "/api/runs/none/stream", "", `404  there is no run "none"`},
		{"POST", "/api/runs/none/cancel", "", `404  there is no run "none"`},
		{"POST", "/api/runs/" + run.RunID + "/skip", "", `400 step skip needs a step`},
		{"POST", "/api/runs/" + run.RunID + "/pause", `{"step":"a"}`, `400 step pause is for the whole run; retry, skip and discard name a step`},
		{"POST", "/api/runs/" + run.RunID + "/retry", `{"input":1}`, `400 input an input is for retry of a step`},
		{"POST", "/api/runs/" + run.RunID + "/approve", `{"step":"a"}`, `404  the run ` + run.RunID + ` has no step "a" that waits for an approval`},
	} {
		resp := s.do(t, c.method, c.path, c.body, nil)
		var p api.Problem
		_ = json.Unmarshal([]byte(resp.body), &p)
		if got := strings.Join([]string{resp.body[strings.Index(resp.body, `"status":`)+9:][:3], p.Field, p.Detail}, " "); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
	end := must[api.FlowRun](t)(s.WatchRun(ctx, run.RunID, func(api.RunUpdate) error { return nil }))
	if _, err := s.TellRun(ctx, run.RunID, flow.DoCancel, api.RunCommand{}); forebay.CodeOf(err) != forebay.CodeConflict || end.Version != 2 {
		t.Errorf("cancelled after its end: %v; %+v", err, end)
	}
}
