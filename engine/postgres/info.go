package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Finding is something about the server that an operator should know.
type Finding struct {
	Code string // durability, vacuum, transactions
	Text string
	Hint string
}

// Server is what answers, as an operator wants to read it.
type Server struct {
	Version string
	Schema  string
	Bytes   int64 // of the tables, with their indexes
	Commit  string
	fsync   string
	vacuum  string
	oldest  float64 // seconds that the oldest transaction has lasted
}

// Server asks who answers.
func (e *Engine) Server(ctx context.Context) (s Server, err error) {
	if err := e.enter(); err != nil {
		return s, err
	}
	defer e.leave()
	s.Schema = e.cfg.Schema
	const sql = `SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'), current_setting('autovacuum'),
		coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity WHERE backend_type = 'client backend'), 0)::float8,
		(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r')`
	return s, e.read(ctx, sql, []any{e.cfg.Schema}, func(rows pgx.Rows) error {
		return rows.Scan(&s.Version, &s.Commit, &s.fsync, &s.vacuum, &s.oldest, &s.Bytes)
	})
}

const longTransaction = 600 // seconds

// Audit looks how far the server keeps what it says it has stored, and what slows it down.
func (e *Engine) Audit(ctx context.Context) ([]Finding, error) {
	s, err := e.Server(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	if s.fsync != "on" {
		found = append(found, Finding{"durability", "the server does not flush to its disk (fsync = off): power loss may damage all of it", "set fsync = on"})
	}
	if s.Commit == "off" {
		found = append(found, Finding{"durability", "the server answers before it has flushed (synchronous_commit = off): power loss loses what was acknowledged in the last moments",
			"set synchronous_commit = on, for the user of postgres.url at least"})
	}
	if s.vacuum != "on" {
		found = append(found, Finding{"vacuum", "autovacuum is off: the tables of the queue grow, and claims go past dead rows", "set autovacuum = on"})
	}
	if s.oldest > longTransaction {
		found = append(found, Finding{"transactions", "a transaction has been open for more than ten minutes: dead rows of the queue cannot leave, and claims go past them",
			"find it in pg_stat_activity, and end it"})
	}
	return found, nil
}
