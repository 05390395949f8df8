package postgres

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
)

// Explain names SQLSTATE, table, constraint and column of a refused row.
func (db *database) Explain(ctx context.Context, e *event.Event, err error) forebay.Cause {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return forebay.Cause{Code: "postgres"}
	}
	ctx, cancel := context.WithTimeout(ctx, db.cfg.Timeout)
	defer cancel()
	detail := map[string]string{"table": db.cfg.Table}
	for k, v := range map[string]string{
		"constraint": pe.ConstraintName,
		"column":     db.columnOf(ctx, e, pe),
		"detail":     pe.Detail,
	} {
		if v != "" {
			detail[k] = shorten(v)
		}
	}
	return forebay.Cause{Code: pe.Code, Message: shorten(pe.Message), Detail: detail}
}

// shorten bounds what a cause keeps: PostgreSQL repeats the row in its errors.
func shorten(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// keyColumns finds "Key (a, b)=(1, 2) already exists." in a detail.
var keyColumns = regexp.MustCompile(`^Key \(([^)=]+)\)=`)

// columnOf finds the column at fault: PostgreSQL names it only now and then.
func (db *database) columnOf(ctx context.Context, e *event.Event, pe *pgconn.PgError) string {
	if pe.ColumnName != "" {
		return pe.ColumnName
	}
	if m := keyColumns.FindStringSubmatch(pe.Detail); m != nil {
		return m[1]
	}
	if pe.ConstraintName != "" {
		return db.constraintColumns(ctx, pe.ConstraintName)
	}
	return db.testColumns(ctx, e)
}

// constraintColumns asks for the columns of a constraint; empty if there are none
// or the database does not answer: the dead letter is not worth an outage.
func (db *database) constraintColumns(ctx context.Context, constraint string) string {
	var columns string
	err := db.pool.QueryRow(ctx, `
		SELECT coalesce(string_agg(a.attname, ', ' ORDER BY k.place), '')
		FROM pg_constraint c
		CROSS JOIN unnest(c.conkey) WITH ORDINALITY AS k (number, place)
		JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number
		WHERE c.conname = $1 AND c.conrelid = to_regclass($2)`, constraint, db.table.Sanitize()).Scan(&columns)
	if err != nil {
		return ""
	}
	return columns
}

// testColumns finds the value that PostgreSQL cannot even read.
func (db *database) testColumns(ctx context.Context, e *event.Event) string {
	for _, text := range []struct{ column, value string }{
		{"event_id", e.ID}, {"event_type", e.Type}, {"user_id", e.UserID}, {"source", e.Source},
	} {
		if strings.ContainsRune(text.value, 0) {
			return text.column
		}
	}
	var pe *pgconn.PgError
	if _, err := db.pool.Exec(ctx, "SELECT $1::jsonb IS NULL", string(e.Payload)); errors.As(err, &pe) && classOf(err) == classData {
		return "payload"
	}
	return ""
}
