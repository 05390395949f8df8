package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// stand is a runner over a real broker and the real engine, with workers of all
// queues, in a bubble: time passes as soon as everybody waits.
type stand struct {
	t      *testing.T
	path   string // of the engine; empty: in memory
	queues []string
	mux    task.Mux

	engine *sqlite.Engine
	broker *broker.Broker
	runner *runner.Runner
	end    func() // ends everything but the engine's file

	killed  atomic.Bool // errors are expected
	several bool        // processes work on the store, as far as the runner knows
	deaf    bool        // nobody listens to the history
	alerts  string      // the queue of alerts; empty: none are sent

	mu    sync.Mutex
	began map[string]int // calls of handlers, by job
	order []string       // ids of jobs, as they began
}

// bubble runs a test twice: with a runner that knows that it is alone, and one that
// does not.
func bubble(t *testing.T, f func(s *stand)) {
	t.Helper()
	for _, several := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &stand{
				t: t, several: several, began: map[string]int{},
				queues: []string{runner.DefaultQueue, flow.DefaultQueue, "notifications", "workspace-setup", "images"},
			}
			defer func() { s.end() }()
			f(s)
			if t.Failed() {
				t.Log("several processes:", several)
			}
		})
	}
}

// handle makes a handler that counts its calls.
func (s *stand) handle(kind string, f func(j *worker.Job) (any, error)) {
	s.mux.Handle(kind, worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
		s.mu.Lock()
		s.began[j.ID]++
		s.order = append(s.order, j.ID)
		s.mu.Unlock()
		out, err := f(j)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}))
}

func (s *stand) handleOK(kinds ...string) {
	for _, kind := range kinds {
		s.handle(kind, func(*worker.Job) (any, error) { return map[string]bool{"ok": true}, nil })
	}
}

// open opens the engine, and begins to work.
func (s *stand) open() {
	s.t.Helper()
	var err error
	if s.engine, err = sqlite.Open(sqlite.Config{Path: s.path, Durability: sqlite.DurabilityProcess}); err != nil {
		s.t.Fatal(err)
	}
	s.broker, err = broker.New(s.engine, broker.Config{
		Rand: func() float64 { return 1 }, Policy: broker.Policy{Attempts: 3}, Alerts: broker.Alerts{Queue: s.alerts},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.runner, err = runner.New(s.broker, runner.Config{Alone: !s.several}); err != nil {
		s.t.Fatal(err)
	}
	watching, endWatch := context.WithCancel(context.Background())
	working, endWork := context.WithCancel(context.Background())
	var watch, work sync.WaitGroup
	report := func(what string, err error) {
		if err != nil && !s.killed.Load() {
			s.t.Errorf("%s: %v", what, err)
		}
	}
	watch.Go(func() { report("watcher", s.broker.Watcher().Run(watching)) })
	<-s.broker.Watcher().Ready()
	if !s.deaf {
		watch.Go(func() { report("runner", s.runner.Run(watching)) })
	}
	for _, queue := range s.queues {
		handler := s.runner.Steps(&s.mux)
		if queue == runner.DefaultQueue {
			handler = s.runner.Handler()
		}
		w, err := worker.New(s.broker, worker.Config{Queue: queue, Jobs: handler})
		if err != nil {
			s.t.Fatal(err)
		}
		work.Go(func() { report(queue, w.Run(working)) })
	}
	w, err := worker.New(s.broker, worker.Config{Queue: s.runner.AdvanceQueue(), Batch: s.runner.Advances()})
	if err != nil {
		s.t.Fatal(err)
	}
	work.Go(func() { report("advances", w.Run(working)) })
	s.end = func() {
		endWork()
		work.Wait()
		endWatch()
		watch.Wait()
		report("close", s.broker.Close())
	}
}

func (s *stand) put(src string) {
	s.t.Helper()
	if _, problems, err := s.runner.Put(s.t.Context(), []byte(src), flow.Known{}); err != nil || len(problems.Errors()) > 0 {
		s.t.Fatal(err, problems)
	}
}

func (s *stand) putExample(name string) {
	s.t.Helper()
	src, err := os.ReadFile("../../examples/flows/" + name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(string(src))
}

func (s *stand) start(name, id, input string) {
	s.t.Helper()
	if _, err := s.runner.Start(s.t.Context(), runner.Start{Flow: name, ID: id, Input: json.RawMessage(input)}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) get(id string) runner.View {
	s.t.Helper()
	v, err := s.runner.Get(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *stand) job(id string) forebay.Job {
	s.t.Helper()
	j, err := s.broker.Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// wait lets time pass.
func (s *stand) wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// want compares a run's states, as "running a:completed b:sent".
func (s *stand) want(id, want string) {
	s.t.Helper()
	v := s.get(id)
	words := strings.Fields(want)
	if string(v.State) != words[0] {
		s.t.Errorf("the run %s is %s, want %s: %v; it waits for %v", id, v.State, words[0], v.Failure, v.Waiting)
	}
	for _, word := range words[1:] {
		step, state, _ := strings.Cut(word, ":")
		if got := v.Steps[step]; got == nil || string(got.State) != state {
			s.t.Errorf("the step %s of %s is %+v, want %s", step, id, got, state)
		}
	}
	if j := s.job(id); v.State.Final() != j.State.Final() {
		s.t.Errorf("the run %s is %s, and its job %s", id, v.State, j.State)
	}
}

func (s *stand) history(job string) string {
	s.t.Helper()
	page, err := s.broker.History(s.t.Context(), engine.HistoryQuery{Job: job})
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, e := range page.Events {
		text := string(e.Type)
		if e.Cause != nil {
			text += "(" + e.Cause.Message + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (s *stand) do(id string, c flow.Command) {
	s.t.Helper()
	if err := s.runner.Do(s.t.Context(), id, c); err != nil {
		s.t.Fatal(err)
	}
}

var errNo = errors.New("the server refuses")

func failing(times int, out any) func(*worker.Job) (any, error) {
	return func(*worker.Job) (any, error) {
		if times--; times >= 0 {
			return nil, errNo
		}
		return out, nil
	}
}
