package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

const (
	jobCount    = 320 * jobsAtOnce
	jobsAtOnce  = 64  // adds on their way
	jobHandlers = 100 // no-op handlers
)

// jobs compares tracked no-op jobs end to end (added one by one, 64 at a time, and
// worked at the same time) with BullMQ and asynq on a Redis that syncs each write,
// and adding over HTTP with a node:http server before BullMQ.
func jobs(ctx context.Context, o options, t *table) (err error) {
	p, err := startPeers(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	var ours, bull, asynq bench.Series
	for round := range o.rounds {
		b, err := p.bullmqJobs(ctx, jobCount, jobsAtOnce, jobHandlers)
		if err != nil {
			return fmt.Errorf("bullmq: %w", err)
		}
		mine, err := ourJobs(ctx, o, round)
		if err != nil {
			return err
		}
		a, err := p.asynqJobs(ctx, jobCount/4, jobsAtOnce, jobHandlers)
		if err != nil {
			return fmt.Errorf("asynq: %w", err)
		}
		bull, ours, asynq = append(bull, b), append(ours, mine), append(asynq, a)
	}
	t.figure("BullMQ, Redis appendfsync always", "jobs/s", bull)
	t.figure("asynq, the same", "jobs/s", asynq)
	t.figure("forebay, embedded, durable", "jobs/s", ours)
	t.ratio("jobs / BullMQ", ours, bull, 3)
	t.ratio("jobs / asynq", ours, asynq, 5)
	return posts(ctx, o, t, p)
}

// ourJobs adds and works jobs in one process, and looks that the ledger has them.
func ourJobs(ctx context.Context, o options, round int) (rate float64, err error) {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(o.dir, fmt.Sprintf("jobs-%d.db", round))})
	if err != nil {
		return 0, err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return 0, errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var handled atomic.Int64
	last := make(chan struct{})
	w, err := worker.New(b, worker.Config{Queue: "bench", Concurrency: jobHandlers, Jobs: worker.JobFunc(
		func(context.Context, *worker.Job) ([]byte, error) {
			if handled.Add(1) == jobCount {
				close(last)
			}
			return nil, nil
		})})
	if err != nil {
		return 0, err
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(working) }()
	payload := []byte(`{"note":"` + strings.Repeat("x", 280) + `"}`)
	start := time.Now()
	_, err = bench.Load(ctx, jobsAtOnce, jobCount, 1, func(ctx context.Context, _, _ int) error {
		res, err := b.Send(ctx, []forebay.Message{{Queue: "bench", Kind: "noop", Payload: payload, Job: &forebay.JobOptions{}}})
		if err != nil {
			return err
		}
		return res[0].Err
	})
	if err == nil {
		select {
		case <-last:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	stop() // returns when the last verdicts are stored
	err = errors.Join(err, <-ended)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	kept, err := b.Finished(ctx)
	if n := kept["bench"][forebay.StateCompleted]; err == nil && n != jobCount {
		err = fmt.Errorf("the ledger has %d completed jobs of %d", n, jobCount)
	}
	return jobCount / took.Seconds(), err
}

// posts compares POST /api/jobs with a node:http server that adds to BullMQ.
func posts(ctx context.Context, o options, t *table, p *peers) (err error) {
	script := filepath.Join(o.dir, "job.lua")
	body := `{"queue":"bench","name":"noop","data":{"note":"` + strings.Repeat("x", 280) + `"}}`
	lua := "wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[" + body + "]==]\n"
	if err := os.WriteFile(script, []byte(lua), 0o600); err != nil {
		return err
	}
	node, err := p.bullmqHTTP(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = node.stop() }() // node ends by the signal
	mine, err := startForebay(ctx, o, "posts")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mine.stop()) }()
	var ours, theirs, p99 bench.Series
	for range o.rounds {
		n, err := wrk(ctx, o, node.url+"/", script)
		if err != nil {
			return err
		}
		m, err := wrk(ctx, o, mine.url+"/api/jobs", script)
		if err != nil {
			return err
		}
		theirs, ours, p99 = append(theirs, n.perSecond), append(ours, m.perSecond), append(p99, m.p99.Seconds()*1000)
	}
	t.figure("node:http + BullMQ, appendfsync always", "posts/s", theirs)
	t.figure("POST /api/jobs, durable", "posts/s", ours)
	t.figure("  p99", "ms", p99)
	t.ratio("POST /api/jobs / node:http + BullMQ", ours, theirs, 1.8)
	return nil
}
