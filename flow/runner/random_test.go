package runner_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

// TestRandomFlowsEndAsDecided: random flows with handlers that fail by chance are run
// on an engine that is taken away again and again. Each ends as the decisions alone,
// one after the other without any engine, say; and package flow's own test compares
// those with the reference. Again: -run RandomFlows, the seed is in the failure.
func TestRandomFlowsEndAsDecided(t *testing.T) {
	const flows, restarts = 40, 10
	for seed := range uint64(2) {
		bubble(t, func(s *stand) {
			r := rand.New(rand.NewPCG(seed, 11))
			s.path = filepath.Join(s.t.TempDir(), "flows.db")
			s.handle("x", func(j *worker.Job) (any, error) {
				time.Sleep(time.Duration(chance(j.ID+"t")*13) * time.Millisecond)
				if chance(j.ID) < 25 {
					return nil, forebay.Permanent(errNo)
				}
				return map[string]int{"n": 1}, nil
			})
			s.open()
			want := map[string]string{}
			for i := range flows {
				id := fmt.Sprintf("run-%d", i)
				src, plan := soundFlow(r, i)
				s.put(src)
				s.start(plan.Name, id, `{"b0":true,"b1":false}`)
				want[id] = decided(s.t, plan, id)
			}
			for range restarts {
				time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
				s.kill()
				s.open()
			}
			s.wait(2 * time.Hour)
			for id, want := range want {
				v := s.get(id)
				if got := states(&v.Run); got != want {
					src, _, _ := s.runner.Source(s.t.Context(), v.Flow, 0)
					s.t.Fatalf("seed %d: %s is\n%swant\n%s%s\nit waits for %v", seed, id, got, want, src, v.Waiting)
				}
				if j := s.job(id); j.State != forebay.StateCompleted {
					s.t.Errorf("seed %d: the job of %s is %s", seed, id, j.State)
				}
			}
		})
	}
}

func chance(id string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return h.Sum32() / 7 % 100
}

// decided runs a plan without an engine: its jobs end one by one, as they were sent.
func decided(t *testing.T, p *flow.Plan, id string) string {
	run, input := p.Begin(id, time.Unix(0, 0)), flow.NewInput(json.RawMessage(`{"b0":true,"b1":false}`))
	for todo := p.Advance(run, input).Send; len(todo) > 0; todo = todo[1:] {
		m := todo[0]
		e := flow.Event{Step: m.Step, Round: m.Round, Item: m.Item, Type: flow.EventCompleted}
		if m.Kind == flow.KindJob && chance(m.ID) < 25 {
			e.Type = flow.EventFailed
		}
		todo = append(todo, p.Advance(run, input, e).Send...)
	}
	if run.State != flow.RunCompleted {
		t.Fatalf("%s is %s", id, run.State)
	}
	return states(run)
}

func states(run *flow.Run) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(run.Steps)) {
		s := run.Steps[id]
		fmt.Fprintf(&b, "%s %s %v @%d %s", id, s.State, s.Taken, s.Round, s.Went)
		if s.Each != nil {
			fmt.Fprintf(&b, " %d+%d of %d", s.Each.Done, s.Each.Failed, s.Each.Total)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// soundFlow writes a random flow that never fails as a whole, so that how it ends
// does not depend on what ends first.
func soundFlow(r *rand.Rand, i int) (string, *flow.Plan) {
	for {
		src := fmt.Sprintf("flow: random-%d\nsteps:\n", i)
		n := 2 + r.IntN(9)
		for k := range n {
			src += fmt.Sprintf("  s%d:\n", k)
			var needs []string
			for range r.IntN(3) {
				if k > 0 {
					needs = append(needs, fmt.Sprintf("s%d", r.IntN(k)))
				}
			}
			if slices.Sort(needs); len(needs) > 0 {
				src += fmt.Sprintf("    needs: [%s]\n", strings.Join(slices.Compact(needs), ", "))
			}
			later := fmt.Sprintf("s%d", min(n-1, k+1+r.IntN(3)))
			switch kind := r.IntN(12); {
			case kind == 0 && k < n-1:
				src += fmt.Sprintf("    branch: [{when: input.b%d, to: %s}, {to: s%d}]\n", r.IntN(2), later, k+1)
			case kind == 1 && len(needs) > 0:
				src += "    join: " + []string{"all", "any"}[r.IntN(2)] + "\n"
			case kind == 2:
				src += "    delay: 30s\n"
			case kind == 3:
				src += "    use: x\n    for_each: {in: '9', max_in_flight: 2, max_failures: 9}\n"
			case kind < 6 && k < n-1:
				src += "    use: x\n    on_failure: {goto: " + later + "}\n"
			default:
				src += "    use: x\n    on_failure: skip\n"
			}
			if r.IntN(8) == 0 {
				src += fmt.Sprintf("    when: input.b%d\n", r.IntN(2))
			}
		}
		if plan, _ := flow.Load([]byte(src), flow.Known{}); plan != nil {
			return src, plan
		}
	}
}
