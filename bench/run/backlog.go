package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

const smallBacklog = 1_000

// held is what a child process with a backlog found.
type held struct {
	OpenSeconds  float64 // until the engine was open, and the first message handed out
	CycleSeconds float64 // one receive and settle of 100, the median
	RSS          int64   // at the end, in bytes
}

// backlog compares the cost of receive and settle at two sizes of the backlog.
// Each runs in a process of its own: one fills the store and ends, another opens
// it and works.
func backlog(ctx context.Context, o options, t *table) error {
	measure := func(name string, n int) (h held, err error) {
		path := filepath.Join(o.dir, name+".db")
		if err := runChild(ctx, nil, "fill", path, strconv.Itoa(n)); err != nil {
			return h, err
		}
		return h, runChild(ctx, &h, "work", path)
	}
	var small, large, open, rss bench.Series
	for round := range o.rounds {
		s, err := measure(fmt.Sprint("small-", round), smallBacklog)
		if err != nil {
			return err
		}
		l, err := measure(fmt.Sprint("large-", round), o.backlog)
		if err != nil {
			return err
		}
		small, large = append(small, s.CycleSeconds*1e6), append(large, l.CycleSeconds*1e6)
		open, rss = append(open, l.OpenSeconds), append(rss, float64(l.RSS)/1e6)
	}
	t.figure(short(smallBacklog)+" waiting: receive + settle 100", "µs", small)
	t.figure(short(float64(o.backlog))+" waiting: receive + settle 100", "µs", large)
	cost := large.Median() / small.Median()
	t.target("cost at the large backlog / at the small one", cost, "", "≤ 1.30", cost <= 1.3)
	t.target("open and first message", open.Median(), "s", "≤ 2.00", open.Median() <= 2)
	t.target("resident memory", rss.Median(), "MB", "≤ 200", rss.Median() <= 200)
	return nil
}

func runChild(ctx context.Context, into any, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"-child"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(out, into)
}

// child is what this program does as a process of its own.
func child(ctx context.Context, o options, args []string) error {
	switch {
	case o.child == "bare" && len(args) == 1:
		return http.ListenAndServe(args[0], bench.Bare())
	case o.child == "fill" && len(args) == 2:
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return fill(ctx, args[0], n)
	case o.child == "work" && len(args) == 1:
		return work(ctx, args[0])
	}
	return fmt.Errorf("no such child: %s %v", o.child, args)
}

func fill(ctx context.Context, path string, n int) (err error) {
	e, err := sqlite.Open(sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	const share = 10_000
	for done := 0; done < n; done += share {
		some := min(share, n-done)
		if _, err := bench.Send(ctx, e, 1, min(some, 1000), bench.Messages(fmt.Sprint("fill", done), some)); err != nil {
			return err
		}
	}
	return nil
}

// work opens a store with a backlog and takes 100 at a time; what it takes it
// sends again, outside of what is timed, so that the backlog stays as it is.
func work(ctx context.Context, path string) (err error) {
	const cycles, size = 300, 100
	before := time.Now()
	e, err := sqlite.Open(sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	got, err := e.Receive(ctx, engine.Receive{Queue: "bench", Max: 1, Wait: 10 * time.Second})
	if err != nil || len(got) != 1 {
		return fmt.Errorf("the first message: %d, %w", len(got), err)
	}
	h := held{OpenSeconds: time.Since(before).Seconds()}
	var times bench.Series
	for i := range cycles {
		r, err := bench.Drain(ctx, e, 1, size, size)
		if err != nil {
			return err
		}
		times = append(times, r.Took.Seconds())
		if _, err := bench.Send(ctx, e, 1, size, bench.Messages(fmt.Sprint("again", i), size)); err != nil {
			return err
		}
	}
	h.CycleSeconds = times.Median()
	if h.RSS, err = residentMemory(os.Getpid()); err != nil {
		return err
	}
	runtime.KeepAlive(e)
	return json.NewEncoder(os.Stdout).Encode(h)
}

// residentMemory of a process, from /proc.
func residentMemory(pid int) (int64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm of %d: %q", pid, statm)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
