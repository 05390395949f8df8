package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/engine/sqlite"
)

const (
	producers = 64
	consumers = 8
	sends     = 128_000
)

// engineParts compares durable sends with the bare log, and drains what was sent.
func engineParts(ctx context.Context, o options, t *table) error {
	var bare, ours, drained, p99 bench.Series
	for round := range o.rounds {
		b, err := bareLog(ctx, o, round)
		if err != nil {
			return err
		}
		bare = append(bare, b.Rate())
		s, d, err := sendAndDrain(ctx, o, round)
		if err != nil {
			return err
		}
		ours, drained, p99 = append(ours, s.Rate()), append(drained, d.Rate()), append(p99, s.P99.Seconds()*1000)
	}
	t.figure("bare append + fdatasync, 64 producers", "records/s", bare)
	t.figure("durable send, 64 producers", "messages/s", ours)
	t.figure("  p99", "ms", p99)
	t.figure("receive + settle by 100", "messages/s", drained)
	t.ratio("send / bare log", ours, bare, 0.60)
	t.target("receive + settle by 100", drained.Median(), "messages/s", "≥ 100,000", drained.Median() >= 100_000)
	return nil
}

func bareLog(ctx context.Context, o options, round int) (r bench.Result, err error) {
	log, err := bench.OpenLog(filepath.Join(o.dir, fmt.Sprintf("bare-%d.log", round)))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	record := bench.Payload()
	return bench.Load(ctx, producers, sends, 1, func(context.Context, int, int) error { return log.Append(record) })
}

func sendAndDrain(ctx context.Context, o options, round int) (sent, drained bench.Result, err error) {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(o.dir, fmt.Sprintf("engine-%d.db", round))})
	if err != nil {
		return sent, drained, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if sent, err = bench.Send(ctx, e, producers, 1, bench.Messages(fmt.Sprint("round", round), sends)); err != nil {
		return sent, drained, err
	}
	drained, err = bench.Drain(ctx, e, consumers, 100, sent.N)
	return sent, drained, err
}
