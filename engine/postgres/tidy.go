package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	tidyAtOnce = 2000     // rows of one statement
	lookAgain  = 3600e6   // µs until a record whose message is still there is looked at again
	idlePace   = 60 * 1e6 // µs after which a bucket that is full is forgotten
)

// tidy drops what nobody will ask for: records whose time is over and whose message is gone,
// documents that have expired, full buckets, and the oldest of the history.
func (e *Engine) tidy(ctx context.Context) error {
	now, err := e.stored(ctx)
	if err != nil {
		return err
	}
	ms := now / 1000
	for _, one := range []struct {
		sql  string
		args []any
	}{
		{`WITH due AS MATERIALIZED (SELECT key, seq FROM ~record WHERE look <= $1 ORDER BY look LIMIT $2 FOR UPDATE SKIP LOCKED),
			kept AS MATERIALIZED (SELECT d.key FROM due d WHERE EXISTS (SELECT FROM ~body b WHERE b.seq = d.seq)),
			stay AS (UPDATE ~record r SET look = $3 FROM kept k WHERE r.key = k.key)
			DELETE FROM ~record r USING due d WHERE r.key = d.key AND d.key NOT IN (SELECT key FROM kept)`, []any{now, tidyAtOnce, now + lookAgain}},
		{`DELETE FROM ~document WHERE (collection, key) IN (SELECT collection, key FROM ~document WHERE expires <= $1 LIMIT $2)`, []any{ms * 1e6, tidyAtOnce}},
		{`DELETE FROM ~pace WHERE wake IS NULL AND full_at < $1`, []any{float64(now - idlePace)}},
	} {
		if err := e.untilDone(ctx, one.sql, one.args); err != nil {
			return err
		}
	}
	const old = `DELETE FROM ~event WHERE seq IN (SELECT seq FROM ~event WHERE seq <= (SELECT max(seq) FROM ~event) - $1 ORDER BY seq LIMIT $2)`
	return e.untilDone(ctx, old, []any{e.cfg.History, tidyAtOnce})
}

// untilDone repeats a statement that does a slice, until a slice is not full.
func (e *Engine) untilDone(ctx context.Context, sql string, args []any) error {
	for range 100 {
		n := int64(0)
		err := e.do(ctx, plan{lazy: true}, func(ctx context.Context, w *work) error {
			w.more = append(w.more, func(b *pgx.Batch) {
				b.Queue(w.e.q(sql), args...).Exec(func(tag pgconn.CommandTag) error {
					n = tag.RowsAffected()
					return nil
				})
			})
			return nil
		})
		if err != nil || n < tidyAtOnce {
			return err
		}
	}
	return nil
}
