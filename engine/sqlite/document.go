package sqlite

import (
	"bytes"
	"context"
	"math"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Documents: one row each. A change is a new row with a new number, which is the
// revision: so that one that was deleted and made anew is never taken for the old
// one. What has expired is not seen from then on, and leaves in slices of
// sweptAtOnce, by one timer for the earliest of all (documents.sweep).

const (
	sweptAtOnce    = 256
	sweepRest      = int64(10 * time.Millisecond) // between slices, so that others get their turn
	sweepTrouble   = int64(time.Minute)           // until the next try of one that failed
	listedBytes    = 4 << 20                      // of values of one list; the first may go over it
	neverExpires   = 0
	documentFields = "rev, collection, key, expires, value"
)

var _ engine.Documents = (*Engine)(nil)

// documents is what memory knows of them: when the next expires.
type documents struct{ timer timer }

// PutDocument stores a document; see engine.Documents.
func (e *Engine) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if err := engine.CheckDocument(&d); err != nil {
		return engine.Document{}, err
	}
	d.Value = bytes.Clone(d.Value)
	o := &putDocument{in: d}
	if err := e.submit(ctx, o); err != nil {
		return engine.Document{}, err
	}
	return o.out, o.refused
}

// putDocument is the op of PutDocument.
type putDocument struct {
	change
	in, out engine.Document
	refused error // no reason to fail the whole commit
}

func (o *putDocument) size() int64 { return 256 + int64(len(o.in.Value)) }

func (o *putDocument) apply(t *tx) error {
	o.refused = t.l.documentSpace(t.now)
	if o.refused != nil {
		return nil
	}
	old, err := t.l.document(o.in.Collection, o.in.Key, t.now)
	if err != nil {
		return err
	}
	if o.out, o.refused = old, checkRev(old, o.in.Rev); o.refused != nil {
		return nil
	}
	// REPLACE also takes away one that has expired.
	err = t.exec("INSERT OR REPLACE INTO doc (collection, key, expires, value) VALUES (?, ?, ?, ?)",
		o.in.Collection, o.in.Key, expiry(o.in.Expires), o.in.Value)
	o.out = o.in
	o.out.Rev = t.l.db.conn.LastInsertRowID()
	return err
}

func (o *putDocument) publish(t *tx) {
	if at := expiry(o.in.Expires); o.refused == nil && at != neverExpires {
		t.l.timers.sooner(&t.l.documents.timer, at)
	}
}

// documentSpace lets documents use half of what Send leaves free: they remember
// what jobs have done, and those must be able to end.
func (l *loop) documentSpace(now int64) error {
	low := l.space(now)
	if low == nil {
		return nil
	}
	if _, free, err := l.size(); err == nil && free >= l.e.cfg.DiskReserve/2 {
		return nil
	}
	return low
}

// checkRev compares the revision that a caller knows with the stored one.
func checkRev(stored engine.Document, rev int64) error {
	if rev == engine.AnyRev || rev == stored.Rev {
		return nil
	}
	if stored.Rev == 0 {
		return forebay.Errorf(forebay.CodeConflict, "sqlite: document", "there is no such document any more, revision %d is gone", rev)
	}
	return forebay.Errorf(forebay.CodeConflict, "sqlite: document", "it has revision %d, not %d", stored.Rev, rev)
}

// expiry is the stored form of an expiry.
func expiry(at time.Time) int64 {
	if at.IsZero() {
		return neverExpires
	}
	return max(nanos(at), neverExpires+1)
}

// document reads one that has not expired; Rev is 0 if there is none.
func (l *loop) document(collection, key string, now int64) (d engine.Document, err error) {
	err = l.db.each("SELECT "+documentFields+" FROM doc WHERE collection = ? AND key = ?", func(s *sqlite.Stmt) error {
		if visible(s, now) {
			d = readDocument(s)
		}
		return nil
	}, collection, key)
	return d, err
}

func visible(s *sqlite.Stmt, now int64) bool {
	at := s.ColumnInt64(3)
	return at == neverExpires || at > now
}

func readDocument(s *sqlite.Stmt) engine.Document {
	d := engine.Document{Rev: s.ColumnInt64(0), Collection: s.ColumnText(1), Key: s.ColumnText(2), Value: columnBytes(s, 4)}
	if at := s.ColumnInt64(3); at != neverExpires {
		d.Expires = unix(at)
	}
	return d
}

// Document gets one; see engine.Documents.
func (e *Engine) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	if err := engine.CheckDocumentName(collection, key); err != nil {
		return engine.Document{}, err
	}
	d, err := ask(ctx, e, func(t *tx) (engine.Document, error) { return t.l.document(collection, key, t.now) })
	if err == nil && d.Rev == 0 {
		err = noDocument(collection, key)
	}
	return d, err
}

func noDocument(collection, key string) error {
	return forebay.Errorf(forebay.CodeNotFound, "sqlite: document", "the collection %q has no document %q", collection, key)
}

// Documents lists a collection; see engine.Documents.
func (e *Engine) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	if err := engine.CheckCollection(collection); err != nil {
		return nil, err
	}
	if limit < 1 || limit > engine.MaxDocuments {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: documents", "must be 1 to %d", engine.MaxDocuments)
		err.Field = "limit"
		return nil, err
	}
	return ask(ctx, e, func(t *tx) (list []engine.Document, err error) {
		size := 0
		err = t.l.db.each(`SELECT `+documentFields+` FROM doc WHERE collection = ?1 AND key > ?2
			AND (expires = 0 OR expires > ?3) ORDER BY key LIMIT ?4`, func(s *sqlite.Stmt) error {
			if size += s.ColumnLen(4); size > listedBytes && len(list) > 0 {
				return errStop
			}
			list = append(list, readDocument(s))
			return nil
		}, collection, after, t.now, int64(limit))
		if err == errStop {
			err = nil
		}
		return list, err
	})
}

// DeleteDocument drops one; see engine.Documents.
func (e *Engine) DeleteDocument(ctx context.Context, collection, key string, rev int64) error {
	if err := engine.CheckDocument(&engine.Document{Collection: collection, Key: key, Rev: rev}); err != nil {
		return err
	}
	o := &deleteDocument{collection: collection, key: key, rev: rev}
	if err := e.submit(ctx, o); err != nil {
		return err
	}
	return o.refused
}

// deleteDocument is the op of DeleteDocument.
type deleteDocument struct {
	change
	collection, key string
	rev             int64
	refused         error
}

func (o *deleteDocument) apply(t *tx) error {
	old, err := t.l.document(o.collection, o.key, t.now)
	if err != nil {
		return err
	}
	if old.Rev == 0 {
		o.refused = noDocument(o.collection, o.key)
		return nil
	}
	if o.refused = checkRev(old, o.rev); o.refused != nil {
		return nil
	}
	return t.exec("DELETE FROM doc WHERE rev = ?", old.Rev)
}

// loadDocuments sets the timer at start.
func (l *loop) loadDocuments(*tx) error {
	l.documents.timer.fire = func(now int64) { l.documents.sweep(l, now) }
	return l.documents.await(l, math.MinInt64)
}

// await sets the timer for the document that expires next, but not before a time.
func (d *documents) await(l *loop, earliest int64) error {
	next, err := l.db.int("SELECT min(expires) FROM doc WHERE expires > 0")
	if err == nil && next > 0 {
		l.timers.set(&d.timer, max(next, earliest))
	}
	return err
}

// sweep drops a slice of what has expired. Nobody can see it, so nothing waits for
// the disk, and if it fails there is time.
func (d *documents) sweep(l *loop, now int64) {
	if l.damaged {
		return
	}
	err := l.db.exec(`DELETE FROM doc WHERE rev IN
		(SELECT rev FROM doc WHERE expires > 0 AND expires <= ? ORDER BY expires LIMIT ?)`, now, int64(sweptAtOnce))
	if err == nil {
		err = d.await(l, now+sweepRest)
	}
	if err != nil {
		l.log.Error("documents that have expired could not be dropped", "error", err)
		l.timers.set(&d.timer, now+sweepTrouble)
	}
}

// Collections lists those that have a document, expired ones included until they are
// cleaned up. It is for who brings all of them elsewhere.
func (e *Engine) Collections(ctx context.Context) ([]string, error) {
	return ask(ctx, e, func(t *tx) (names []string, err error) {
		err = t.l.db.each("SELECT DISTINCT collection FROM doc ORDER BY collection", func(s *sqlite.Stmt) error {
			names = append(names, s.ColumnText(0))
			return nil
		})
		return names, err
	})
}
