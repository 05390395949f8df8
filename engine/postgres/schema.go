package postgres

import (
	"context"
	"crypto/rand"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
)

// migrations are the steps from each version of the layout to the next. A step that has
// been released is never changed.
var migrations = [...]string{layout}

//go:embed schema.sql
var layout string

// q names the schema in a statement: a mark stands before each name of ours.
func (e *Engine) q(sql string) string { return strings.ReplaceAll(sql, "~", e.prefix) }

// migrate brings the schema up to this version, one process at a time.
func (e *Engine) migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migratePatience)
	defer cancel()
	if version, err := e.version(ctx); err != nil || version == len(migrations) {
		return err // most openings end here, and need no right to create
	}
	return e.fault(pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, 0)`, e.class); err != nil {
			return err
		}
		create := `CREATE SCHEMA IF NOT EXISTS ` + strings.TrimSuffix(e.prefix, ".") + `;
			CREATE TABLE IF NOT EXISTS ~about (version int NOT NULL, epoch text NOT NULL);
			INSERT INTO ~about SELECT 0, '` + strings.ToLower(rand.Text()[:12]) + `' WHERE NOT EXISTS (SELECT FROM ~about)`
		if _, err := tx.Exec(ctx, e.q(create), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		var version int
		if err := tx.QueryRow(ctx, e.q(`SELECT version FROM ~about`)).Scan(&version); err != nil {
			return err
		}
		for ; version < len(migrations); version++ {
			if _, err := tx.Exec(ctx, e.q(migrations[version]), pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, e.q(`UPDATE ~about SET version = $1`), version)
		return err
	}))
}

// version is that of the layout; 0: there is none yet.
func (e *Engine) version(ctx context.Context) (version int, err error) {
	var there bool
	if err := e.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, e.prefix+"about").Scan(&there); err != nil || !there {
		return 0, e.fault(err)
	}
	if err := e.pool.QueryRow(ctx, e.q(`SELECT version, epoch FROM ~about`)).Scan(&version, &e.epoch); err != nil {
		return 0, e.fault(err)
	}
	if version > len(migrations) {
		f := fail(forebay.CodeTooNew, "the schema %s is of version %d; this program knows %d", e.cfg.Schema, version, len(migrations))
		f.Hint = "start the newer program, or name another schema"
		return version, f
	}
	return version, nil
}
