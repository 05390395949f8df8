package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// idle reads the CPU time of a server that has nothing to do.
func idle(ctx context.Context, o options, t *table) error {
	p, err := startForebay(ctx, o, "idle")
	if err != nil {
		return err
	}
	defer p.stop()
	if err := pause(ctx, 3*time.Second); err != nil { // for the start to be over
		return err
	}
	const window = 10 * time.Second
	before, err := cpuTime(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := pause(ctx, window); err != nil {
		return err
	}
	after, err := cpuTime(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	share := 100 * (after - before).Seconds() / window.Seconds()
	t.target("CPU of an idle server", share, "% of one core", "≤ 0.50", share <= 0.5)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cpuTime is the user and system time that a process used, from /proc.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // the first is field 3 of proc(5)
	if len(fields) < 13 {
		return 0, fmt.Errorf("stat of %d: %q", pid, stat)
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// latency is the time from the call of Send to the call of the handler, durable,
// one message at a time.
func latency(ctx context.Context, o options, t *table) (err error) {
	const messages = 3_000
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(o.dir, "latency.db")})
	if err != nil {
		return err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	started := make(chan time.Time, 1)
	w, err := worker.New(b, worker.Config{Queue: "bench", Handler: handler(func() { started <- time.Now() })})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() { stop(); err = errors.Join(err, <-done) }()

	var times []time.Duration
	for _, m := range bench.Messages("latency", messages) {
		before := time.Now()
		if _, err := b.Send(ctx, []forebay.Message{m}); err != nil {
			return err
		}
		select {
		case at := <-started:
			times = append(times, at.Sub(before))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	slices.Sort(times)
	ms := func(q float64) float64 { return bench.Quantile(times, q).Seconds() * 1000 }
	t.figure("send to handler, p50", "ms", bench.Series{ms(0.5)})
	t.target("send to handler, p99", ms(0.99), "ms", "≤ 5.00", ms(0.99) <= 5)
	return nil
}

type handler func()

func (h handler) Handle(context.Context, forebay.Delivery) error { h(); return nil }
