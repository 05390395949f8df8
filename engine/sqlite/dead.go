package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

var errUnreadable = errors.New("the data of the message cannot be read any more")

// bury makes a dead letter of a message, and gives its cause as it is stored;
// errUnreadable: it cannot.
func (t *tx) bury(q *queue, r *ref, cause forebay.Cause, attempts int) ([]byte, error) {
	if cause.At.IsZero() {
		cause.At = unix(t.now)
	}
	if r.job {
		cause.Attempt = attempts
		if r.started != 0 {
			cause.Started = unix(r.started)
		}
	}
	why, err := json.Marshal(cause)
	if err != nil {
		return nil, err
	}
	failures, err := t.failuresOf(r)
	if err != nil {
		return nil, err
	}
	body, g, err := t.l.bodyOf(r)
	if err != nil {
		return nil, err
	}
	until, keep, progress := any(nil), any(nil), []byte{}
	if g.dead.Age > 0 {
		until = t.now + int64(g.dead.Age)
	}
	if g.dead.Count > 0 {
		keep = int64(g.dead.Count)
	}
	if r.told != nil && r.told.progress != nil {
		progress = r.told.progress
	}
	if until != nil || keep != nil {
		t.retain = append(t.retain, retained{q, int64(g.dead.Age)})
	}
	t.buried++
	print, err := t.group(q, string(g.kind), cause, t.now)
	if err != nil {
		return nil, err
	}
	return why, t.exec(`INSERT INTO dead (queue, key, id, code, sent_at, died_at, attempts, deliveries, started, until, keep, cause, failures, progress, body, print)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		q.id, r.key, string(g.id), cause.Code, r.sentAt, t.now, int64(attempts), int64(r.deliveries), r.started, until, keep,
		string(why), failures, progress, body, print)
}

// charge is what a verdict adds to the failed attempts.
func charge(s *forebay.Settlement) int {
	if s.Unbegun {
		return 0
	}
	return 1
}

// asDead is the message as it is buried: a hand-out that nobody got does not count.
func (it *item) asDead(s *forebay.Settlement) *ref {
	if !s.Unbegun {
		return &it.ref
	}
	r := it.ref
	r.deliveries = max(r.deliveries-1, 0)
	return &r
}

// failuresOf gives the causes of a message's earlier attempts, as they are stored.
func (t *tx) failuresOf(r *ref) (string, error) {
	if !r.stored || r.attempts == 0 {
		return "[]", nil
	}
	return t.l.failures(r)
}

// bodyOf gives the body of a message, and what it says; errUnreadable: it is damaged.
func (l *loop) bodyOf(r *ref) ([]byte, glance, error) {
	b, err := l.readable(r.key)
	if err != nil {
		return nil, glance{}, err
	}
	if b == nil || r.idx >= b.n || b.body(r.idx) == nil {
		return nil, glance{}, errUnreadable
	}
	body := b.body(r.idx)
	g, err := glanceAt(body)
	return body, g, err
}

// Dead lists dead letters, newest first.
func (e *Engine) Dead(ctx context.Context, dq engine.DeadQuery) ([]forebay.DeadLetter, error) {
	limit, err := deadLimit(dq.Limit)
	if err != nil {
		return nil, err
	}
	dq.Limit = limit
	return ask(ctx, e, func(t *tx) ([]forebay.DeadLetter, error) { return t.l.deadLetters(dq) })
}

const deadColumns = "seq, queue, cause, failures, attempts, deliveries, sent_at, died_at, body, print"

func (l *loop) deadLetters(dq engine.DeadQuery) ([]forebay.DeadLetter, error) {
	where, args, none := l.deadWhere(dq)
	if none {
		return nil, nil
	}
	var letters []forebay.DeadLetter
	err := l.db.each("SELECT "+deadColumns+" FROM dead WHERE "+where+" ORDER BY seq DESC LIMIT ?",
		func(s *sqlite.Stmt) error {
			d, err := l.deadLetter(s)
			letters = append(letters, d)
			return err
		}, append(args, int64(dq.Limit))...)
	return letters, err
}

// deadWhere is a query in SQL; none: no dead letter can be meant.
func (l *loop) deadWhere(dq engine.DeadQuery) (where string, args []any, none bool) {
	where, args = "seq < ?", []any{cmp.Or(dq.Before, math.MaxInt64)}
	and := func(column string, value any) { where, args = where+" AND "+column+" = ?", append(args, value) }
	if dq.Queue != "" {
		q := l.queues[dq.Queue]
		if q == nil || q.id == 0 {
			return "", nil, true
		}
		and("queue", q.id)
	}
	if dq.ID != "" {
		and("id", dq.ID)
	}
	if dq.Code != "" {
		and("code", dq.Code)
	}
	if dq.Group != 0 {
		and("print", int64(dq.Group))
	}
	return where, args, false
}

func (l *loop) deadLetter(s *sqlite.Stmt) (forebay.DeadLetter, error) {
	d := forebay.DeadLetter{
		Seq: s.ColumnInt64(0), Failures: decodeFailures(s.ColumnText(3)),
		Attempts: int(s.ColumnInt64(4)), Deliveries: int(s.ColumnInt64(5)),
		SentAt: unix(s.ColumnInt64(6)), DiedAt: unix(s.ColumnInt64(7)), Fingerprint: uint64(s.ColumnInt64(9)),
	}
	q := l.byID[s.ColumnInt64(1)]
	m, err := decodeBody(columnBytes(s, 8), q.name)
	if err == nil {
		err = json.Unmarshal([]byte(s.ColumnText(2)), &d.Cause)
	}
	if err != nil {
		return d, forebay.Errorf(forebay.CodeDamaged, "sqlite: dead letter", "number %d: %w", d.Seq, err)
	}
	d.Message = m
	return d, nil
}
