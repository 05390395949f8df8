package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// onBroker runs a measurement on a broker with an engine of its own, its watcher, and
// a worker where there is a handler.
func onBroker(ctx context.Context, o options, name string, concurrency int, jobs worker.JobFunc, measure func(context.Context, *broker.Broker) error) (err error) {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(o.dir, name+".db")})
	if err != nil {
		return err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	running, stop := context.WithCancel(ctx)
	var group errgroup.Group
	defer func() {
		stop()
		err = errors.Join(err, group.Wait())
	}()
	group.Go(func() error { return b.Watcher().Run(running) })
	<-b.Watcher().Ready()
	if jobs != nil {
		w, err := worker.New(b, worker.Config{Queue: "bench", Concurrency: concurrency, Jobs: jobs})
		if err != nil {
			return err
		}
		group.Go(func() error { return w.Run(running) })
	}
	return measure(ctx, b)
}

// addJob adds one job, durably.
func addJob(ctx context.Context, b *broker.Broker, m forebay.Message) error {
	m.Queue, m.Job = "bench", &forebay.JobOptions{}
	res, err := b.Send(ctx, []forebay.Message{m})
	if err == nil {
		err = res[0].Err
	}
	if err == nil && res[0].Duplicate {
		err = fmt.Errorf("the job %q is a duplicate", m.ID)
	}
	return err
}
