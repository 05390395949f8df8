package sqlite

import (
	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay/engine"
)

// A start finds the leases of the process before it. Those that were not kept are
// over: their messages wait again, and the hand-out counts. Kept ones are taken up
// where their time has not come: with the same receipts, and counted by groups and
// limits. The cursors of the lanes begin anew and have not come to these messages yet.
// So those without a group have a row in again as long as they are not settled, by
// which cursors know to pass them by; those of a group are passed by while they are
// held, and what comes back waits in its lane if the cursor is still before it, since
// that knows the group's order (lease.loaded).

// leaseRow is a stored lease.
type leaseRow struct {
	id    int64
	kept  bool
	start int64 // of a kept one
	items []leaseItem
}

func (l *loop) loadLeases(t *tx) error {
	var rows []leaseRow
	err := l.db.each("SELECT id, items, at FROM lease ORDER BY id", func(s *sqlite.Stmt) error {
		row, ok := readLease(s.ColumnInt64(0), columnBytes(s, 1))
		if !ok { // a recovery would find it no better
			l.log.Error("a lease cannot be read: its messages wait again, this delivery is not counted", "lease", row.id)
			return nil
		}
		for i := range row.items {
			row.items[i].started = s.ColumnInt64(2)
		}
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		return err
	}
	stops, err := l.loadStops()
	if err != nil {
		return err
	}
	if err := t.exec("DELETE FROM lease"); err != nil {
		return err
	}
	if err := t.exec("DELETE FROM stop"); err != nil {
		return err
	}
	for i := range rows {
		if err := l.loadLease(t, &rows[i], stops); err != nil {
			return err
		}
	}
	return nil
}

func readLease(id int64, sealed []byte) (row leaseRow, ok bool) {
	row.id = id
	if value, plain := unseal(id, sealed); plain {
		row.items, ok = decodeLease(value)
		return row, ok
	}
	value, kept := unseal(^id, sealed)
	if row.kept = kept; kept {
		row.start, row.items, ok = decodeKept(value)
	}
	return row, ok
}

// loadLease takes up what is held of a kept lease, and frees the rest.
func (l *loop) loadLease(t *tx, row *leaseRow, stops map[[2]int64]string) error {
	ls := &lease{id: row.id, start: row.start, kept: true, loaded: true, items: make([]item, len(row.items))}
	for i := range row.items {
		in, it := row.items[i], &ls.items[i]
		it.state = itemEnded
		h, err := l.heldBefore(in)
		if err != nil {
			return err
		}
		if h.q == nil {
			continue
		}
		if row.kept && in.until > t.now {
			err = l.takeUp(t, ls, it, &h, stops)
		} else {
			err = l.freeLease(t, &h, stops)
		}
		if err != nil {
			return err
		}
	}
	if ls.open == 0 {
		return nil
	}
	l.leaseID = max(l.leaseID, ls.id)
	l.hold(t, ls)
	return nil
}

// heldBefore is a message that was leased when the last process ended.
type heldBefore struct {
	leaseItem
	q    *queue // nil: its lease was over
	b    *block
	ref  ref // as before this hand-out
	body []byte
}

func (l *loop) heldBefore(it leaseItem) (h heldBefore, err error) {
	q := l.queueOf(it.key)
	if q == nil || it.deliveries <= 0 || uint(it.idx) >= blockMessages {
		return h, nil
	}
	b, err := l.block(it.key)
	if err != nil || b == nil || it.idx >= b.n || b.settled.has(it.idx) {
		return h, err
	}
	r, err := l.kept(it.key, it.idx)
	if err != nil {
		return h, err
	}
	if r == nil {
		r = &ref{key: it.key, idx: it.idx, ord: b.sentAt, sentAt: b.sentAt}
	}
	if r.stored && r.deliveries >= it.deliveries {
		return h, nil // it waits again already
	}
	h = heldBefore{leaseItem: it, q: q, b: b, ref: *r, body: b.body(it.idx)}
	h.ref.group, h.ref.limitKey = routing(h.body)
	h.ref.due, h.ref.stored = 0, true
	return h, nil
}

// freeLease makes a message wait again.
func (l *loop) freeLease(t *tx, h *heldBefore, stops map[[2]int64]string) error {
	r := &h.ref
	r.deliveries, r.started = h.deliveries, h.started
	if isJob(h.body) {
		if ended, err := l.freeJob(t, h.q, r, h.body, stops); ended || err != nil {
			return err
		}
	}
	if r.group != 0 {
		h.b.noted.set(r.idx)
	} else {
		h.b.skip.set(r.idx)
	}
	return t.keep(h.q, r, nil)
}

// takeUp makes an item of a kept lease live again. Its row counts what was before this
// hand-out, as that of any message that is leased.
func (l *loop) takeUp(t *tx, ls *lease, it *item, h *heldBefore, stops map[[2]int64]string) error {
	if err := t.keep(h.q, &h.ref, nil); err != nil {
		return err
	}
	ls.q = h.q
	*it = item{ref: h.ref, blk: h.b, until: min(h.until, t.now+int64(engine.MaxLease)), state: itemLeased}
	it.deliveries = h.deliveries
	if ls.open++; ls.open == 1 || it.until < ls.until {
		ls.until = it.until
	}
	h.b.leased++
	h.b.skip.set(it.idx)
	h.q.active++
	if it.group != 0 {
		h.q.groupFor(it.group).hold(&it.ref)
	}
	if it.limitKey != 0 && h.q.keyed() {
		h.q.keyFor(l, it.limitKey).active++
	}
	if isJob(h.body) {
		it.job, it.started = true, h.started
		if reason, ok := stops[[2]int64{it.key, int64(it.idx)}]; ok {
			it.tell().stop, it.told.reason = true, reason
			return t.exec("INSERT INTO stop (key, idx, at, reason) VALUES (?, ?, ?, ?)", it.key, int64(it.idx), t.now, reason)
		}
	}
	return nil
}

// isHeld tells whether a row of again is that of a message that is leased.
func (l *loop) isHeld(r *ref) bool {
	_, it := l.holder(r.key, r.idx)
	return it != nil
}
