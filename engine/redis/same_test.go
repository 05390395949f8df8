package redis_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// Random operations, on one server by Node alone, on another by Node and Forebay in
// turns: after each of them both servers hold the same, so far as BullMQ reads it.

// known is what the test knows of a job.
type known struct {
	state string // waits, delayed, active, completed, failed
	by    int    // active: which hand has it
	left  int    // attempts
	gone  bool   // once it has succeeded
}

// fleet are two servers and who works on them.
type fleet struct {
	t      *testing.T
	name   string // of its jobs begin so
	rng    *rand.Rand
	alone  hand
	mixed  []hand
	jobs   map[string]*known
	paused bool
	done   []string // operations, to tell
}

func (f *fleet) some(states ...string) string {
	var ids []string
	for id, j := range f.jobs {
		if slices.Contains(states, j.state) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return ids[f.rng.IntN(len(ids))]
}

func (f *fleet) says(format string, args ...any) {
	f.done = append(f.done, fmt.Sprintf(format, args...))
}

func (f *fleet) step() {
	who := f.rng.IntN(len(f.mixed))
	other := f.mixed[who]
	both := func(do func(h hand)) {
		do(f.alone)
		do(other)
	}
	switch f.rng.IntN(14) {
	case 0, 1, 2:
		f.adds(who)
	case 3, 4, 5:
		f.says("%d takes", who)
		id := f.alone.take()
		if got := other.take(); got != id {
			f.t.Fatalf("%v: taken is %q, by Node alone it is %q", f.done, got, id)
		}
		if id != "" {
			f.jobs[id].state, f.jobs[id].by = "active", who
		}
	case 6, 7, 8:
		f.ends()
	case 9:
		if id := f.some("active"); id != "" {
			f.says("%d tells of %s", f.jobs[id].by, id)
			f.alone.tell(id)
			f.mixed[f.jobs[id].by].tell(id)
		}
	case 10, 12, 13:
		f.changes(who, both)
	case 11:
		was := f.paused
		f.paused = !was && f.rng.IntN(2) == 0
		active := 2 + f.rng.IntN(3)
		f.says("%d limits: paused %v, active %d", who, f.paused, active)
		both(func(h hand) { h.limit(was, f.paused, active) })
	}
}

func (f *fleet) adds(who int) {
	j := newJob{id: fmt.Sprintf("%s%d", f.name, len(f.jobs)), data: f.rng.IntN(9), delayed: f.rng.IntN(4) == 0, attempts: 1 + f.rng.IntN(3), gone: f.rng.IntN(3) == 0}
	if f.rng.IntN(3) == 0 {
		j.priority = 7 + f.rng.IntN(4) // after those without, here as there
	}
	f.says("%d adds %+v", who, j)
	f.jobs[j.id] = &known{state: map[bool]string{true: "delayed", false: "waits"}[j.delayed], left: j.attempts, gone: j.gone}
	f.alone.add(j)
	f.mixed[who].add(j)
}

// ends ends one that is active, by whoever has it.
func (f *fleet) ends() {
	id := f.some("active")
	if id == "" {
		return
	}
	j := f.jobs[id]
	how := []string{"complete", "complete", "retry", "fail", "release"}[f.rng.IntN(5)]
	if j.left == 1 && how == "retry" {
		how = "fail"
	}
	f.says("%d ends %s: %s", j.by, id, how)
	f.alone.end(id, how)
	f.mixed[j.by].end(id, how)
	switch how {
	case "complete":
		j.state = "completed"
		if j.gone {
			j.state = "gone"
		}
	case "retry":
		j.state = "delayed"
		j.left--
	case "fail":
		j.state = "failed"
	case "release":
		j.state = "waits"
	}
}

func (f *fleet) changes(who int, both func(func(h hand))) {
	how, from := "", ""
	switch f.rng.IntN(5) {
	case 0:
		how, from = "promote", "delayed"
	case 1:
		how, from = "priority", "waits"
	case 2:
		how, from = "data", "waits"
	case 3:
		how, from = "retry", "failed"
	case 4:
		how, from = "remove", "completed"
	}
	id, value := f.some(from), 7+f.rng.IntN(4)
	if id == "" {
		return
	}
	f.says("%d changes %s: %s %d", who, id, how, value)
	both(func(h hand) { h.change(id, how, value) })
	switch how {
	case "promote", "retry":
		f.jobs[id].state = "waits"
	case "remove":
		f.jobs[id].state = "gone"
	}
}

func seeds(t *testing.T, n int) (all []uint64) {
	if s := os.Getenv("REDIS_TEST_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	for range n {
		all = append(all, rand.Uint64()>>32)
	}
	return all
}

// A mixed fleet leaves what BullMQ alone leaves. REDIS_TEST_SEED chooses the seed.
func TestMixedFleetLeavesTheSame(t *testing.T) {
	t.Parallel()
	documented := ours(t)
	a, b := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
	alone := &pair{t: t, s: a, n: startNode(t, a.Addr(), "6", "bull")}
	mixed := &pair{t: t, s: b, n: startNode(t, b.Addr(), "6", "bull"), e: mustOpen(t, redis.Config{URL: b.URL(0)})}
	ca, cb := client(t, a), client(t, b)
	for i, seed := range seeds(t, 4) {
		f := &fleet{t: t, name: string(rune('a' + i)), rng: rand.New(rand.NewPCG(seed, 0)), jobs: make(map[string]*known), alone: &nodeHand{pair: alone}}
		f.mixed = []hand{&nodeHand{pair: mixed}, &ourHand{mixed, make(map[string]forebay.Delivery), make(map[string]bool)}}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("seed %d did %s", seed, encode(t, f.done))
			}
		})
		f.adds(0) // so that the queue is there
		for range 60 {
			f.step()
			want, got := dump(t, ca, documented), dump(t, cb, documented)
			if !slices.Equal(want, got) {
				t.Fatalf("mixed and not alone: %s\nalone and not mixed: %s", without(got, want), without(want, got))
			}
			for _, m := range signals(t, ca) {
				if !slices.Contains(signals(t, cb), m) {
					t.Fatalf("the marker %s is missing", m)
				}
			}
		}
		for _, p := range []*pair{alone, mixed} {
			p.n.do("obliterate", args{"queue": "q"})
		}
		if err := mixed.e.Sweep(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
	}
}

func without(all, some []string) string {
	b, err := json.MarshalIndent(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) }), "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
