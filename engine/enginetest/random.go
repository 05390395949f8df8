package enginetest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The model test, life of a run:
//
//  1. A seed, new each time, makes a list of steps; an odd one with jobs. A step is a word and four
//     numbers; what they mean depends only on what is there when it runs, so that
//     any step can be left out and the rest still makes sense.
//  2. The steps are played on the engine; the judge checks each answer against the
//     oracle, and after each step the counts, the dead letters and a few places.
//  3. In the end the queues are drained: nothing may be missing, nothing left over.
//  4. A failing list is shrunk by leaving out steps as long as it fails, and written
//     to testdata/model-SEED.txt. All such files are played first, for ever.
//
// ENGINETEST_SEED plays one seed again, ENGINETEST_STEPS and ENGINETEST_ROUNDS set
// how much is played.

const (
	modelRounds  = 8
	modelSteps   = 250
	shrinkTrials = 150
)

// step is one operation of a model test.
type step struct {
	op string
	n  [4]int
}

func (s step) String() string {
	return fmt.Sprintf("%s %d %d %d %d", s.op, s.n[0], s.n[1], s.n[2], s.n[3])
}

// stepWeights says how often each operation comes.
var stepWeights = []struct {
	op     string
	weight int
}{
	{"send", 26}, {"receive", 26}, {"wait", 4}, {"settle", 26}, {"extend", 5}, {"late", 5}, {"pass", 12},
	{"reopen", 2}, {"replay", 3}, {"discard", 2}, {"limit", 3}, {"purge", 1},
}

func randomSteps(seed uint64, n int) []step {
	rng := rand.New(rand.NewPCG(seed, 0))
	var bag []string
	for _, w := range stepWeights {
		bag = append(bag, slices.Repeat([]string{w.op}, w.weight)...)
	}
	if seed%4 == 3 { // not in all: what is delayed hides what else may go wrong
		bag = append(bag, "delay", "delay")
	}
	steps := make([]step, n)
	for i := range steps {
		steps[i].op = bag[rng.IntN(len(bag))]
		for j := range steps[i].n {
			steps[i].n[j] = rng.IntN(1000)
		}
	}
	return steps
}

func runModel(t *testing.T, h Harness) {
	saved, err := filepath.Glob(filepath.Join("testdata", "model-*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	kept := t.Run("kept", func(t *testing.T) {
		for _, file := range saved {
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				playFile(t, h, file)
			})
		}
	})
	if !kept {
		return // what is known to fail comes first, else each run would keep another
	}
	first := &sync.Once{}
	for _, seed := range modelSeeds(t) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			playSeed(t, h, seed, first)
		})
	}
}

func playFile(t *testing.T, h Harness, file string) {
	t.Helper()
	steps, err := readSteps(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.play(t, steps); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func modelSeeds(t *testing.T) []uint64 {
	t.Helper()
	if seed := setting(t, "ENGINETEST_SEED", 0); seed != 0 {
		return []uint64{seed}
	}
	seeds := make([]uint64, setting(t, "ENGINETEST_ROUNDS", modelRounds))
	for i := range seeds {
		seeds[i] = uint64(rand.Uint32())
	}
	return seeds
}

// setting reads a number from the environment.
func setting(t testing.TB, name string, fallback uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return fallback
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is no number", name, s)
	}
	return n
}

// playSeed plays a seed. The first one that fails is shrunk and kept.
func playSeed(t *testing.T, h Harness, seed uint64, first *sync.Once) {
	t.Helper()
	n := int(setting(t, "ENGINETEST_STEPS", modelSteps))
	steps := randomSteps(seed, n)
	if seed%2 == 1 {
		steps = randomJobSteps(seed, n)
	}
	err := h.play(t, steps)
	if err == nil {
		return
	}
	t.Errorf("seed %d fails: %v\nthe whole run again: ENGINETEST_SEED=%d go test -run '^%s$'",
		seed, err, seed, strings.Split(t.Name(), "/")[0])
	first.Do(func() {
		steps, err := h.shrink(t, steps, err)
		file := filepath.Join("testdata", fmt.Sprintf("model-%d.txt", seed))
		t.Errorf("shrunk to %d steps, kept in %s: %v", len(steps), file, err)
		if err := writeSteps(file, steps, err); err != nil {
			t.Errorf("the failing case could not be kept: %v", err)
		}
	})
}

// play gives the first unfairness of an engine, or nil.
func (h Harness) play(t *testing.T, steps []step) (err error) {
	t.Helper()
	h.bubble(t, func(t testing.TB) { err = h.judge(t, steps) })
	return err
}

// shrink leaves out as many steps as it can while the rest still fails.
func (h Harness) shrink(t *testing.T, steps []step, err error) ([]step, error) {
	t.Helper()
	trials := 0
	for size := len(steps) / 2; size > 0; size /= 2 {
		for from := 0; from < len(steps) && trials < shrinkTrials; trials++ {
			less := slices.Concat(steps[:from], steps[min(from+size, len(steps)):])
			if lessErr := h.play(t, less); lessErr != nil {
				steps, err = less, lessErr
			} else {
				from += size
			}
		}
	}
	return steps, err
}

func writeSteps(file string, steps []step, failure error) error {
	var b strings.Builder
	for line := range strings.Lines(failure.Error()) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimRight(line, "\n"))
	}
	for _, s := range steps {
		fmt.Fprintln(&b, s)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func readSteps(file string) ([]step, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var steps []step
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var s step
		if _, err := fmt.Sscan(line, &s.op, &s.n[0], &s.n[1], &s.n[2], &s.n[3]); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", file, line, err)
		}
		steps = append(steps, s)
	}
	return steps, lines.Err()
}
