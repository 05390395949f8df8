package flow_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// TestCommandsNeverLeaveARunStuck: random runs that people pause, cancel, skip steps
// of and retry at any moment. Whatever they do, a run that has not ended waits for
// something that is on its way, and it ends once nobody holds it.
func TestCommandsNeverLeaveARunStuck(t *testing.T) {
	did := map[flow.Do]int{}
	ends := map[flow.RunState]int{}
	for seed := uint64(1); seed < 1500 && !t.Failed(); seed++ {
		r := rand.New(rand.NewPCG(seed, 5))
		src := randomFlow(r)
		plan, _ := flow.Load([]byte(src), flow.Known{})
		if plan == nil {
			continue
		}
		w := &world{
			t: t, seed: seed, r: r, plan: plan, flight: map[string]flow.Send{}, all: map[string]string{},
			input: flow.NewInput(json.RawMessage(`{"b0":true,"b1":false,"b2":true,"b3":false}`)),
		}
		run := plan.Begin("r", time.Unix(0, 0))
		w.act(plan.Advance(run, w.input))
		w.store(run)
		for orders, turns := 8, 0; len(w.flight) > 0 || w.load().Paused || orders > 0; turns++ {
			if turns > 3000 {
				t.Fatalf("seed %d: it does not end\n%s\n%s", seed, picture(w.load()), src)
			}
			if orders > 0 && (len(w.flight) == 0 || r.IntN(5) == 0) || len(w.flight) == 0 {
				orders--
				if do := w.order(orders <= 0); do != "" {
					did[do]++
				}
				continue
			}
			w.turn()
		}
		run = w.load()
		ends[run.State]++
		if !run.State.Final() {
			t.Errorf("seed %d: nothing is on its way, and the run is %s: %v\n%s\n%s", seed, run.State, plan.Waiting(run), picture(run), src)
		}
	}
	for _, do := range []flow.Do{flow.DoPause, flow.DoResume, flow.DoCancel, flow.DoSkip, flow.DoRetry} {
		if did[do] < 50 {
			t.Errorf("%s was done %d times only: the test shows little (%v)", do, did[do], did)
		}
	}
	t.Logf("%v %v", did, ends)
}

// order gives a random command; the last one lets the run go on.
func (w *world) order(last bool) flow.Do {
	run := w.load()
	steps := slices.Sorted(maps.Keys(run.Steps))
	all := []flow.Do{flow.DoPause, flow.DoResume, flow.DoCancel, flow.DoSkip, flow.DoSkip, flow.DoRetry, flow.DoRetry, flow.DoDiscard}
	c := flow.Command{Do: all[w.r.IntN(len(all))], Step: steps[w.r.IntN(len(steps))]}
	if c.Do == flow.DoRetry && w.r.IntN(2) == 0 {
		c.Step = ""
	}
	if last {
		c = flow.Command{Do: flow.DoResume}
	}
	effects, err := w.plan.Command(run, w.input, c)
	if err != nil {
		if forebay.CodeOf(err) != forebay.CodeConflict {
			w.t.Fatalf("seed %d: %s %s: %v", w.seed, c.Do, c.Step, err)
		}
		return ""
	}
	for _, id := range effects.Drop {
		delete(w.flight, id)
	}
	w.stored, _ = json.Marshal(run)
	w.act(effects)
	w.store(w.load())
	return c.Do
}

func TestOutputsBeyondTheContextAreLeftOut(t *testing.T) {
	src := "flow: f\ncontext: 1024\nsteps:\n  a: {use: x}\n  b: {use: x, needs: a, when: steps.a.output.n == 1}\n  c: {use: x, needs: a}\n"
	plan, problems := flow.Load([]byte(src), flow.Known{})
	if plan == nil {
		t.Fatal(problems)
	}
	run, input := plan.Begin("r", time.Unix(0, 0)), flow.NewInput(nil)
	plan.Advance(run, input)
	big := json.RawMessage(`{"n":1,"t":"` + strings.Repeat("x", 2000) + `"}`)
	e := plan.Advance(run, input, flow.Event{Step: "a", Item: flow.NoItem, Type: flow.EventCompleted, Output: big})
	if len(run.Steps["a"].Output) > 0 || run.Steps["a"].Omitted != len(big) {
		t.Errorf("the output was kept: %+v", run.Steps["a"])
	}
	if f := run.Failure; f == nil || f.Code != flow.FailExpression || !strings.Contains(f.Message, "the output of a has 2014 bytes, for which the context (1024 bytes) had no room") {
		t.Errorf("the failure is %+v", f)
	}
	if len(e.Send) > 0 {
		t.Errorf("a run that fails has sent %v", e.Send)
	}
}
