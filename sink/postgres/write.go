package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
)

const (
	copyFrom      = 100 // rows from which on COPY is the faster way (bench/sink)
	cautiousAfter = 16  // big batches without COPY after one that COPY could not write
)

// Write writes all events or none.
func (db *database) Write(ctx context.Context, events []event.Event) (int, error) {
	limited, cancel := context.WithTimeout(ctx, db.cfg.Timeout)
	defer cancel()
	n, err := db.write(limited, events)
	switch {
	case err == nil:
		return n, nil
	case limited.Err() != nil && ctx.Err() == nil:
		return 0, fmt.Errorf("no answer within %s: %w", db.cfg.Timeout, context.DeadlineExceeded)
	}
	switch classOf(err) {
	case classData:
		return 0, &sink.Refused{Sure: true, Err: err}
	case classUnknown:
		return 0, &sink.Refused{Err: err}
	}
	if isNoPartition(err) {
		db.forget()
	}
	return 0, err
}

// write takes the fast way where that is likely to succeed. COPY knows no
// duplicates: one of them fails it as a whole, and then the batch, and some after
// it, go the safe way.
func (db *database) write(ctx context.Context, events []event.Event) (int, error) {
	if err := db.prepare(ctx); err != nil {
		return 0, err
	}
	if err := db.ensureDaysOf(ctx, events); err != nil {
		return 0, err
	}
	if len(events) >= copyFrom && db.cautious.Add(-1) < 0 {
		err := db.copyIn(ctx, events)
		if err == nil {
			db.cautious.Store(0)
			return len(events), nil
		}
		if classOf(err) == classOutage {
			return 0, err
		}
		db.cautious.Store(cautiousAfter)
	}
	tag, err := db.pool.Exec(ctx, db.insertSQL, columnsOf(events)...)
	return int(tag.RowsAffected()), err
}

// insertSQL names the key: a row that hurts another unique constraint, which a
// user has added, must fail and not vanish.
func insertSQL(table pgx.Identifier) string {
	columns := strings.Join(sink.Columns(), ", ")
	return "INSERT INTO " + table.Sanitize() + " (" + columns + ") SELECT " + columns + ` FROM unnest(
		$1::text[], $2::text[], $3::text[], $4::jsonb[], $5::timestamptz[],
		$6::timestamptz[], $7::timestamptz[], $8::text[], $9::timestamptz[]) AS e (` + columns + `)
		ON CONFLICT (event_id, received_at) DO NOTHING`
}

// columnsOf turns events into one array per column.
func columnsOf(events []event.Event) []any {
	n := len(events)
	ids, types, payloads := make([]string, n), make([]string, n), make([]string, n)
	users, sources := make([]*string, n), make([]*string, n)
	received := make([]time.Time, n)
	occurred, sent, original := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	for i := range events {
		e := &events[i]
		ids[i], types[i], payloads[i] = e.ID, e.Type, string(e.Payload)
		users[i], sources[i] = null(e.UserID), null(e.Source)
		received[i] = e.ReceivedAt.UTC()
		occurred[i], sent[i], original[i] = nullTime(e.OccurredAt), nullTime(e.SentAt), nullTime(e.OriginalAt)
	}
	return []any{ids, types, users, payloads, received, occurred, sent, sources, original}
}

func null(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func fromNull[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

// errRolledBack ends the transaction of Check.
var errRolledBack = errors.New("rolled back as intended")

// Check writes a row of our own and takes it back. A database that refuses that
// row for its data is one that answers.
func (db *database) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.cfg.Timeout)
	defer cancel()
	if err := db.prepare(ctx); err != nil {
		return err
	}
	probe := event.Event{ID: "forebay-check", Type: "forebay_check", Payload: []byte(`{}`), ReceivedAt: db.cfg.Now()}
	err := pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, db.insertSQL, columnsOf([]event.Event{probe})...); err != nil {
			return err
		}
		return errRolledBack
	})
	var pe *pgconn.PgError
	if errors.Is(err, errRolledBack) || errors.As(err, &pe) && classOf(err) == classData {
		return nil
	}
	return err
}
