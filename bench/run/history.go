package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// What the history part sends and settles: a round goes to all stores, in turns that are so
// short that what else the machine does falls on all alike, and long enough for what a
// store saves of it to fall on its own.
const (
	historyTurn  = 32_000
	historyTurns = 2 // of a round
	historySize  = 100
	historyHands = 16
	historyMost  = 1.10 // times the time
	shortHistory = 1000 // entries, where only the ids are to be many
)

// historyPart measures the same work on stores without a log of messages, with an empty one,
// and with one that holds o.history messages; then jobs, on stores whose history of jobs
// is empty, and at its bound with o.history entries. Who has taken so many messages knows
// their ids too, with or without a history: one more store of each kind tells what that costs.
func historyPart(ctx context.Context, o options, t *table) error {
	kinds := []struct {
		name   string
		job    *forebay.JobOptions
		events int // entries of one
		stands []*historyStand
	}{
		{"messages", nil, 1, []*historyStand{
			{name: "without a log"}, {name: "log empty", cfg: sqlite.Config{Log: keepAll()}}, {name: "the same ids known, without a log", full: true},
			{name: "log full", cfg: sqlite.Config{Log: keepAll()}, full: true}}},
		{"jobs", &forebay.JobOptions{Keep: forebay.Retention{Finished: forebay.Keep{None: true}}}, 3, []*historyStand{
			{name: "history empty"}, {name: "the same ids known, history short", cfg: sqlite.Config{HistoryMax: shortHistory}, full: true},
			{name: "history full", cfg: sqlite.Config{HistoryMax: int64(o.history)}, full: true}}},
	}
	for _, k := range kinds {
		if err := compareHistory(ctx, o, k.job, o.history/k.events, k.stands); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		for _, s := range k.stands {
			t.figure("send "+k.name+", "+s.name, "/s", s.sends)
			t.figure("receive and settle "+k.name+", "+s.name, "/s", s.drains)
		}
		last := len(k.stands) - 1
		for _, s := range k.stands[:last] {
			full, than := k.stands[last], short(float64(o.history))+" entries / "+s.name
			t.times("time to send "+k.name+", "+than, full.sends, s.sends)
			t.times("time to receive and settle "+k.name+", "+than, full.drains, s.drains)
		}
	}
	return nil
}

// times adds how many times as long as the baseline something takes, round by round.
func (t *table) times(name string, ours, baseline bench.Series) {
	var r bench.Series
	for i := range ours {
		r = append(r, baseline[i]/ours[i])
	}
	t.target(name, r.Median(), fmt.Sprintf("times (±%.0f %%)", r.Spread()*50), fmt.Sprintf("≤ %.2f", historyMost), r.Median() <= historyMost)
}

// historyStand is one store.
type historyStand struct {
	name          string
	cfg           sqlite.Config
	full          bool
	e             *sqlite.Engine
	sends, drains bench.Series
}

// compareHistory fills the stores that are to be full, and lets all work in turns.
func compareHistory(ctx context.Context, o options, job *forebay.JobOptions, fill int, stands []*historyStand) (err error) {
	for i, s := range stands {
		s.cfg.Path = filepath.Join(o.dir, fmt.Sprintf("history-%t-%d.db", job != nil, i))
		if s.full {
			if err := fillHistory(ctx, s.cfg, job, fill); err != nil {
				return err
			}
		}
		if s.e, err = sqlite.Open(s.cfg); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.e.Close()) }()
	}
	for round := -1; round < o.rounds; round++ { // the first one warms up
		took := make([]struct{ send, drain time.Duration }, len(stands))
		for turn := range historyTurns {
			for k := range stands {
				at := (k + turn + round + 1) % len(stands)
				msgs := historyMessages(job, fmt.Sprintf("round-%d-%d", round, turn), historyTurn)
				sent, drained, err := sendAndSettle(ctx, stands[at].e, msgs)
				if err != nil {
					return fmt.Errorf("%s: %w", stands[at].name, err)
				}
				took[at].send, took[at].drain = took[at].send+sent, took[at].drain+drained
			}
		}
		for at, s := range stands {
			if round >= 0 {
				s.sends = append(s.sends, historyTurns*historyTurn/took[at].send.Seconds())
				s.drains = append(s.drains, historyTurns*historyTurn/took[at].drain.Seconds())
			}
		}
	}
	return nil
}

// keepAll keeps whatever a measurement sends.
func keepAll() sqlite.LogConfig { return sqlite.LogConfig{Age: 24 * time.Hour, MaxBytes: 1 << 40} }

func historyMessages(job *forebay.JobOptions, run string, n int) []forebay.Message {
	msgs := bench.Messages(run, n)
	for i := range msgs {
		msgs[i].Job = job
	}
	return msgs
}

// fillHistory sends messages and settles them, so that the history alone has them: the
// next share is sent while one is settled.
func fillHistory(ctx context.Context, cfg sqlite.Config, job *forebay.JobOptions, n int) (err error) {
	const share, size = 50_000, 1000
	n = n / size * size
	e, err := sqlite.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	start, told := time.Now(), 0
	for sent, settled := 0, 0; settled < n; {
		both, ctx := errgroup.WithContext(ctx)
		some, waiting := min(share, n-sent), sent-settled
		if some > 0 {
			both.Go(func() error {
				_, err := bench.Send(ctx, e, 1, size, historyMessages(job, fmt.Sprint("fill", sent), some))
				return err
			})
		}
		if waiting > 0 {
			both.Go(func() error {
				_, err := bench.Drain(ctx, e, 1, size, waiting)
				return err
			})
		}
		if err := both.Wait(); err != nil {
			return err
		}
		sent, settled = sent+some, settled+waiting
		if settled-told >= 1_000_000 || settled == n {
			told = settled
			fmt.Fprintf(os.Stderr, "history: filled with %s of %s in %s\n", short(float64(settled)), short(float64(n)), time.Since(start).Round(time.Second))
		}
	}
	return nil
}

// sendAndSettle sends and settles on one store.
func sendAndSettle(ctx context.Context, e *sqlite.Engine, msgs []forebay.Message) (sent, drained time.Duration, err error) {
	r, err := bench.Send(ctx, e, historyHands, historySize, msgs)
	if err != nil {
		return 0, 0, err
	}
	d, err := bench.Drain(ctx, e, historyHands, historySize, len(msgs))
	if err != nil {
		return 0, 0, err
	}
	if r.N != len(msgs) || d.N != len(msgs) {
		return 0, 0, fmt.Errorf("%d sent and %d settled, want %d", r.N, d.N, len(msgs))
	}
	if left, err := e.Stats(ctx, "bench"); err != nil || left[0].Waiting+left[0].Active > 0 {
		return 0, 0, fmt.Errorf("%+v is left, %w", left, err)
	}
	return r.Took, d.Took, nil
}
