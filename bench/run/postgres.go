package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/postgres"
	"github.com/forebayhq/forebay/internal/pgtest"
)

// The part postgres: the same loads as those of the part redis, on a PostgreSQL with its
// settings as they come, which flushes each commit.
func postgresPart(ctx context.Context, o options, t *table) (err error) {
	s, err := pgtest.New(ctx, pgtest.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, m := range []struct {
		name, unit string
		do         func(context.Context, *broker.Broker) (float64, error)
	}{
		{"add, 64 in flight", "jobs/s", addOneByOne},
		{"add, 250 at once", "jobs/s", addInBulk},
		{"work, 50 at once", "jobs/s", drainJobs},
		{"p99 from add to start, idle", "ms", idleJobs},
	} {
		var ours bench.Series
		for range o.rounds {
			rate, err := postgresRate(ctx, s, m.do)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			ours = append(ours, rate)
		}
		t.figure("forebay on PostgreSQL, "+m.name, m.unit, ours)
	}
	return nil
}

// postgresRate measures on a database of its own.
func postgresRate(ctx context.Context, s *pgtest.Server, measure func(context.Context, *broker.Broker) (float64, error)) (rate float64, err error) {
	url, err := s.Create(ctx)
	if err != nil {
		return 0, err
	}
	e, err := postgres.Open(ctx, postgres.Config{URL: url})
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
