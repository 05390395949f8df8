//go:build e2e && linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
)

// crashFlow has all that runs can be made of: a branch, steps side by side, a join, items,
// a step that may fail and be skipped, one that fails the run, and what undoes it.
const crashFlow = `flow: crash
input: {type: object, properties: {n: {type: integer}}}
steps:
  first: {use: work, queue: work, with: {n: "${input.n}", step: first}, compensate: {use: undo, queue: work, with: 1}}
  way:
    needs: first
    branch: [{when: input.n % 3 == 0, to: items}, {to: [left, right]}]
  items: {use: work, queue: work, for_each: {in: "3", max_in_flight: 2}, with: {n: "${input.n}", step: items}}
  left: {use: work, queue: work, with: {n: "${input.n}", step: left}, on_failure: skip}
  right: {use: work, queue: work, with: {n: "${input.n}", step: right}}
  both: {join: any, needs: [items, left, right]}
  pause: {delay: 20ms, needs: both}
  last: {use: work, queue: work, needs: pause, with: {n: "${input.n}", step: last}}
output: "${steps.last.output}"
`

// crashStep does a step, the same each time.
func crashStep(kind string, data json.RawMessage) (any, error) {
	var d struct {
		N    int
		Step string
	}
	if kind == "undo" {
		return "undone", nil
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	if d.Step == "left" && d.N%5 == 0 || d.Step == "last" && d.N%7 == 0 {
		return nil, fmt.Errorf("%s of %d fails", d.Step, d.N)
	}
	return d.N * 2, nil
}

// asTheModelSays is how a run ends whose jobs all run once, in the order in which the
// plan sends them. Joins and skips do not make that depend on the order here.
func asTheModelSays(plan *flow.Plan, n int) string {
	input := flow.NewInput(fmt.Appendf(nil, `{"n":%d}`, n))
	run := plan.Begin("model", time.Now())
	todo := plan.Advance(run, input).Send
	for len(todo) > 0 {
		s := todo[0]
		e := flow.Event{Step: s.Step, Round: s.Round, Item: s.Item, Undo: s.Undo, Type: flow.EventCompleted}
		if s.Kind == flow.KindJob {
			out, err := crashStep(s.Use, s.Payload)
			e.Output, _ = json.Marshal(out)
			if err != nil {
				e.Type, e.Output, e.Error = flow.EventFailed, nil, &flow.Failure{Code: "http_503", Message: err.Error()}
			}
		}
		todo = append(todo[1:], plan.Advance(run, input, e).Send...)
	}
	all := []string{string(run.State)}
	for _, s := range plan.Steps {
		all = append(all, s.ID+":"+string(run.Steps[s.ID].State))
	}
	return strings.Join(all, " ")
}

// The server is killed at random points while 1,000 runs go on. Every run ends as the
// model says, what is to be undone is undone, and no step runs twice but
// where the server died before it knew how the step had ended.
func TestRunsWhileServerIsKilled(t *testing.T) {
	const runs, kills, atOnce = 1000, 7, 8
	target := newJobTarget(t, crashStep)
	s := jobServer(t, "handlers.work.queue=work", "handlers.work.url="+target.url, "handlers.undo.queue=work", "handlers.undo.url="+target.url,
		"queues.work.concurrency=50", "queues.work.attempts=1", "queues.flows.lease=5m", "queues.flows-advance.lease=5m", "queues.work.lease=5m")
	status, answer, err := do(t.Context(), http.MethodPut, s.url+"/api/flows/crash", []byte(crashFlow), nil)
	if err != nil || status != http.StatusOK {
		t.Fatal(status, answer, err)
	}
	killing, stop := context.WithCancel(t.Context())
	defer stop()
	var users sync.WaitGroup
	next := make(chan int, runs)
	for n := range runs {
		next <- n
	}
	close(next)
	for range atOnce {
		users.Go(func() {
			for n := range next {
				s.startSurely(killing, n)
			}
		})
	}
	for range kills {
		wait(t, 200*time.Millisecond+rand.N(500*time.Millisecond))
		s.kill()
		wait(t, 50*time.Millisecond) // what it has called by then is on this side
		target.next()
		s.start()
	}
	users.Wait()
	s.endAsModelled(runs, target)
}

// startSurely starts a run, again and again while the server is away; its id makes that
// harmless.
func (s *server) startSurely(ctx context.Context, n int) {
	body := fmt.Appendf(nil, `{"id":"k%d","input":{"n":%d}}`, n, n)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for ctx.Err() == nil {
		if status, _, err := post(ctx, s.url+"/api/flows/crash/runs", body, nil); err == nil && status == http.StatusAccepted {
			return
		}
		<-again.C
	}
}

// endAsModelled waits for the ends of all runs, and compares them.
func (s *server) endAsModelled(runs int, target *jobTarget) {
	s.t.Helper()
	plan, problems := flow.Load([]byte(crashFlow), flow.Known{})
	if plan == nil {
		s.t.Fatal(problems)
	}
	over := func() bool {
		var list struct{ Items []struct{ RunID string } }
		s.must(http.StatusOK, http.MethodGet, "/api/flows/crash/runs?state=running&limit=1", nil, &list)
		return len(list.Items) == 0
	}
	if !eventually(s.t, time.Minute, over) {
		var list struct {
			Items []struct{ RunID, State string }
		}
		s.must(http.StatusOK, http.MethodGet, "/api/flows/crash/runs?state=running", nil, &list)
		s.t.Fatalf("%d runs or more do not end; %s waits for %+v", len(list.Items), list.Items[0].RunID, s.run(list.Items[0].RunID).Waiting)
	}
	wrong, ends := 0, map[string]int{}
	for n := range runs {
		id := fmt.Sprintf("k%d", n)
		r := s.run(id)
		ends[r.State]++
		if got, want := r.states(), asTheModelSays(plan, n); got != want && wrong < 10 {
			wrong++
			s.t.Errorf("run %d is %s, want %s", n, got, want)
		}
		if undone := target.count(id+"/first~undo") > 0; undone != (r.State == "failed") {
			s.t.Errorf("run %d is %s, and undone: %v", n, r.State, undone)
		}
	}
	calls, again := 0, 0
	for id, lives := range target.lives {
		calls += len(lives)
		again += len(lives) - 1
		for i := range lives[1:] {
			if lives[i] == lives[i+1] {
				s.t.Errorf("%s was called twice by one and the same server", id)
			}
		}
	}
	s.t.Logf("%d runs: %v; %d calls, %d of them again", runs, ends, calls, again)
	if again == 0 {
		s.t.Error("no call was a repetition: the kills came too late")
	}
}
