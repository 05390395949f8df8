package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func noDocument(key string) error { return fail(forebay.CodeNotFound, "there is no document %q", key) }

const documentColumns = `collection, key, rev, value, coalesce(expires, 0)`

func scanDocument(row scanner) (d engine.Document, err error) {
	var expires int64
	err = row.Scan(&d.Collection, &d.Key, &d.Rev, &d.Value, &expires)
	if expires != 0 {
		d.Expires = time.Unix(0, expires)
	}
	if len(d.Value) == 0 {
		d.Value = nil
	}
	return d, err
}

// nanos is the work's time as expiries are stored.
func (w *work) nanos() int64 { return w.now * 1000 }

// current is the stored one, locked; none has revision 0.
func (w *work) current(ctx context.Context, collection, key string) (was engine.Document, err error) {
	// Two that put the first one of a name must not both find none.
	if _, err := w.conn.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, $2))`, collection+"\n"+key, int64(w.e.class)); err != nil {
		return was, err
	}
	rows, err := w.conn.Query(ctx, w.e.q(`SELECT `+documentColumns+` FROM ~document WHERE collection = $1 AND key = $2 AND (expires IS NULL OR expires > $3)`), collection, key, w.nanos())
	if err != nil {
		return was, err
	}
	defer rows.Close()
	for rows.Next() {
		if was, err = scanDocument(rows); err != nil {
			return was, err
		}
	}
	return was, rows.Err()
}

// PutDocument stores a document; see engine.Documents.
func (e *Engine) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if err := engine.CheckDocument(&d); err != nil {
		return engine.Document{}, err
	}
	if err := e.enter(); err != nil {
		return engine.Document{}, err
	}
	defer e.leave()
	var was engine.Document
	asked := d.Rev
	err := e.do(ctx, plan{}, func(ctx context.Context, w *work) (err error) {
		if was, err = w.current(ctx, d.Collection, d.Key); err != nil {
			return err
		}
		if asked != engine.AnyRev && asked != was.Rev {
			return fail(forebay.CodeConflict, "document %q has the revision %d, not %d", d.Key, was.Rev, asked)
		}
		var expires *int64
		if !d.Expires.IsZero() {
			ns := d.Expires.UnixNano()
			expires = &ns
		}
		w.more = append(w.more, func(b *pgx.Batch) {
			b.Queue(w.e.q(`INSERT INTO ~document VALUES ($1, $2, nextval('~rev'), $3, $4)
				ON CONFLICT (collection, key) DO UPDATE SET rev = excluded.rev, value = excluded.value, expires = excluded.expires RETURNING rev`),
				d.Collection, d.Key, notNil(d.Value), expires).QueryRow(func(row pgx.Row) error { return row.Scan(&d.Rev) })
		})
		return nil
	})
	if forebay.CodeOf(err) == forebay.CodeConflict {
		return was, err
	}
	return d, err
}

// DeleteDocument drops a document; see engine.Documents.
func (e *Engine) DeleteDocument(ctx context.Context, collection, key string, rev int64) error {
	if err := engine.CheckDocument(&engine.Document{Collection: collection, Key: key, Rev: rev}); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	return e.do(ctx, plan{}, func(ctx context.Context, w *work) error {
		was, err := w.current(ctx, collection, key)
		switch {
		case err != nil:
			return err
		case was.Rev == 0:
			return noDocument(key)
		case rev != engine.AnyRev && rev != was.Rev:
			return fail(forebay.CodeConflict, "document %q has the revision %d, not %d", key, was.Rev, rev)
		}
		w.more = append(w.more, func(b *pgx.Batch) {
			b.Queue(w.e.q(`DELETE FROM ~document WHERE collection = $1 AND key = $2`), collection, key)
		})
		return nil
	})
}

// Document gets one; see engine.Documents.
func (e *Engine) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	if err := engine.CheckDocumentName(collection, key); err != nil {
		return engine.Document{}, err
	}
	ds, err := e.documents(ctx, `collection = $1 AND key = $2`, collection, key, 1)
	if err == nil && len(ds) == 0 {
		err = noDocument(key)
	}
	if err != nil {
		return engine.Document{}, err
	}
	return ds[0], nil
}

const documentBytes = 16 << 20 // of one answer; the first may go over it

// Documents lists a collection; see engine.Documents.
func (e *Engine) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	if err := engine.CheckCollection(collection); err != nil {
		return nil, err
	}
	if limit < 1 || limit > engine.MaxDocuments {
		return nil, fail(forebay.CodeInvalid, "a list of %d; 1 to %d are allowed", limit, engine.MaxDocuments)
	}
	return e.documents(ctx, `collection = $1 AND key > $2`, collection, after, limit)
}

func (e *Engine) documents(ctx context.Context, where, collection, key string, limit int) (out []engine.Document, err error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	now, err := e.stored(ctx)
	if err != nil {
		return nil, err
	}
	sql := `SELECT ` + documentColumns + ` FROM (SELECT *, sum(length(value)) OVER (ORDER BY key) - length(value) AS before FROM (
			SELECT * FROM ~document WHERE ` + where + ` AND (expires IS NULL OR expires > $3) ORDER BY key LIMIT $4) x) y WHERE before < $5 ORDER BY key`
	return out, e.read(ctx, sql, []any{collection, key, now * 1000, limit, documentBytes}, func(rows pgx.Rows) error {
		d, err := scanDocument(rows)
		out = append(out, d)
		return err
	})
}
