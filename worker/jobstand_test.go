package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// jobStand is a worker of jobs over a real broker with its watcher and the real
// engine, in memory, in a bubble.
type jobStand struct {
	stand
	engine  *sqlite.Engine
	unheard bool // the watcher does not run
}

func jobBubble(t *testing.T, f func(s *jobStand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := sqlite.Open(sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := &jobStand{stand: stand{t: t, ended: make(chan error, 1), start: time.Now()}, engine: e}
		s.bend(e)
		f(s)
		if err := s.broker.Close(); err != nil {
			t.Error(err)
		}
	})
}

// bend puts a new broker before the engine, or one that behaves otherwise.
func (s *jobStand) bend(e engine.Engine) {
	s.t.Helper()
	s.hooks = &hooks{Engine: e}
	var err error
	s.broker, err = broker.New(s.hooks, broker.Config{
		Rand: func() float64 { return 1 }, Alerts: broker.Alerts{Queue: broker.AlertQueue},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// run starts watcher and worker. stop ends both, the worker first.
func (s *jobStand) run(cfg worker.Config) (stop func()) {
	s.t.Helper()
	watching, endWatch := context.WithCancel(s.t.Context())
	watched := make(chan error, 1)
	if s.unheard {
		watched <- nil
	} else {
		go func() { watched <- s.broker.Watcher().Run(watching) }()
		<-s.broker.Watcher().Ready()
	}
	s.stand.run(cfg)
	return func() {
		s.t.Helper()
		s.stop()
		if err := <-s.ended; err != nil {
			s.t.Errorf("run: %v", err)
		}
		endWatch()
		if err := <-watched; err != nil {
			s.t.Errorf("watch: %v", err)
		}
	}
}

// add sends jobs of these ids.
func (s *jobStand) add(options forebay.JobOptions, ids ...string) {
	s.t.Helper()
	var msgs []forebay.Message
	for _, id := range ids {
		o := options
		msgs = append(msgs, forebay.Message{ID: id, Kind: "k", Payload: []byte(`{}`), Job: &o, Limits: forebay.Limits{Attempts: 2}})
	}
	s.send(msgs...)
}

func (s *jobStand) job(id string) forebay.Job {
	s.t.Helper()
	j, err := s.broker.Job(context.WithoutCancel(s.t.Context()), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// history of a job: its types, with what progress and lines say.
func (s *jobStand) history(id string) string {
	s.t.Helper()
	page, err := s.broker.History(context.WithoutCancel(s.t.Context()), engine.HistoryQuery{Job: id})
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, e := range page.Events {
		text := string(e.Type)
		if e.Progress != nil {
			text += fmt.Sprintf("(%s %v)", e.Progress.Stage, e.Progress.Percent)
		}
		if e.Type == forebay.HistoryLog {
			text += "(" + e.Text + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (s *jobStand) cancel(id string) {
	s.t.Helper()
	results, err := s.broker.Cancel(s.t.Context(), []string{id}, "not wanted any more")
	if err != nil || results[0].Err != nil {
		s.t.Fatal(err, results)
	}
}

// alerts are the payloads in the queue of alerts.
func (s *jobStand) alerts() (all []string) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	for {
		ds, err := s.broker.Receive(ctx, engine.Receive{Queue: broker.AlertQueue, Max: 100})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(ds) == 0 {
			slices.Sort(all)
			return all
		}
		for _, d := range ds {
			all = append(all, string(d.Payload))
			if _, err := s.broker.Settle(ctx, []forebay.Settlement{s.broker.Decide(d, nil)}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}
