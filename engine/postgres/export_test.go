package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// OpenInBubble opens an engine that can live in a bubble of testing/synctest with a real
// server. There time stands still while a goroutine waits for the network, which suits a
// question and its answer, but would never pass while a connection listens. So here none
// does; signals within the process are as they are in use.
func OpenInBubble(ctx context.Context, cfg Config, dial pgconn.DialFunc) (*Engine, error) {
	cfg.Now = time.Now
	return open(ctx, cfg, true, dial)
}

// Wipe empties a schema, of which no engine is open.
func Wipe(ctx context.Context, url, schema string, dial pgconn.DialFunc) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	cfg.DialFunc = dial
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var sql strings.Builder
	for _, table := range []string{"queue", "lane", "pace", "item", "body", "record", "ended", "deadgroup", "event", "document"} {
		sql.WriteString("DELETE FROM " + pgx.Identifier{schema, table}.Sanitize() + ";")
	}
	sql.WriteString("ALTER SEQUENCE " + pgx.Identifier{schema, "dead_no"}.Sanitize() + " RESTART")
	_, err = conn.Exec(ctx, sql.String(), pgx.QueryExecModeSimpleProtocol)
	return err
}

// Hears tells whether an engine has heard of another one.
func Hears(e *Engine) bool {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	return e.wire.hears
}
