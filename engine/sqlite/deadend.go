package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Replay sends dead letters again, in the order in which they died.
func (e *Engine) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	return e.exhume(ctx, seqs, true)
}

// Discard removes dead letters for good.
func (e *Engine) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	return e.exhume(ctx, seqs, false)
}

func (e *Engine) exhume(ctx context.Context, seqs []int64, again bool) ([]error, error) {
	if len(seqs) > engine.MaxSend {
		return nil, tooMany("seqs", engine.MaxSend)
	}
	o := &exhume{ends: make([]deadEnd, len(seqs)), errs: make([]error, len(seqs)), bytes: 256}
	for i, seq := range seqs {
		o.ends[i] = deadEnd{seq: seq, again: again}
	}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

// EndDead takes dead letters away; see engine.DeadGroups.
func (e *Engine) EndDead(ctx context.Context, ends []engine.DeadEnd) ([]error, error) {
	if len(ends) > engine.MaxSend {
		return nil, tooMany("ends", engine.MaxSend)
	}
	now := e.cfg.Now()
	o := &exhume{ends: make([]deadEnd, len(ends)), refused: make([]error, len(ends)), errs: make([]error, len(ends)), bytes: 256}
	for i := range ends {
		in, out := &ends[i], &o.ends[i]
		out.seq, out.reason = in.Seq, in.Reason
		err := engine.CheckText("reason", in.Reason)
		if err == nil && in.Next != nil {
			err = engine.CheckMessage(in.Next, now)
		}
		if err == nil && in.Next != nil {
			n := encode(in.Next, now, nil)
			out.next = &n
			o.bytes += int64(len(n.body))
		}
		o.refused[i] = err
	}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

// deadEnd is how a dead letter leaves: it is sent again as itself, something else takes
// its place, or it is gone.
type deadEnd struct {
	seq    int64
	reason string
	again  bool
	next   *encoded
}

// exhume is the op of Replay, Discard and EndDead.
type exhume struct {
	change
	ends    []deadEnd
	refused []error // before the loop saw them; nil: none
	errs    []error
	bytes   int64
	done    map[int64]*queue
	counts  []sent
}

func (o *exhume) size() int64 { return o.bytes }

func (o *exhume) apply(t *tx) error {
	clear(o.errs)
	copy(o.errs, o.refused)
	o.done, o.counts = map[int64]*queue{}, nil
	for _, i := range inOrder(o.ends) {
		if o.errs[i] != nil {
			continue
		}
		refused, err := o.one(t, &o.ends[i])
		if err != nil {
			return err
		}
		o.errs[i] = refused
	}
	return nil
}

func (o *exhume) one(t *tx, end *deadEnd) (refused, err error) {
	var q *queue
	var d forebay.DeadLetter
	var derr error
	err = t.l.db.each("SELECT "+deadColumns+" FROM dead WHERE seq = ?", func(s *sqlite.Stmt) error {
		q = t.l.byID[s.ColumnInt64(1)]
		d, derr = t.l.deadLetter(s)
		return nil
	}, end.seq)
	switch {
	case err != nil:
		return nil, err
	case q == nil:
		return forebay.Errorf(forebay.CodeNotFound, "sqlite: dead letter", "no dead letter has number %d", end.seq), nil
	case end.again && derr != nil:
		return derr, nil
	case end.again:
		err = t.again(q, &d.Message)
	case end.next != nil:
		err = o.follow(t, end.next)
	}
	if err != nil {
		return nil, err
	}
	if d.Message.Job != nil {
		t.exhumed(q, &d.Message, end)
	}
	o.done[end.seq] = q
	return nil, t.exec("DELETE FROM dead WHERE seq = ?", end.seq)
}

// follow sends what takes the place of a dead letter. What is known already was sent by
// an earlier try.
func (o *exhume) follow(t *tx, m *encoded) error {
	n, err := t.send(m)
	if err != nil {
		return err
	}
	q, err := t.queue(m.queue)
	o.counts = append(o.counts, sent{q, n != nil, n != nil && n.print != m.print})
	return err
}

// again sends a dead letter again. A time that has passed meanwhile does not end it
// at once, and it waits for none: what it was sent for may still be to come, if the
// job was changed to be due sooner.
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
	m.again, m.due = true, 0
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
func (t *tx) exhumed(q *queue, msg *forebay.Message, end *deadEnd) {
	n := note{typ: evDiscarded, id: []byte(msg.ID), kind: []byte(msg.Kind), queue: q.name, text: end.reason}
	switch {
	case end.next != nil:
		n.typ, n.text = evReplayed, "as job "+end.next.name
	case end.again:
		n.typ, n.state = evReplayed, stWaiting
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
	countSent(o.counts)
}

// inOrder gives the places of ends from the smallest seq to the largest.
func inOrder(ends []deadEnd) []int {
	at := make([]int, len(ends))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(ends[a].seq, ends[b].seq) })
	return at
}
