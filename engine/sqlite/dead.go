package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

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
	return why, t.exec(`INSERT INTO dead (queue, key, id, code, sent_at, died_at, attempts, deliveries, started, until, keep, cause, failures, progress, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		q.id, r.key, string(g.id), cause.Code, r.sentAt, t.now, int64(attempts), int64(r.deliveries), r.started, until, keep,
		string(why), failures, progress, body)
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
	if dq.Limit == 0 {
		dq.Limit = 100
	}
	if dq.Limit < 1 || dq.Limit > 1000 {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: dead", "must be 1 to 1000")
		err.Field = "limit"
		return nil, err
	}
	return ask(ctx, e, func(t *tx) ([]forebay.DeadLetter, error) { return t.l.deadLetters(dq) })
}

const deadColumns = "seq, queue, cause, failures, attempts, deliveries, sent_at, died_at, body"

func (l *loop) deadLetters(dq engine.DeadQuery) ([]forebay.DeadLetter, error) {
	before := dq.Before
	if before == 0 {
		before = math.MaxInt64
	}
	where, args := []string{"seq < ?"}, []any{before}
	if dq.Queue != "" {
		q := l.queues[dq.Queue]
		if q == nil || q.id == 0 {
			return nil, nil
		}
		where, args = append(where, "queue = ?"), append(args, q.id)
	}
	if dq.ID != "" {
		where, args = append(where, "id = ?"), append(args, dq.ID)
	}
	if dq.Code != "" {
		where, args = append(where, "code = ?"), append(args, dq.Code)
	}
	var letters []forebay.DeadLetter
	err := l.db.each("SELECT "+deadColumns+" FROM dead WHERE "+strings.Join(where, " AND ")+" ORDER BY seq DESC LIMIT ?",
		func(s *sqlite.Stmt) error {
			d, err := l.deadLetter(s)
			letters = append(letters, d)
			return err
		}, append(args, int64(dq.Limit))...)
	return letters, err
}

func (l *loop) deadLetter(s *sqlite.Stmt) (forebay.DeadLetter, error) {
	d := forebay.DeadLetter{
		Seq: s.ColumnInt64(0), Failures: decodeFailures(s.ColumnText(3)),
		Attempts: int(s.ColumnInt64(4)), Deliveries: int(s.ColumnInt64(5)),
		SentAt: unix(s.ColumnInt64(6)), DiedAt: unix(s.ColumnInt64(7)),
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

// Replay sends dead letters again, in the order in which they died.
func (e *Engine) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	return e.exhume(ctx, seqs, true)
}

// Discard removes dead letters for good.
func (e *Engine) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	return e.exhume(ctx, seqs, false)
}

func (e *Engine) exhume(ctx context.Context, seqs []int64, replay bool) ([]error, error) {
	if len(seqs) > engine.MaxSend {
		return nil, tooMany("seqs", engine.MaxSend)
	}
	o := &exhume{seqs: slices.Clone(seqs), errs: make([]error, len(seqs)), replay: replay}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

// exhume is the op of Replay and Discard.
type exhume struct {
	change
	seqs   []int64
	errs   []error
	replay bool
	done   map[int64]*queue
}

func (o *exhume) apply(t *tx) error {
	clear(o.errs)
	o.done = map[int64]*queue{}
	for _, i := range inOrder(o.seqs) {
		seq := o.seqs[i]
		var q *queue
		var d forebay.DeadLetter
		var derr error
		err := t.l.db.each("SELECT "+deadColumns+" FROM dead WHERE seq = ?", func(s *sqlite.Stmt) error {
			q = t.l.byID[s.ColumnInt64(1)]
			d, derr = t.l.deadLetter(s)
			return nil
		}, seq)
		if err != nil {
			return err
		}
		if q == nil {
			o.errs[i] = forebay.Errorf(forebay.CodeNotFound, "sqlite: dead letter", "no dead letter has number %d", seq)
			continue
		}
		if o.replay && derr != nil {
			o.errs[i] = derr
			continue
		}
		if o.replay {
			if err := t.again(q, &d.Message); err != nil {
				return err
			}
		}
		if d.Message.Job != nil {
			t.exhumed(q, &d.Message, o.replay)
		}
		if err := t.exec("DELETE FROM dead WHERE seq = ?", seq); err != nil {
			return err
		}
		o.done[seq] = q
	}
	return nil
}

// again sends a dead letter again. A time that has passed meanwhile does not end it
// at once.
func (t *tx) again(q *queue, msg *forebay.Message) error {
	sent := *msg
	if o := msg.Job; o != nil {
		fresh := *o
		for _, at := range []*time.Time{&fresh.Deadline, &fresh.Expires} {
			if !at.IsZero() && !at.After(unix(t.now)) {
				*at = time.Time{}
			}
		}
		sent.Job = &fresh
	}
	m := encode(&sent, unix(t.now), nil)
	if err := t.inherit(&m); err != nil {
		return err
	}
	if err := t.place(q, &m); err != nil {
		return err
	}
	t.add(q, &m)
	return nil
}

// exhumed notes that a dead job was sent again, or dropped.
func (t *tx) exhumed(q *queue, msg *forebay.Message, replay bool) {
	n := note{typ: evDiscarded, id: []byte(msg.ID), kind: []byte(msg.Kind), queue: q.name}
	if replay {
		n.typ, n.state = evReplayed, stWaiting
		if due := instant(msg.NotBefore); due > t.now {
			n.state, n.due = stDelayed, due
		}
	}
	t.record(&n)
}

// inherit takes over the dedup entry of a dead letter: a replay neither begins a
// new window nor changes what was said first.
func (t *tx) inherit(m *encoded) error {
	m.window = 1
	hit, ok, err := t.l.lookup(m.id, false)
	if !ok || err != nil {
		return err
	}
	m.window = max(hit.sentAt+t.l.window(hit.window)-t.now, 1)
	m.print = hit.print
	var old bitmap
	old.set(hit.idx)
	return t.forget(seqOf(hit.key), &old)
}

func (o *exhume) publish(*tx) {
	for _, q := range o.done {
		q.dead--
	}
}

// inOrder gives the places of seqs from the smallest seq to the largest.
func inOrder(seqs []int64) []int {
	at := make([]int, len(seqs))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(seqs[a], seqs[b]) })
	return at
}
