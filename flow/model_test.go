package flow_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
)

var (
	modelSeed = flag.Uint64("flow.seed", 0, "seed of the one graph that the model test looks at; 0: many")
	modelRuns = flag.Int("flow.graphs", 2_000, "graphs of the model test")
)

// TestRunsAreAsTheReferenceSays: random graphs with random ends of their jobs, which
// are told twice, late and in any order, while the state is lost and read again. One
// graph again: go test ./flow -run Reference -flow.seed=<seed>
func TestRunsAreAsTheReferenceSays(t *testing.T) {
	if *modelSeed != 0 {
		model(t, *modelSeed)
		return
	}
	sound, ends := 0, map[flow.RunState]int{}
	for seed := uint64(1); sound < *modelRuns && !t.Failed(); seed++ {
		if state := model(t, seed); state != "" {
			sound++
			ends[state]++
		}
	}
	t.Logf("%d graphs: %v", sound, ends)
	if ends[flow.RunCompleted] < sound/10 || ends[flow.RunFailed] < sound/10 {
		t.Errorf("the runs end too much alike: %v", ends)
	}
}

const modelItems = 7

// world is what is outside of a run: its jobs, and how they end.
type world struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	plan   *flow.Plan
	input  *flow.Input
	stored []byte // the run
	flight map[string]flow.Send
	all    map[string]string // every id that was ever sent, and its payload
	facts  []flow.Event
	told   []flow.Event // also those that will be told again
}

func model(t *testing.T, seed uint64) flow.RunState {
	r := rand.New(rand.NewPCG(seed, 42))
	src := randomFlow(r)
	plan, problems := flow.Load([]byte(src), flow.Known{})
	if plan == nil {
		for _, p := range problems.Errors() {
			if !slices.Contains([]string{flow.CodeExclusive, flow.CodeUnreachable, flow.CodeCycle, flow.CodeValue}, p.Code) {
				t.Fatalf("seed %d: %s\n%s", seed, p, src)
			}
		}
		return ""
	}
	yes := map[string]bool{}
	for i := range 4 {
		yes[fmt.Sprintf("b%d", i)] = r.IntN(2) == 0
	}
	raw, _ := json.Marshal(yes)
	w := &world{t: t, seed: seed, r: r, plan: plan, input: flow.NewInput(raw), flight: map[string]flow.Send{}, all: map[string]string{}}
	run := plan.Begin("r", time.Unix(0, 0))
	w.act(plan.Advance(run, w.input))
	w.store(run)
	for turns := 0; len(w.flight) > 0; turns++ {
		if turns > 5000 {
			t.Fatalf("seed %d: the run does not end\n%s", seed, src)
		}
		w.turn()
	}
	run = w.load()
	ref := interpret(plan.Definition, yes, modelItems, w.facts)
	if got, want := picture(run), ref.describe(); got != want {
		t.Fatalf("seed %d: the run is\n%s\nthe reference says\n%s\nfacts: %v\n%s", seed, got, want, w.facts, src)
	}
	if got, want := slices.Sorted(maps.Keys(w.all)), slices.Sorted(maps.Keys(ref.sent)); !slices.Equal(got, want) {
		t.Fatalf("seed %d: sent were\n%v\nthe reference says\n%v\n%s", seed, got, want, src)
	}
	if !run.State.Final() || len(plan.Waiting(run)) > 0 {
		t.Fatalf("seed %d: nothing is on its way, and the run is %s: %v\n%s", seed, run.State, plan.Waiting(run), src)
	}
	return run.State
}

func (w *world) load() *flow.Run {
	var run flow.Run
	if err := json.Unmarshal(w.stored, &run); err != nil {
		w.t.Fatal(err)
	}
	return &run
}

func (w *world) store(run *flow.Run) {
	w.stored, _ = json.Marshal(run)
	for _, reason := range w.plan.Waiting(run) { // whatever it waits for can come
		if reason.Job == "" || strings.Contains(reason.Text, "items") || strings.Contains(reason.Text, "dead letter") {
			continue
		}
		if _, ok := w.flight[reason.Job]; !ok {
			w.t.Fatalf("seed %d: the run waits for %s (%s), which is not on its way", w.seed, reason.Job, reason.Text)
		}
	}
}

// act does what a decision asks for. Jobs have one id, and ids one content.
func (w *world) act(e flow.Effects) {
	for _, s := range e.Send {
		if payload, known := w.all[s.ID]; known {
			if payload != string(s.Payload) {
				w.t.Fatalf("seed %d: %s was sent with %s, and then with %s", w.seed, s.ID, payload, s.Payload)
			}
			continue
		}
		w.all[s.ID] = string(s.Payload)
		if s.Kind != flow.KindEmit {
			w.flight[s.ID] = s
		}
	}
	for _, id := range append(e.Cancel, e.CancelRuns...) {
		if s, ok := w.flight[id]; ok && s.Item < 0 && w.r.IntN(4) > 0 {
			w.end(s, flow.EventCancelled)
		}
	}
}

// turn ends one job, or tells of an earlier end again, or crashes.
func (w *world) turn() {
	if len(w.told) > 0 && w.r.IntN(4) == 0 {
		run := w.load()
		w.act(w.plan.Advance(run, w.input, w.told[w.r.IntN(len(w.told))]))
		w.store(run)
		return
	}
	ids := slices.Sorted(maps.Keys(w.flight))
	w.end(w.flight[ids[w.r.IntN(len(ids))]], "")
}

func (w *world) end(s flow.Send, as flow.EventType) {
	run := w.load()
	e := flow.Event{Step: s.Step, Round: s.Round, Item: s.Item, Undo: s.Undo, Type: flow.EventCompleted, Output: json.RawMessage(`{"n":1}`)}
	h := fnv.New32()
	fmt.Fprint(h, w.seed, s.ID, len(w.facts)/3)
	chance := h.Sum32() % 100
	switch {
	case as != "":
		e.Type = as
	case s.Kind == flow.KindDead:
		e.Type = flow.EventFailed
	case s.Kind == flow.KindWait && chance < 40:
		e.Type = flow.EventTimedOut
	case s.Kind == flow.KindJob && chance < 22:
		e.Type = flow.EventFailed
	}
	if e.Type != flow.EventCompleted {
		e.Output, e.Error = nil, &flow.Failure{Code: "handler", Message: "no"}
	}
	w.facts = append(w.facts, e)
	if w.r.IntN(5) == 0 { // it crashes after the sends, before the state is stored
		lost := w.load()
		w.act1(w.plan.Advance(lost, w.input, e))
	}
	effects := w.plan.Advance(run, w.input, e)
	// What the run waits for is replayed, and so is, now and then, what has failed.
	st := run.Steps[s.Step]
	replayed := st.State == flow.StepDead || e.Type == flow.EventFailed && s.Kind == flow.KindJob && s.Item < 0 && !s.Undo && w.r.IntN(5) == 0
	if !replayed || st.Round != s.Round {
		delete(w.flight, s.ID)
		w.told = append(w.told, e)
	}
	stored := run
	w.stored, _ = json.Marshal(stored)
	w.act(effects)
	w.store(w.load())
}

// act1 sends only: what a crash leaves behind.
func (w *world) act1(e flow.Effects) {
	w.act(flow.Effects{Send: e.Send})
}

func picture(run *flow.Run) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(run.Steps)) {
		s := run.Steps[id]
		state := string(s.State)
		switch {
		case s.State == flow.StepSkipped && !s.Taken:
			state = "unwanted"
		case s.State == flow.StepCompleted:
			state = "done"
		}
		fmt.Fprintf(&b, "%s %s@%d undo:%s went:%s\n", id, state, s.Round, s.Undo, s.Went)
	}
	return b.String() + string(run.State)
}

func (r *reference) describe() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(r.state)) {
		went := ""
		if r.state[id] == "failed" {
			went = r.went[id]
		}
		fmt.Fprintf(&b, "%s %s@%d undo:%s went:%s\n", id, r.state[id], r.round[id], r.undo[id], went)
	}
	return b.String() + r.run
}

// randomFlow writes a flow whose steps need earlier ones.
func randomFlow(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("flow: random\nsteps:\n")
	n := 1 + r.IntN(12)
	for i := range n {
		fmt.Fprintf(&b, "  s%d:\n", i)
		needs := map[string]bool{}
		for range r.IntN(3) {
			if i > 0 {
				needs[fmt.Sprintf("s%d", r.IntN(i))] = true
			}
		}
		kind := r.IntN(20)
		if kind == 10 && len(needs) == 0 {
			kind = 0
		}
		if len(needs) > 0 {
			fmt.Fprintf(&b, "    needs: [%s]\n", strings.Join(slices.Sorted(maps.Keys(needs)), ", "))
		}
		if r.IntN(8) == 0 {
			fmt.Fprintf(&b, "    when: input.b%d\n", r.IntN(4))
		}
		later := func() string { return fmt.Sprintf("s%d", min(n-1, i+1+r.IntN(4))) }
		randomKind(r, &b, kind, i, n, later)
	}
	return b.String()
}

func randomKind(r *rand.Rand, b *strings.Builder, kind, i, n int, later func() string) {
	switch {
	case kind < 3 && i < n-1:
		fmt.Fprintf(b, "    branch: [{when: input.b%d, to: [%s]}, {to: [%s]}]\n", r.IntN(4), later(), later())
		return
	case kind == 3 && i < n-1:
		fmt.Fprintf(b, "    parallel: [%s]\n", later())
		return
	case kind == 10:
		fmt.Fprintf(b, "    join: %s\n", []string{"all", "any", "1", "2"}[r.IntN(4)])
		return
	case kind == 11:
		fmt.Fprintf(b, "    delay: 1m\n")
		return
	case kind == 12:
		fmt.Fprintf(b, "    wait: {event: e, timeout: 1m}\n")
		if r.IntN(2) == 0 {
			b.WriteString("    on_timeout: skip\n")
		}
		return
	case kind == 13:
		b.WriteString("    emit: happened\n")
		return
	case kind == 14 && r.IntN(3) == 0:
		b.WriteString("    dead_letter: no way\n")
		return
	case kind == 15:
		fmt.Fprintf(b, "    use: x\n    for_each: {in: '%d', max_in_flight: %d, max_failures: %d}\n", modelItems, 1+r.IntN(4), r.IntN(4))
		if r.IntN(2) == 0 {
			b.WriteString("    on_failure: skip\n")
		}
		return
	}
	b.WriteString("    use: x\n")
	if r.IntN(3) == 0 {
		b.WriteString("    compensate: undo\n")
	}
	switch k := r.IntN(10); {
	case k < 2:
		b.WriteString("    on_failure: skip\n")
	case k == 2:
		b.WriteString("    on_failure: dead_letter\n")
	case k == 3 && i < n-1:
		fmt.Fprintf(b, "    on_failure: {goto: %s}\n", later())
	case k == 4:
		fmt.Fprintf(b, "    on_failure: {goto: s%d, max: %d}\n", r.IntN(i+1), 1+r.IntN(3))
	}
}
