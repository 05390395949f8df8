//go:build linux

package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const bareTable = `CREATE TABLE bare (
	event_id uuid PRIMARY KEY, event_type text NOT NULL, user_id text, payload jsonb NOT NULL,
	received_at timestamptz NOT NULL, occurred_at timestamptz, sent_at timestamptz, source text, original_at timestamptz)`

var columns = []string{
	"event_id", "event_type", "user_id", "payload", "received_at",
	"occurred_at", "sent_at", "source", "original_at",
}

// method is one way to write a batch.
type method struct {
	name       string
	table      string
	idempotent bool // and a baseline for the ratio
	own        bool // the sink
	write      func(context.Context, *batch) error
}

// methods are the bare ones. COPY is there to see what idempotence costs.
func methods(pool *pgxpool.Pool) []method {
	return []method{
		{name: "bare COPY", table: "bare", write: func(ctx context.Context, b *batch) error {
			_, err := pool.CopyFrom(ctx, pgx.Identifier{"bare"}, columns, rowsOf(b))
			return err
		}},
		{name: "bare UNNEST", table: "bare", idempotent: true, write: func(ctx context.Context, b *batch) error { return unnest(ctx, pool, b) }},
		{name: "bare staging table", table: "bare", idempotent: true, write: func(ctx context.Context, b *batch) error { return staged(ctx, pool, b) }},
	}
}

func rowsOf(b *batch) pgx.CopyFromSource {
	return pgx.CopyFromSlice(len(b.events), func(i int) ([]any, error) {
		e := &b.events[i]
		return []any{b.ids[i], e.Type, e.UserID, []byte(e.Payload), e.ReceivedAt, e.OccurredAt, e.SentAt, e.Source, nil}, nil
	})
}

func unnest(ctx context.Context, pool *pgxpool.Pool, b *batch) error {
	n := len(b.events)
	types, users, payloads, sources := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	received, occurred, sent := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i := range b.events {
		e := &b.events[i]
		types[i], users[i], payloads[i], sources[i] = e.Type, e.UserID, string(e.Payload), e.Source
		received[i], occurred[i], sent[i] = e.ReceivedAt, e.OccurredAt, e.SentAt
	}
	_, err := pool.Exec(ctx, `INSERT INTO bare SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[],
		$5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::timestamptz[]) ON CONFLICT DO NOTHING`,
		b.ids, types, users, payloads, received, occurred, sent, sources, make([]*time.Time, n))
	return err
}

func staged(ctx context.Context, pool *pgxpool.Pool, b *batch) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TEMP TABLE stage (LIKE bare) ON COMMIT DROP"); err != nil {
			return err
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"stage"}, columns, rowsOf(b)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO bare SELECT * FROM stage ON CONFLICT DO NOTHING")
		return err
	})
}
