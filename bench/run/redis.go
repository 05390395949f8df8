package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/worker"
)

// The part redis: BullMQ and we on one Redis, in turns.
const (
	redisJobs     = 20_000
	redisInflight = 64
	redisBulk     = 250
	redisHandlers = 50
	redisIdle     = 300
)

func redisPart(ctx context.Context, o options, t *table) (err error) {
	p, err := startPeers(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	// A rewrite of the log, grown by the rounds before, would fall into some measurements only.
	if err := p.cli(ctx, "config", "set", "auto-aof-rewrite-percentage", "0"); err != nil {
		return err
	}
	for _, flush := range []string{"everysec", "always"} {
		if err := p.cli(ctx, "config", "set", "appendfsync", flush); err != nil {
			return err
		}
		for _, m := range []struct {
			name  string
			bull  []string
			ours  func(context.Context, *broker.Broker) (float64, error)
			least float64
		}{
			{"add, 64 in flight", []string{"add", strconv.Itoa(redisJobs), strconv.Itoa(redisInflight)}, addOneByOne, 1.5},
			{"add, 250 at once", []string{"bulk", strconv.Itoa(redisJobs), strconv.Itoa(redisBulk)}, addInBulk, 1.5},
			{"work, 50 at once", []string{"drain", strconv.Itoa(redisJobs), strconv.Itoa(redisHandlers)}, drainJobs, 1.5},
			{"p99 from add to start, idle", []string{"idle", strconv.Itoa(redisIdle)}, idleJobs, 0},
		} {
			var bull, ours bench.Series
			for range o.rounds {
				b, err := p.bullmqRate(ctx, m.bull)
				if err != nil {
					return fmt.Errorf("bullmq %s: %w", m.name, err)
				}
				mine, err := p.ourRate(ctx, m.ours)
				if err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
				bull, ours = append(bull, b), append(ours, mine)
			}
			unit := map[bool]string{true: "jobs/s", false: "ms"}[m.least > 0]
			name := m.name + ", " + flush
			t.figure("BullMQ, "+name, unit, bull)
			t.figure("forebay, "+name, unit, ours)
			if m.least > 0 {
				t.ratio(name+" / BullMQ", ours, bull, m.least)
			} else {
				t.target(name, ours.Median(), unit, "≤ "+short(bull.Median()), ours.Median() <= bull.Median())
			}
		}
	}
	return idleQueuesPart(ctx, p, t)
}

func (p *peers) cli(ctx context.Context, args ...string) error {
	return exec.CommandContext(ctx, "redis-cli", append([]string{"-p", p.port}, args...)...).Run()
}

// bullmqRate runs redis.mjs, and gives the number that it prints.
func (p *peers) bullmqRate(ctx context.Context, args []string) (float64, error) {
	if err := p.flush(ctx); err != nil {
		return 0, err
	}
	run := func(args ...string) (float64, error) {
		cmd := exec.CommandContext(ctx, "node", append([]string{"redis.mjs"}, args...)...)
		cmd.Dir = filepath.Join(peersFolder, "bullmq")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	}
	if args[0] == "drain" { // bulk adds a tenth more, to warm up
		if _, err := run("bulk", p.port, strconv.Itoa(redisJobs*10/11/redisBulk*redisBulk), strconv.Itoa(redisBulk)); err != nil {
			return 0, err
		}
	}
	return run(append([]string{args[0], p.port}, args[1:]...)...)
}

// ourRate measures on an engine of its own.
func (p *peers) ourRate(ctx context.Context, measure func(context.Context, *broker.Broker) (float64, error)) (rate float64, err error) {
	if err := p.flush(ctx); err != nil {
		return 0, err
	}
	e, err := redis.Open(ctx, redis.Config{URL: "redis://127.0.0.1:" + p.port})
	if err != nil {
		return 0, err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return 0, errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	return measure(ctx, b)
}

var redisData = []byte(`{"note":"` + strings.Repeat("x", 280) + `"}`)

func redisJob(id int64) forebay.Message {
	return forebay.Message{ID: "job-" + strconv.FormatInt(id, 10), Queue: "bench", Kind: "noop", Payload: redisData, Job: &forebay.JobOptions{}}
}

func addOneByOne(ctx context.Context, b *broker.Broker) (float64, error) {
	return addJobs(ctx, b, redisInflight, 1)
}

func addInBulk(ctx context.Context, b *broker.Broker) (float64, error) {
	return addJobs(ctx, b, 1, redisBulk)
}

// addJobs adds from some producers, some at once, and gives the rate after a warm-up.
func addJobs(ctx context.Context, b *broker.Broker, producers, size int) (float64, error) {
	var n atomic.Int64
	run := func(total int64) error {
		most := n.Load() + total
		var all errgroup.Group
		for range producers {
			all.Go(func() error {
				for {
					last := n.Add(int64(size))
					if last > most {
						return nil
					}
					msgs := make([]forebay.Message, size)
					for i := range msgs {
						msgs[i] = redisJob(last - int64(i))
					}
					res, err := b.Send(ctx, msgs)
					if err != nil {
						return err
					}
					for _, r := range res {
						if r.Err != nil || r.Duplicate {
							return fmt.Errorf("sending %s: %w (duplicate: %v)", r.ID, r.Err, r.Duplicate)
						}
					}
				}
			})
		}
		return all.Wait()
	}
	if err := run(redisJobs / 10); err != nil {
		return 0, err
	}
	begun := time.Now()
	err := run(redisJobs)
	return redisJobs / time.Since(begun).Seconds(), err
}

// working runs a worker while do runs.
func working(ctx context.Context, b *broker.Broker, concurrency int, job worker.JobFunc, do func() error) error {
	w, err := worker.New(b, worker.Config{Queue: "bench", Concurrency: concurrency, Jobs: job})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return b.Watcher().Run(running) })
	<-b.Watcher().Ready()
	group.Go(func() error { return w.Run(running) })
	err = do()
	stop()
	return errors.Join(err, group.Wait())
}

// drainJobs gives how many waiting jobs are worked a second, until all are settled.
func drainJobs(ctx context.Context, b *broker.Broker) (rate float64, err error) {
	if _, err := addInBulk(ctx, b); err != nil {
		return 0, err
	}
	stats, err := b.Stats(ctx, "bench")
	if err != nil {
		return 0, err
	}
	total := stats[0].Waiting
	var handled atomic.Int64
	var begun time.Time
	last := make(chan struct{})
	job := func(context.Context, *worker.Job) ([]byte, error) {
		switch handled.Add(1) {
		case 1:
			begun = time.Now()
		case total:
			close(last)
		}
		return json.RawMessage("null"), nil
	}
	err = working(ctx, b, redisHandlers, job, func() error {
		<-last
		for {
			stats, err := b.Stats(ctx, "bench")
			if err != nil || stats[0].Active == 0 {
				rate = float64(total) / time.Since(begun).Seconds()
				return err
			}
		}
	})
	return rate, err
}

// idleJobs gives the p99 of the time from an add to its start, in ms.
func idleJobs(ctx context.Context, b *broker.Broker) (p99 float64, err error) {
	started := make(chan time.Time, 1)
	job := func(context.Context, *worker.Job) ([]byte, error) {
		started <- time.Now()
		return nil, nil
	}
	var waits bench.Series
	err = working(ctx, b, 1, job, func() error {
		for i := range int64(redisIdle + 20) {
			time.Sleep(10 * time.Millisecond)
			begun := time.Now()
			if _, err := b.Send(ctx, []forebay.Message{redisJob(i)}); err != nil {
				return err
			}
			if wait := (<-started).Sub(begun); i >= 20 {
				waits = append(waits, float64(wait)/float64(time.Millisecond))
			}
		}
		return nil
	})
	slices.Sort(waits)
	if len(waits) == 0 {
		return 0, err
	}
	return waits[(len(waits)*99+99)/100-1], err
}
