package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
)

// lockKey is the advisory lock under which schema and partitions change, so that
// two processes on one database do not race.
const lockKey int64 = 0x666f726562617901

const oldestServer = 120000

// columnTypes of the table, in the order of sink.Columns.
var columnTypes = [][2]string{
	{"event_id", "text"}, {"event_type", "text"}, {"user_id", "text"}, {"payload", "jsonb"},
	{"received_at", "timestamp with time zone"}, {"occurred_at", "timestamp with time zone"},
	{"sent_at", "timestamp with time zone"}, {"source", "text"}, {"original_at", "timestamp with time zone"},
}

// migrations lead from one version of the schema to the next: the first makes
// version 1. %[1]s is the table, %[2]s its default partition. They are never
// changed, only added to.
var migrations = []string{`
CREATE TABLE %[1]s (
	event_id    text COLLATE "C" NOT NULL,
	event_type  text        NOT NULL,
	user_id     text,
	payload     jsonb       NOT NULL,
	received_at timestamptz NOT NULL,
	occurred_at timestamptz,
	sent_at     timestamptz,
	source      text,
	original_at timestamptz,
	PRIMARY KEY (event_id, received_at)
) PARTITION BY RANGE (received_at);
CREATE TABLE %[2]s PARTITION OF %[1]s DEFAULT;
COMMENT ON TABLE %[1]s IS 'events, written by forebay; one partition per day of received_at';`}

// prepare makes or migrates the schema and checks it, once.
func (db *database) prepare(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.prepared {
		return nil
	}
	if err := db.underLock(ctx, db.migrate); err != nil {
		return err
	}
	db.prepared = true
	return nil
}

// underLock runs f in a transaction of its own, alone among all processes. A
// table's lock is not waited for longer than others can bear that wait behind it.
func (db *database) underLock(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lockKey); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '3s'"); err != nil {
			return err
		}
		return f(ctx, tx)
	})
}

func (db *database) migrate(ctx context.Context, tx pgx.Tx) error {
	var server int
	err := tx.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&server)
	if err != nil {
		return err
	}
	if server < oldestServer {
		return forebay.Errorf(forebay.CodeUnsupported, "postgres: open", "PostgreSQL %d is too old, 12 or newer is needed", server/10000)
	}
	version, err := db.version(ctx, tx)
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return forebay.Errorf(forebay.CodeTooNew, "postgres: open",
			"the table %s has version %d, this program knows %d", db.cfg.Table, version, len(migrations))
	}
	if version == 0 {
		if err := db.refuseForeign(ctx, tx); err != nil {
			return err
		}
	}
	for ; version < len(migrations); version++ {
		sql := fmt.Sprintf(migrations[version], db.table.Sanitize(), db.partition("default").Sanitize())
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO forebay_schema (name, version) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET version = excluded.version, changed_at = now()`,
			db.schemaName(), version+1); err != nil {
			return err
		}
	}
	return db.checkColumns(ctx, tx)
}

// schemaName is the table's name in forebay_schema.
func (db *database) schemaName() string { return "sink:" + db.cfg.Table }

// version of the table; 0: none yet.
func (db *database) version(ctx context.Context, tx pgx.Tx) (int, error) {
	var known bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass('forebay_schema') IS NOT NULL").Scan(&known); err != nil {
		return 0, err
	}
	if !known {
		_, err := tx.Exec(ctx, `CREATE TABLE forebay_schema (
			name text PRIMARY KEY, version integer NOT NULL, changed_at timestamptz NOT NULL DEFAULT now())`)
		return 0, err
	}
	var version int
	err := tx.QueryRow(ctx, "SELECT version FROM forebay_schema WHERE name = $1", db.schemaName()).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

// refuseForeign keeps hands off a table that another program has made.
func (db *database) refuseForeign(ctx context.Context, tx pgx.Tx) error {
	found, err := db.columns(ctx, tx)
	if err != nil || len(found) == 0 {
		return err
	}
	var have []string
	for name, c := range found {
		have = append(have, name+" "+c.kind)
	}
	slices.Sort(have)
	return &forebay.Error{Code: forebay.CodeInvalid, Op: "postgres: open", Field: "table",
		Text: fmt.Sprintf("a table %s is there already, and not from this program; its columns: %s",
			db.cfg.Table, strings.Join(have, ", ")),
		Hint: "name another table, or another schema by search_path in DATABASE_URL"}
}

// checkColumns finds a table that was changed since. More columns are fine as
// long as rows can be written without them.
func (db *database) checkColumns(ctx context.Context, tx pgx.Tx) error {
	found, err := db.columns(ctx, tx)
	if err != nil {
		return err
	}
	var wrong []string
	for _, c := range columnTypes {
		switch have, ok := found[c[0]]; {
		case !ok:
			wrong = append(wrong, c[0]+" is missing")
		case have.kind != c[1]:
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s", c[0], have.kind, c[1]))
		}
		delete(found, c[0])
	}
	for name, c := range found {
		if c.needed {
			wrong = append(wrong, name+" is NOT NULL and has no default")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return &forebay.Error{Code: forebay.CodeInvalid, Op: "postgres: open", Field: "table",
		Text: fmt.Sprintf("the table %s was changed: %s", db.cfg.Table, strings.Join(wrong, "; ")),
		Hint: "change it back, or name another table"}
}

type column struct {
	kind   string
	needed bool // NOT NULL without a default
}

func (db *database) columns(ctx context.Context, tx pgx.Tx) (map[string]column, error) {
	rows, err := tx.Query(ctx, `SELECT attname, format_type(atttypid, NULL),
			attnotnull AND NOT atthasdef AND attidentity = ''
		FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`, db.table.Sanitize())
	if err != nil {
		return nil, err
	}
	found := map[string]column{}
	var name string
	var c column
	_, err = pgx.ForEachRow(rows, []any{&name, &c.kind, &c.needed}, func() error {
		found[name] = c
		return nil
	})
	return found, err
}
