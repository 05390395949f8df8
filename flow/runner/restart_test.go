package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

const restartFlow = `flow: f
steps:
  a: {use: ok, compensate: undo}
  b: {use: odd, needs: a, on_failure: skip}
  c: {use: ok, needs: a, for_each: {in: "7", max_in_flight: 3}}
  d: {join: all, needs: [b, c]}
  e: {use: odd, needs: d, on_failure: {goto: g}}
  f: {delay: 90s, needs: e}
  g: {use: ok}
  h: {use: third, needs: [f, g], compensate: undo}
  i: {use: ok, needs: h}
  j: {flow: sub, needs: i}
`

// TestRestartsAtRandomPoints: runs go on while the engine is taken away from under
// workers and runner, again and again. Every run ends as its handlers say, nothing is
// lost, and no handler is called more often than its job was handed out.
func TestRestartsAtRandomPoints(t *testing.T) {
	const runs = 40
	for seed := range uint64(2) {
		bubble(t, func(s *stand) {
			r := rand.New(rand.NewPCG(seed, 3))
			s.path = filepath.Join(s.t.TempDir(), "flows.db")
			slow := func(j *worker.Job) (any, error) {
				time.Sleep(4 * time.Duration(chance(j.ID)) * time.Millisecond)
				return nil, nil
			}
			when := func(n int) func(j *worker.Job) (any, error) {
				return func(j *worker.Job) (any, error) {
					if number(j.ID)%n == 0 {
						return nil, forebay.Permanent(errNo)
					}
					return slow(j)
				}
			}
			s.handle("ok", slow)
			s.handle("undo", slow)
			s.handle("odd", when(2))
			s.handle("third", when(3))
			s.open()
			s.put(restartFlow)
			s.put("flow: sub\nsteps:\n  x: {use: ok}\n  y: {use: ok, needs: x}\n")
			for i := range runs {
				s.start("f", fmt.Sprintf("run-%d", i), `{}`)
			}
			restarts := 0
			for ; restarts < 25; restarts++ {
				time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
				s.kill()
				s.open()
			}
			s.wait(time.Hour)
			for i := range runs {
				s.check(fmt.Sprintf("run-%d", i), i)
			}
		})
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
}

func number(id string) (n int) {
	fmt.Sscanf(strings.TrimPrefix(id, "run-"), "%d", &n)
	return n
}

// check compares a run with what its handlers make of it.
func (s *stand) check(id string, i int) {
	s.t.Helper()
	want := "a:completed b:completed c:completed d:completed e:completed f:completed g:skipped"
	if i%2 == 0 {
		want = "a:completed b:skipped c:completed d:completed e:failed f:skipped g:completed"
	}
	if i%3 == 0 {
		s.want(id, "failed "+want+" h:failed i:blocked")
		if u := s.get(id).Steps["a"].Undo; u != flow.UndoDone {
			s.t.Errorf("the compensation of %s is %q", id, u)
		}
	} else {
		s.want(id, "completed "+want+" h:completed i:completed j:completed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for job, n := range s.began {
		if !strings.HasPrefix(job, id+"/") || n == 1 {
			continue
		}
		page, err := s.broker.History(s.t.Context(), engine.HistoryQuery{Job: job, Types: []forebay.HistoryType{forebay.HistoryAdded, forebay.HistoryCompleted}})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page.Events) > 2 {
			s.t.Errorf("%s was sent or completed more than once: %+v", job, page.Events)
		}
	}
}

// kill takes the engine away while everything works; what fails by that is expected.
func (s *stand) kill() {
	s.killed.Store(true)
	if err := s.engine.Close(); err != nil {
		s.t.Error(err)
	}
	s.end()
	s.killed.Store(false)
}

// What nobody tells a run, it finds: handlers that know nothing of flows, and no
// watcher.
func TestRunFindsWhatNobodyTold(t *testing.T) {
	bubble(t, func(s *stand) {
		s.deaf = true
		s.handleOK("a")
		s.open()
		s.put("flow: f\nsteps:\n  a: {use: a, queue: elsewhere}\n  b: {use: a, needs: a, queue: elsewhere, on_failure: skip}\n  c: {use: a, needs: b, queue: elsewhere}\n")
		s.start("f", "x", `{}`)
		ctx, stop := context.WithCancel(context.Background())
		w, err := worker.New(s.broker, worker.Config{Queue: "elsewhere", Jobs: &s.mux})
		if err != nil {
			s.t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		s.wait(10 * time.Minute)
		s.want("x", "completed a:completed b:completed c:completed")
		stop()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

// Who settles without a worker, as the API does for those who pull, lets the run go
// on at once too.
func TestFollowForThoseWhoPull(t *testing.T) {
	bubble(t, func(s *stand) {
		s.open()
		s.put("flow: f\nsteps:\n  a: {use: a, queue: pulled}\n  b: {use: a, needs: a, queue: pulled}\n")
		s.start("f", "x", `{}`)
		for _, step := range []string{"x/a", "x/b"} {
			s.wait(time.Second)
			ds, err := s.broker.Receive(s.t.Context(), engine.Receive{Queue: "pulled", Max: 1})
			if err != nil || len(ds) != 1 || ds[0].ID != step {
				s.t.Fatalf("pulled %v, want %s: %v", ds, step, err)
			}
			verdict := s.runner.Follow(ds[0], s.broker.DecideJob(ds[0], []byte(`1`), nil))
			if errs, err := s.broker.Settle(s.t.Context(), []forebay.Settlement{verdict}); err != nil || errs[0] != nil {
				s.t.Fatal(err, errs)
			}
		}
		s.wait(time.Second)
		s.want("x", "completed a:completed b:completed")
	})
}

// What follows a chain begins at once, and not when the run is looked after.
func TestWhatFollowsAChainBeginsAtOnce(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handleOK("x")
		s.open()
		s.put("flow: f\nsteps:\n  a: {use: x}\n  b: {use: x, needs: a}\n  c: {use: x, needs: b}\n  d: {use: x, needs: b}\n  e: {use: x, needs: [c, d]}\n")
		s.start("f", "r", `{}`)
		s.wait(time.Second)
		s.want("r", "completed c:completed d:completed e:completed")
	})
}
