package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/estimate"
	"github.com/forebayhq/forebay/worker"
)

// starts measures when jobs begin: at once where nothing else is to be done, and when
// they are due; and how well it was estimated when they would end.
func starts(ctx context.Context, o options, t *table) error {
	return errors.Join(startAtIdle(ctx, o, t), lateness(ctx, o, t), coverage(ctx, o, t))
}

const startJobs = 2_000

// startAtIdle is the time from the call that adds a job to its handler, one at a time.
func startAtIdle(ctx context.Context, o options, t *table) error {
	started := make(chan time.Time, 1)
	handle := func(context.Context, *worker.Job) ([]byte, error) {
		started <- time.Now()
		return nil, nil
	}
	return onBroker(ctx, o, "start", 1, handle, func(ctx context.Context, b *broker.Broker) error {
		var times []time.Duration
		for range startJobs {
			before := time.Now()
			if err := addJob(ctx, b, forebay.Message{Kind: "noop", Payload: []byte("{}")}); err != nil {
				return err
			}
			select {
			case at := <-started:
				times = append(times, at.Sub(before))
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		quantiles(t, "add to start of a job, at idle", times, 5)
		return nil
	})
}

// lateness is how long after its time a delayed job begins. They are due evenly over
// a few seconds, at odd times.
func lateness(ctx context.Context, o options, t *table) error {
	const first, apart = time.Second, 2 * time.Millisecond
	began := make(chan time.Duration, startJobs)
	handle := func(_ context.Context, j *worker.Job) ([]byte, error) {
		began <- time.Since(j.NotBefore)
		return nil, nil
	}
	return onBroker(ctx, o, "delayed", 8, handle, func(ctx context.Context, b *broker.Broker) error {
		due := time.Now().Add(first)
		msgs := make([]forebay.Message, startJobs)
		for i := range msgs {
			at := due.Add(time.Duration(i) * apart).Add(rand.N(apart))
			msgs[i] = forebay.Message{Queue: "bench", Kind: "noop", Payload: []byte("{}"), NotBefore: at, Job: &forebay.JobOptions{}}
		}
		results, err := b.Send(ctx, msgs)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
		var late []time.Duration
		for range msgs {
			select {
			case d := <-began:
				if d < 0 {
					return errors.New("a delayed job began before its time")
				}
				late = append(late, d)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		quantiles(t, "delayed jobs, late by", late, 10)
		return nil
	})
}

func quantiles(t *table, name string, times []time.Duration, most float64) {
	slices.Sort(times)
	ms := func(q float64) float64 { return bench.Quantile(times, q).Seconds() * 1000 }
	t.figure(name+", p50", "ms", bench.Series{ms(0.5)})
	t.target(name+", p99", ms(0.99), "ms", "≤ "+strconv.FormatFloat(most, 'f', 2, 64), ms(0.99) <= most)
}

// coverage says how many jobs of a real queue ended within the range that was told
// when they were added. Arrivals come in bursts, and service times vary: log-normal,
// of two kinds.
func coverage(ctx context.Context, o options, t *table) error {
	const jobs, slots = 3_000, 4
	random := rand.New(rand.NewPCG(3, 4))
	handle := func(ctx context.Context, j *worker.Job) ([]byte, error) {
		d, err := time.ParseDuration(string(j.Payload[1 : len(j.Payload)-1]))
		if err != nil {
			return nil, err
		}
		return nil, pause(ctx, d)
	}
	return onBroker(ctx, o, "coverage", slots, handle, func(ctx context.Context, b *broker.Broker) error {
		for i := range jobs {
			kind, typical := "quick", 4*time.Millisecond
			if i%5 == 0 {
				kind, typical = "slow", 20*time.Millisecond
			}
			d := time.Duration(float64(typical) * math.Exp(0.4*random.NormFloat64()))
			if err := addJob(ctx, b, forebay.Message{Kind: kind, Payload: []byte(strconv.Quote(d.String()))}); err != nil {
				return err
			}
			if i%40 == 0 {
				if err := pause(ctx, time.Duration(random.IntN(200))*time.Millisecond); err != nil {
					return err
				}
			}
		}
		for begun := time.Now(); time.Since(begun) < time.Minute; {
			counts, err := b.Finished(ctx)
			if err != nil {
				return err
			}
			if counts["bench"][forebay.StateCompleted] == jobs {
				break
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil { // for the watcher to see the last ones
			return err
		}
		last := b.Coverage()
		if last.Jobs < jobs/2 {
			return errors.New("too few jobs had an estimate")
		}
		t.target("jobs that ended within their estimate ("+short(float64(last.Jobs))+" of "+short(jobs)+" had one)", 100*last.Share(), "%",
			short(100*estimate.Stated)+" ± 10", math.Abs(last.Share()-estimate.Stated) <= 0.1)
		t.figure("  ended earlier", "%", bench.Series{100 * float64(last.Below) / float64(last.Jobs)})
		t.figure("  ended later", "%", bench.Series{100 * float64(last.Above) / float64(last.Jobs)})
		return nil
	})
}
