package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/worker"
)

// Queues without work, each with a worker, and how long they are watched: two waits of
// each worker, and a sweep.
const (
	idleQueues = 1000
	idleFor    = 40 * time.Second
)

// idleQueuesPart reads the CPU time of Redis and of this process while workers wait.
func idleQueuesPart(ctx context.Context, p *peers, t *table) error {
	share, err := p.ourRate(ctx, func(ctx context.Context, b *broker.Broker) (ours float64, err error) {
		running, stop := context.WithCancel(ctx)
		var group errgroup.Group
		group.Go(func() error { return b.Watcher().Run(running) })
		defer func() { stop(); err = errors.Join(err, group.Wait()) }()
		<-b.Watcher().Ready()
		nothing := worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { return nil, nil })
		for i := range idleQueues {
			w, err := worker.New(b, worker.Config{Queue: fmt.Sprint("idle-", i), Concurrency: 1, Jobs: nothing})
			if err != nil {
				return 0, err
			}
			group.Go(func() error { return w.Run(running) })
		}
		if err := pause(ctx, 10*time.Second); err != nil { // for the start to be over
			return 0, err
		}
		pids := [...]int{os.Getpid(), p.redis.Process.Pid}
		var used [2]time.Duration
		for i, pid := range pids {
			if used[i], err = cpuTime(pid); err != nil {
				return 0, err
			}
		}
		if err := pause(ctx, idleFor); err != nil {
			return 0, err
		}
		for i, pid := range pids {
			after, err := cpuTime(pid)
			if err != nil {
				return 0, err
			}
			used[i] = after - used[i]
		}
		percent := func(d time.Duration) float64 { return 100 * d.Seconds() / idleFor.Seconds() }
		t.target("CPU of Redis, 1,000 idle queues", percent(used[1]), "% of one core", "< 1.00", percent(used[1]) < 1)
		return percent(used[0]), nil
	})
	if err == nil {
		t.target("CPU, 1,000 idle queues", share, "% of one core", "< 1.00", share < 1)
	}
	return err
}
