package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/worker"
)

const (
	chainRuns  = 20_000
	joinRuns   = 100
	joinWidth  = 100
	eachItems  = 10_000
	eachFlight = 100
	chainLeast = 5000 // runs/s
	joinMost   = 2    // times what as many jobs of no flow cost
	eachMost   = 32   // MiB of heap beyond what a run of a tenth needs
)

// flows measures runs whose steps do nothing, on the embedded engine, stored durably:
// chains of three; joins of a hundred beside as many jobs of no flow; and one run of
// ten thousand items, whose memory must not grow with them.
func flows(ctx context.Context, o options, t *table) error {
	var chains, cost, joins, joinCost, alone, aloneCost bench.Series
	for round := range o.rounds {
		name := func(part string) string { return fmt.Sprintf("flows-%s-%d", part, round) }
		rate, cpu, err := chainRate(ctx, o, name("chain"))
		if err != nil {
			return err
		}
		chains, cost = append(chains, rate), append(cost, cpu)
		if rate, cpu, err = joinRate(ctx, o, name("join")); err != nil {
			return err
		}
		joins, joinCost = append(joins, rate), append(joinCost, cpu)
		if rate, cpu, err = freeRate(ctx, o, name("free")); err != nil {
			return err
		}
		alone, aloneCost = append(alone, rate), append(aloneCost, cpu)
	}
	t.figure("CPU of a chain of 3", "µs", cost)
	t.target("chain of 3 steps, embedded, durable", chains.Median(), "runs/s", fmt.Sprintf("≥ %d", chainLeast), chains.Median() >= chainLeast)
	t.figure("steps of joins of 100", "steps/s", joins)
	t.figure("CPU of one", "µs", joinCost)
	t.figure("jobs of no flow, each sent by itself", "jobs/s", alone)
	t.figure("CPU of one", "µs", aloneCost)
	var times bench.Series
	for i := range joins {
		times = append(times, joinCost[i]/aloneCost[i])
	}
	t.target("join of 100 / 100 jobs", times.Median(), "times the CPU", fmt.Sprintf("≤ %d", joinMost), times.Median() <= joinMost)
	return eachMemory(ctx, o, t)
}

// mill runs flows.
type mill struct {
	b      *broker.Broker
	runner *runner.Runner
	ended  chan string // kinds of jobs, as they complete
}

// onMill stores a flow named f, and measures with workers of all queues.
func onMill(ctx context.Context, o options, name, src string, measure func(*mill) error) (err error) {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(o.dir, name+".db")})
	if err != nil {
		return err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, b.Close(), os.Remove(filepath.Join(o.dir, name+".db"))) }()
	m := &mill{b: b, ended: make(chan string, 1<<16)}
	if m.runner, err = runner.New(b, runner.Config{Alone: true}); err != nil {
		return err
	}
	if _, problems, err := m.runner.Put(ctx, []byte(src), flow.Known{}); err != nil || len(problems) > 0 {
		return errors.Join(err, problems)
	}
	working, stop := context.WithCancel(ctx)
	var work errgroup.Group
	defer func() {
		stop()
		err = errors.Join(err, work.Wait())
	}()
	nothing := worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { return nil, nil })
	see := worker.Observe{Settled: func(o worker.Outcome) {
		if o.Verdict == forebay.Ack && o.Delivery.Job != nil {
			m.ended <- o.Delivery.Kind
		}
	}}
	for _, cfg := range []worker.Config{
		{Queue: m.runner.Queue(), Jobs: m.runner.Handler(), Concurrency: 200, Observe: see},
		{Queue: m.runner.AdvanceQueue(), Batch: m.runner.Advances(), Concurrency: 4},
		{Queue: flow.DefaultQueue, Jobs: m.runner.Steps(nothing), Concurrency: 200, Observe: see},
	} {
		w, err := worker.New(b, cfg)
		if err != nil {
			return err
		}
		work.Go(func() error { return w.Run(working) })
	}
	return measure(m)
}

// until waits for the ends of n jobs of a kind.
func (m *mill) until(ctx context.Context, kind string, n int) error {
	for n > 0 {
		select {
		case k := <-m.ended:
			if k == kind {
				n--
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// many does something n times, 64 at a time.
func many(n int, do func() error) error {
	var all errgroup.Group
	var next atomic.Int64
	for range 64 {
		all.Go(func() error {
			for next.Add(1) <= int64(n) {
				if err := do(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// rate is how many of a kind end in a second, when n are begun, and what CPU each costs
// in µs, with all that this process does for it.
func (m *mill) rate(ctx context.Context, kind string, n int, do func() error) (rate, cpu float64, err error) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		return 0, 0, err
	}
	from := time.Now()
	var all errgroup.Group
	all.Go(func() error { return many(n, do) })
	all.Go(func() error { return m.until(ctx, kind, n) })
	err = all.Wait()
	rate = float64(n) / time.Since(from).Seconds()
	after, also := cpuTime(os.Getpid())
	return rate, float64((after - before).Microseconds()) / float64(n), errors.Join(err, also)
}

func (m *mill) start(ctx context.Context) error {
	_, err := m.runner.Start(ctx, runner.Start{Flow: "f", Input: json.RawMessage(`{}`)})
	return err
}

func chainRate(ctx context.Context, o options, name string) (rate, cpu float64, err error) {
	src := "flow: f\nsteps:\n  a: {use: x}\n  b: {use: x, needs: a}\n  c: {use: x, needs: b}\n"
	err = onMill(ctx, o, name, src, func(m *mill) error {
		rate, cpu, err = m.rate(ctx, runner.KindRun, chainRuns, func() error { return m.start(ctx) })
		return err
	})
	return rate, cpu, err
}

func joinRate(ctx context.Context, o options, name string) (rate, cpu float64, err error) {
	src, needs := "flow: f\nsteps:\n", []string{}
	for i := range joinWidth {
		src += fmt.Sprintf("  s%d: {use: x, with: 1}\n", i)
		needs = append(needs, fmt.Sprintf("s%d", i))
	}
	src += "  j: {join: all, needs: [" + strings.Join(needs, ", ") + "]}\n"
	err = onMill(ctx, o, name, src, func(m *mill) error {
		rate, cpu, err = m.rate(ctx, runner.KindRun, joinRuns, func() error { return m.start(ctx) })
		return err
	})
	return rate * joinWidth, cpu / joinWidth, err
}

// freeRate is for as many jobs that belong to no flow.
func freeRate(ctx context.Context, o options, name string) (rate, cpu float64, err error) {
	job := []forebay.Message{{Queue: flow.DefaultQueue, Kind: "x", Payload: []byte("1"), Job: &forebay.JobOptions{}}}
	err = onMill(ctx, o, name, "flow: f\nsteps: {a: {use: x}}\n", func(m *mill) error {
		rate, cpu, err = m.rate(ctx, "x", joinRuns*joinWidth, func() error {
			results, err := m.b.Send(ctx, append([]forebay.Message{}, job...))
			if err == nil {
				err = results[0].Err
			}
			return err
		})
		return err
	})
	return rate, cpu, err
}

// eachMemory compares the heap of a run of many items with that of a tenth of them.
func eachMemory(ctx context.Context, o options, t *table) error {
	src := fmt.Sprintf("flow: f\nsteps:\n  a: {use: x, for_each: {in: input.n, max_in_flight: %d}}\n", eachFlight)
	var peaks []float64
	for _, items := range []int{eachItems / 10, eachItems} {
		err := onMill(ctx, o, fmt.Sprintf("flows-each-%d", items), src, func(m *mill) error {
			from := time.Now()
			if _, err := m.runner.Start(ctx, runner.Start{Flow: "f", Input: fmt.Appendf(nil, `{"n":%d}`, items)}); err != nil {
				return err
			}
			done := make(chan error, 1)
			go func() { done <- m.until(ctx, runner.KindRun, 1) }()
			peak, err := heapUntil(done)
			peaks = append(peaks, peak)
			if items == eachItems {
				t.figure(fmt.Sprintf("items of a for_each, %d in flight", eachFlight), "items/s", bench.Series{float64(items) / time.Since(from).Seconds()})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	grown := peaks[1] - peaks[0]
	t.target(fmt.Sprintf("heap of a run of %d items beyond one of %d", eachItems, eachItems/10), grown, "MiB", fmt.Sprintf("≤ %d", eachMost), grown <= eachMost)
	return nil
}

// heapUntil gives the largest live heap, in MiB, until something is done.
func heapUntil(done <-chan error) (peak float64, err error) {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return peak, err
		case <-look.C:
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, float64(m.HeapAlloc)/(1<<20))
		}
	}
}
