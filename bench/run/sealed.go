package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// sealedPart compares sending and draining with payloads sealed, and as they are.
func sealedPart(ctx context.Context, o options, t *table) error {
	var sent, drained [2]bench.Series // plain, sealed
	for round := range o.rounds {
		for i := range sent {
			s, d, err := sealedRound(ctx, o, round, i == 1)
			if err != nil {
				return err
			}
			sent[i], drained[i] = append(sent[i], s.Rate()), append(drained[i], d.Rate())
		}
	}
	t.figure("durable send, 64 producers, plain", "messages/s", sent[0])
	t.figure("durable send, 64 producers, sealed", "messages/s", sent[1])
	t.figure("receive + settle by 100, plain", "messages/s", drained[0])
	t.figure("receive + settle by 100, sealed", "messages/s", drained[1])
	t.ratio("send sealed / plain", sent[1], sent[0], 0.8)
	t.ratio("receive + settle sealed / plain", drained[1], drained[0], 0.8)
	return nil
}

func sealedRound(ctx context.Context, o options, round int, seal bool) (sent, drained bench.Result, err error) {
	var e engine.Engine
	e, err = sqlite.Open(sqlite.Config{Path: filepath.Join(o.dir, fmt.Sprintf("sealed-%d-%t.db", round, seal))})
	if err != nil {
		return sent, drained, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if seal {
		keys, err := sealed.NewKeys("k1", map[string][]byte{"k1": bytes.Repeat([]byte{1}, sealed.KeyBytes)})
		if err != nil {
			return sent, drained, err
		}
		over, err := sealed.New(ctx, e, sealed.Config{Keys: keys})
		if err != nil {
			return sent, drained, err
		}
		e = over
	}
	if sent, err = bench.Send(ctx, e, producers, 1, bench.Messages(fmt.Sprint("sealed", round), sends)); err != nil {
		return sent, drained, err
	}
	drained, err = bench.Drain(ctx, e, consumers, 100, sent.N)
	return sent, drained, err
}
