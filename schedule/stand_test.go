package schedule_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/schedule"
)

// stand is a scheduler on the embedded engine, in a bubble whose time can jump.
type stand struct {
	t      *testing.T
	path   string // of the store; empty: in memory
	jump   atomic.Int64
	engine engine.Engine
	wrap   func(*sqlite.Engine) engine.Engine
	broker *broker.Broker
	*schedule.Scheduler
	stop func()
}

func begin(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t}
	s.open()
	t.Cleanup(s.close)
	return s
}

func beginOnFile(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t, path: filepath.Join(t.TempDir(), "queue.db")}
	s.open()
	t.Cleanup(s.close)
	return s
}

func (s *stand) now() time.Time { return time.Now().Add(time.Duration(s.jump.Load())).Round(0) }

func (s *stand) open() {
	s.t.Helper()
	e := must[*sqlite.Engine](s.t)(sqlite.Open(sqlite.Config{Path: s.path, Now: s.now}))
	s.engine = e
	if s.wrap != nil {
		s.engine = s.wrap(e)
	}
	s.broker = must[*broker.Broker](s.t)(broker.New(s.engine, broker.Config{Now: s.now}))
	s.Scheduler = must[*schedule.Scheduler](s.t)(schedule.New(schedule.Config{Broker: s.broker, Now: s.now}))
	s.stop = run(s.t, s.Scheduler)
}

func run(t *testing.T, s *schedule.Scheduler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ends with %v", err)
		}
	}
}

func (s *stand) close() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	if err := s.broker.Close(); err != nil {
		s.t.Error(err)
	}
}

// put stores a schedule of the queue "work".
func (s *stand) put(d schedule.Definition) schedule.Schedule {
	s.t.Helper()
	if d.Job.Queue == "" {
		d.Job.Queue, d.Job.Kind = "work", "do"
	}
	v, _, err := s.Put(s.t.Context(), d, engine.AnyRev)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *stand) get(name string) schedule.Schedule {
	s.t.Helper()
	return must[schedule.Schedule](s.t)(s.Get(s.t.Context(), name))
}

// ticks are those that the jobs of a schedule are of, oldest first, as times of day.
func (s *stand) ticks(name string) (ticks []string) {
	s.t.Helper()
	for _, j := range s.jobs(name) {
		if tick := j.Headers[schedule.HeaderTick]; tick != "" {
			ticks = append(ticks, must[time.Time](s.t)(time.Parse(time.RFC3339, tick)).Format("15:04:05"))
		}
	}
	return ticks
}

// jobs of a schedule, as they were sent.
func (s *stand) jobs(name string) (jobs []forebay.Job) {
	s.t.Helper()
	for _, id := range s.sent()[name] {
		jobs = append(jobs, must[forebay.Job](s.t)(s.broker.Job(s.t.Context(), id)))
	}
	return jobs
}

// sent has the ids of all jobs, as the history tells them, by their schedule. None is
// there twice.
func (s *stand) sent() map[string][]string {
	s.t.Helper()
	seen, all := map[string]bool{}, map[string][]string{}
	for after := int64(0); ; {
		p := must[engine.HistoryPage](s.t)(s.broker.History(s.t.Context(), engine.HistoryQuery{After: after, Types: []forebay.HistoryType{forebay.HistoryAdded}}))
		for _, e := range p.Events {
			if seen[e.Job] {
				s.t.Errorf("the job %s was added twice", e.Job)
			}
			seen[e.Job] = true
			name := strings.Split(e.Job, ":")[1]
			all[name] = append(all[name], e.Job)
		}
		if after = p.Next; len(p.Events) == 0 {
			return all
		}
	}
}

// settle ends all active and waiting jobs of "work" with a verdict.
func (s *stand) settle(v forebay.Verdict) (n int) {
	s.t.Helper()
	ds := s.receive()
	for _, d := range ds {
		one := forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: v, Cause: forebay.Cause{Code: "test", Message: "no luck"}}
		errs := must[[]error](s.t)(s.broker.Settle(s.t.Context(), []forebay.Settlement{one}))
		if errs[0] != nil {
			s.t.Fatal(errs[0])
		}
	}
	return len(ds)
}

func (s *stand) receive() []forebay.Delivery {
	s.t.Helper()
	return must[[]forebay.Delivery](s.t)(s.broker.Receive(s.t.Context(), engine.Receive{Queue: "work", Max: 100, Lease: time.Hour}))
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func want(t *testing.T, what string, got, wanted any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(wanted); g != w {
		t.Errorf("%s: %s, not %s", what, g, w)
	}
}

// words are values with a space between them.
func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }
