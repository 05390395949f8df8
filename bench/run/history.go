package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// What the history part sends and settles in one measurement.
const (
	historySent  = 64_000
	historySize  = 100
	historyHands = 16
)

// history measures the same work on a store without a log of messages, with an empty
// one, and with one that holds o.history messages; and without one after as many, in turns.
func history(ctx context.Context, o options, t *table) error {
	// The same was sent to both, so that what is remembered of ids is the same too.
	full := sqlite.Config{Path: filepath.Join(o.dir, "history-full.db"), Log: keepAll()}
	sent := sqlite.Config{Path: filepath.Join(o.dir, "history-sent.db")}
	for _, cfg := range []sqlite.Config{full, sent} {
		e, err := sqlite.Open(cfg)
		if err != nil {
			return err
		}
		err = fillHistory(ctx, e, o.history)
		if err = errors.Join(err, e.Close()); err != nil {
			return err
		}
	}
	type stand struct {
		name          string
		cfg           sqlite.Config
		sends, drains bench.Series
	}
	stands := []*stand{{name: "none"}, {name: "empty", cfg: sqlite.Config{Log: keepAll()}}, {name: "none, used", cfg: sent}, {name: "full", cfg: full}}
	for round := range o.rounds {
		for at := range stands { // each comes first now and then
			s := stands[(at+round)%len(stands)]
			if s.cfg.Path != full.Path && s.cfg.Path != sent.Path {
				s.cfg.Path = filepath.Join(o.dir, fmt.Sprintf("history-%s-%d.db", s.name, round))
			}
			sent, drained, err := sendAndSettle(ctx, s.cfg, fmt.Sprint("round-", round, "-"))
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			s.sends, s.drains = append(s.sends, sent), append(s.drains, drained)
		}
	}
	for _, s := range stands {
		t.figure("send, log "+s.name, "msgs/s", s.sends)
		t.figure("receive and settle, log "+s.name, "msgs/s", s.drains)
	}
	held := short(float64(o.history))
	t.ratio("send with a log / without", stands[1].sends, stands[0].sends, 0.9)
	t.ratio("settle with a log / without", stands[1].drains, stands[0].drains, 0.9)
	t.ratio("send with "+held+" in it / as many sent, without a log", stands[3].sends, stands[2].sends, 0.9)
	t.ratio("settle with "+held+" in it / as many sent, without a log", stands[3].drains, stands[2].drains, 0.9)
	return nil
}

// keepAll keeps whatever a measurement sends.
func keepAll() sqlite.LogConfig { return sqlite.LogConfig{Age: 24 * time.Hour, MaxBytes: 1 << 40} }

// fillHistory sends messages and settles them, so that the log alone has them.
func fillHistory(ctx context.Context, e *sqlite.Engine, n int) error {
	const share = 50_000
	for done := 0; done < n; done += share {
		some := min(share, n-done) / 1000 * 1000
		if _, err := bench.Send(ctx, e, 2, 1000, bench.Messages(fmt.Sprint("fill", done), some)); err != nil {
			return err
		}
		if _, err := bench.Drain(ctx, e, 2, 1000, some); err != nil {
			return err
		}
	}
	return nil
}

// sendAndSettle sends and settles on one store.
func sendAndSettle(ctx context.Context, cfg sqlite.Config, run string) (sent, drained float64, err error) {
	e, err := sqlite.Open(cfg)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	r, err := bench.Send(ctx, e, historyHands, historySize, bench.Messages(run, historySent))
	if err != nil {
		return 0, 0, err
	}
	d, err := bench.Drain(ctx, e, historyHands, historySize, historySent)
	if err != nil {
		return 0, 0, err
	}
	if left, err := e.Stats(ctx, "bench"); err != nil || left[0].Waiting+left[0].Active > 0 {
		return 0, 0, fmt.Errorf("%+v is left, %w", left, err)
	}
	return r.Rate(), d.Rate(), nil
}
