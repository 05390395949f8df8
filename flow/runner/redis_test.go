package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/internal/redistest"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

const redisFlow = `flow: f
steps:
  a: {use: step, with: {n: "${input.n}", step: a}, compensate: {use: undo, with: 1}}
  way: {needs: a, branch: [{when: input.n % 3 == 0, to: each}, {to: [b, c]}]}
  each: {use: step, for_each: {in: "5", max_in_flight: 2}, with: {n: "${input.n}", step: each}}
  b: {use: step, queue: other, with: {n: "${input.n}", step: b}, on_failure: skip}
  c: {use: step, with: {n: "${input.n}", step: c}}
  all: {join: any, needs: [each, b, c]}
  look: {needs: all, wait: {approval: true, timeout: 1h}}
  paid: {needs: look, wait: {event: {type: paid, match: event.n == input.n}, timeout: 1h}}
  sub: {flow: g, needs: paid, with: {n: "${input.n}"}}
  last: {use: step, needs: sub, with: {n: "${input.n}", step: last}}
output: "${steps.last.output}"
`

// process is a program on a store that it shares with others.
type process struct {
	*runner.Runner
	b *broker.Broker
}

// openOnRedis makes one, which ends with the test.
func openOnRedis(t *testing.T, url string, mux *task.Mux) process {
	t.Helper()
	e, err := redis.Open(t.Context(), redis.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{Policy: broker.Policy{Attempts: 2, Base: time.Millisecond, Cap: 2 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(b, runner.Config{Watch: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	run := func(f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	run(b.Watcher().Run)
	run(r.Run)
	for _, cfg := range []worker.Config{
		{Queue: r.Queue(), Jobs: r.Handler(), Concurrency: 20}, {Queue: r.AdvanceQueue(), Batch: r.Advances()},
		{Queue: flow.DefaultQueue, Jobs: r.Steps(mux)}, {Queue: "other", Jobs: r.Steps(mux)},
	} {
		w, err := worker.New(b, cfg)
		if err != nil {
			t.Fatal(err)
		}
		run(w.Run)
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
		b.Close()
	})
	return process{r, b}
}

// Two processes work on the same runs, on Redis: branches, items, joins, approvals,
// events, sub-flows, failures that are skipped, that undo the run, and that wait as a
// dead letter until it is replayed.
func TestFlowsOnRedis(t *testing.T) {
	t.Parallel()
	const runs = 14
	var mux task.Mux
	type data struct {
		N    int    `json:"n"`
		Step string `json:"step"`
	}
	mux.Handle("step", task.Func(func(_ context.Context, j *worker.Job, d data) (int, error) {
		if d.Step == "b" && d.N%5 == 0 || d.Step == "last" && d.N%7 == 0 {
			return 0, errNo
		}
		return 2 * d.N, nil
	}))
	var mended atomic.Bool
	mux.Handle("mend", task.Func(func(context.Context, *worker.Job, any) (any, error) {
		if !mended.Load() {
			return nil, errNo
		}
		return "well", nil
	}))
	mux.Handle("undo", task.Func(func(context.Context, *worker.Job, any) (any, error) { return nil, nil }))
	url := redistest.Start(t, redistest.Config{}).URL(0)
	both := []process{openOnRedis(t, url, &mux), openOnRedis(t, url, &mux)}
	ctx := t.Context()
	for _, src := range []string{redisFlow, "flow: g\nsteps:\n  x: {use: step, with: {n: \"${input.n}\", step: x}}\n", "flow: h\nsteps:\n  m: {use: mend, on_failure: dead_letter}\n"} {
		if _, problems, err := both[0].Put(ctx, []byte(src), flow.Known{}); err != nil || len(problems.Errors()) > 0 {
			t.Fatal(err, problems)
		}
	}
	for n := range runs {
		if _, err := both[n%2].Start(ctx, runner.Start{Flow: "f", ID: fmt.Sprint("r", n), Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := both[0].Start(ctx, runner.Start{Flow: "h", ID: "h"}); err != nil {
		t.Fatal(err)
	}
	soon(t, func() string {
		if v, err := both[1].Get(ctx, "h"); err != nil || v.Steps["m"].State != flow.StepDead {
			return fmt.Sprint("the dead letter is not waited for: ", err)
		}
		return ""
	})
	mended.Store(true)
	if results, err := both[1].b.Retry(ctx, []string{"h/m"}); err != nil || results[0].Err != nil {
		t.Fatal(err, results)
	}
	for n := range runs {
		soon(t, func() string { return driven(ctx, both[n%2], n) })
	}
	soon(t, func() string {
		if v, err := both[0].Get(ctx, "h"); err != nil || v.State != flow.RunCompleted {
			return fmt.Sprint("the replayed one is ", v.State, err)
		}
		return ""
	})
	for n := range runs {
		j, err := both[0].b.Job(ctx, fmt.Sprint("r", n))
		if want := map[bool]forebay.State{true: forebay.StateDead, false: forebay.StateCompleted}[n%7 == 0]; err != nil || j.State != want {
			t.Errorf("the job of run %d is %s, want %s: %v", n, j.State, want, err)
		}
	}
	page, err := both[1].List(ctx, runner.Query{Flow: "f", Limit: 100})
	if err != nil || len(page.Runs) != runs {
		t.Errorf("%d runs are listed: %v", len(page.Runs), err)
	}
}

// driven gives a run what it waits for, and says how it is; empty: as it has to end.
func driven(ctx context.Context, p process, n int) string {
	id := fmt.Sprint("r", n)
	v, err := p.Get(ctx, id)
	if err != nil {
		return err.Error()
	}
	if v.Steps["look"].State == flow.StepSent {
		err = p.Approve(ctx, id, "look", runner.Approval{Approved: true, By: "Ann"})
	}
	if v.Steps["paid"].State == flow.StepSent && err == nil {
		_, err = p.Event(ctx, "paid", json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)))
	}
	states := map[string]flow.StepState{"a": flow.StepCompleted, "each": flow.StepSkipped, "b": flow.StepCompleted, "c": flow.StepCompleted, "sub": flow.StepCompleted, "last": flow.StepCompleted}
	end := flow.RunCompleted
	if n%3 == 0 {
		states["each"], states["b"], states["c"] = flow.StepCompleted, flow.StepSkipped, flow.StepSkipped
	} else if n%5 == 0 {
		states["b"] = flow.StepSkipped
	}
	if n%7 == 0 {
		states["last"], end = flow.StepFailed, flow.RunFailed
	}
	var wrong []string
	if v.State != end {
		wrong = append(wrong, fmt.Sprintf("run %d is %s, want %s; it waits for %v (%v)", n, v.State, end, v.Waiting, err))
	} else if undone := v.Steps["a"].Undo == flow.UndoDone; undone != (end == flow.RunFailed) {
		wrong = append(wrong, fmt.Sprintf("run %d: undone is %v", n, undone))
	}
	for step, want := range states {
		if got := v.Steps[step].State; v.State.Final() && got != want {
			wrong = append(wrong, fmt.Sprintf("%s of run %d is %s, want %s", step, n, got, want))
		}
	}
	return strings.Join(wrong, "; ")
}

// soon asks until nothing is wrong.
func soon(t *testing.T, wrong func() string) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	end := time.After(20 * time.Second)
	for {
		text := wrong()
		if text == "" {
			return
		}
		select {
		case <-again.C:
		case <-end:
			t.Fatal(text)
		}
	}
}
