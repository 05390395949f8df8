package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/worker"
)

// plant is a runner with workers outside of a bubble, for measuring.
type plant struct {
	b      *broker.Broker
	runner *runner.Runner
	ended  chan string // ids of jobs of the queue of flows, and others, as they complete
}

func newPlant(b *testing.B, src string) *plant {
	b.Helper()
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(b.TempDir(), "flows.db")})
	if err != nil {
		b.Fatal(err)
	}
	p := &plant{ended: make(chan string, 1<<20)}
	if p.b, err = broker.New(e, broker.Config{}); err != nil {
		b.Fatal(err)
	}
	if p.runner, err = runner.New(p.b, runner.Config{Alone: true}); err != nil {
		b.Fatal(err)
	}
	if _, problems, err := p.runner.Put(b.Context(), []byte(src), flow.Known{}); err != nil || len(problems) > 0 {
		b.Fatal(err, problems)
	}
	nothing := worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { return nil, nil })
	working, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for queue, handler := range map[string]worker.JobHandler{runner.DefaultQueue: p.runner.Handler(), flow.DefaultQueue: p.runner.Steps(nothing)} {
		w, err := worker.New(p.b, worker.Config{Queue: queue, Jobs: handler, Concurrency: 200, Observe: worker.Observe{Settled: func(o worker.Outcome) {
			if o.Verdict == forebay.Ack && o.Delivery.Job != nil {
				p.ended <- o.Delivery.Kind
			}
		}}})
		if err != nil {
			b.Fatal(err)
		}
		work.Go(func() { w.Run(working) })
	}
	w, err := worker.New(p.b, worker.Config{Queue: p.runner.AdvanceQueue(), Batch: p.runner.Advances(), Concurrency: 4})
	if err != nil {
		b.Fatal(err)
	}
	work.Go(func() { w.Run(working) })
	b.Cleanup(func() {
		stop()
		work.Wait()
		p.b.Close()
	})
	return p
}

func (p *plant) until(kind string, n int) {
	for n > 0 {
		if <-p.ended == kind {
			n--
		}
	}
}

func (p *plant) startMany(b *testing.B, n int, input string) {
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			for k := i; k < n; k += 64 {
				if _, err := p.runner.Start(b.Context(), runner.Start{Flow: "f", Input: json.RawMessage(input)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// BenchmarkChain measures whole runs of three steps that do nothing, stored durably.
func BenchmarkChain(b *testing.B) {
	p := newPlant(b, "flow: f\nsteps:\n  a: {use: x}\n  b: {use: x, needs: a}\n  c: {use: x, needs: b}\n")
	b.ResetTimer()
	go p.startMany(b, b.N, `{}`)
	p.until(runner.KindRun, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

// BenchmarkJoin measures runs of 100 steps that one joins.
func BenchmarkJoin(b *testing.B) {
	src := "flow: f\nsteps:\n"
	needs := ""
	for i := range 100 {
		src += fmt.Sprintf("  s%d: {use: x, with: 1}\n", i)
		needs += fmt.Sprintf("s%d, ", i)
	}
	p := newPlant(b, src+"  j: {join: all, needs: ["+needs[:len(needs)-2]+"]}\n")
	b.ResetTimer()
	go p.startMany(b, b.N, `{}`)
	p.until(runner.KindRun, b.N)
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkEach measures the items of one for_each.
func BenchmarkEach(b *testing.B) {
	p := newPlant(b, "flow: f\nsteps:\n  a: {use: x, for_each: {in: input.n, max_in_flight: 1000}}\n")
	b.ResetTimer()
	p.startMany(b, 1, fmt.Sprintf(`{"n":%d}`, b.N))
	p.until(runner.KindRun, 1)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "items/s")
}

// BenchmarkJobs is what the same engine does with as many jobs of no flow.
func BenchmarkJobs(b *testing.B) {
	p := newPlant(b, "flow: f\nsteps: {a: {use: x}}\n")
	b.ResetTimer()
	go func() {
		var wait sync.WaitGroup
		for i := range 64 {
			wait.Go(func() {
				for k := i; k < b.N; k += 64 {
					p.b.Send(context.Background(), []forebay.Message{{Queue: flow.DefaultQueue, Kind: "x", Payload: []byte(`{}`), Job: &forebay.JobOptions{}}})
				}
			})
		}
		wait.Wait()
	}()
	p.until("x", b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
