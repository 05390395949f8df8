package sqlite

import (
	"math"

	"github.com/forebayhq/forebay"
)

// lease is one hand-out of one Receive. It is true in memory; the store has a row
// of it so that a crash does not forget the deliveries, and of a kept one so that
// the next start takes it up (loadleases.go).
type lease struct {
	id    int64
	start int64 // of the engine that gave it
	q     *queue
	items []item
	until int64 // of the hand-out; each item has its own from then on
	open  int   // items that are not ended
	timer timer

	stored bool // it has a row
	stale  bool // the row counts deliveries that were given back since, or has another time
	kept   bool // it outlives the engine
	loaded bool // it has: the cursors of lanes may not have come to its messages yet
}

// ticket is that of one item.
func (ls *lease) ticket(i int) ticket {
	return ticket{start: ls.start, lease: ls.id, at: i, key: ls.items[i].key, idx: ls.items[i].idx}
}

// holds tells whether any of its messages is still leased, and none is about to be settled.
func (ls *lease) holds() bool {
	for i := range ls.items {
		if ls.items[i].state == itemLeased {
			return true
		}
	}
	return false
}

type item struct {
	ref
	blk   *block
	until int64
	state itemState
}

type itemState uint8

const (
	itemLeased   itemState = iota
	itemSettling           // an uncommitted op ends it
	itemEnded
)

// hold makes a lease live.
func (l *loop) hold(t *tx, ls *lease) {
	l.leases[ls.id] = ls
	ls.open, ls.stored = 0, true
	for i := range ls.items {
		if it := &ls.items[i]; it.state == itemLeased {
			ls.open++
			it.blk.heldBy(ls)
		}
	}
	ls.timer.fire = func(now int64) { l.expire(ls, now) }
	l.timers.set(&ls.timer, ls.until)
	t.extra = true
	t.note(t.exec("INSERT INTO lease (id, items, at) VALUES (?, ?, ?)", ls.id, ls.row(), t.now))
}

// row is a lease as it is stored.
func (ls *lease) row() []byte {
	if ls.kept {
		return seal(^ls.id, encodeKept(ls))
	}
	return seal(ls.id, encodeLease(ls.items))
}

// claimed tells who claimed a lease whether it holds. A kept one that the store does
// not have is given back, as if it had never been.
func (l *loop) claimed(ls *lease, now int64, err error) error {
	if err == nil || !ls.kept {
		return nil
	}
	for i := range ls.items {
		it := &ls.items[i]
		switch {
		case it.state != itemLeased:
		case it.stopping() != nil:
			it.until = now
			l.timers.sooner(&ls.timer, now)
		default:
			back := it.ref
			back.deliveries--
			l.end(ls, it, &back, now)
		}
	}
	return err
}

// writeLease brings the row of a lease up to date with what this transaction
// settles: without it, or without the messages that were released, whose hand-out
// does not count.
func (t *tx) writeLease(ls *lease) error {
	switch {
	case !ls.holds():
		return t.exec("DELETE FROM lease WHERE id = ?", ls.id)
	case ls.stale:
		return t.exec("UPDATE lease SET items = ? WHERE id = ?", ls.row(), ls.id)
	}
	return nil
}

// expire returns the messages whose time has run out. It is true at once; the
// store is told by keepExpired in the same cycle.
func (l *loop) expire(ls *lease, now int64) {
	next := int64(math.MaxInt64)
	for i := range ls.items {
		it := &ls.items[i]
		switch {
		case it.state == itemEnded:
		case it.until > now:
			next = min(next, it.until)
		case it.job && l.mustEnd(ls, it, now):
			it.until = now + int64(endAgain)
			next = min(next, it.until)
		default:
			r := it.ref
			r.due, r.stored = 0, true
			l.end(ls, it, &r, now)
			l.expired = append(l.expired, expired{ls.q, &r})
		}
	}
	if ls.open > 0 {
		l.timers.set(&ls.timer, next)
	}
}

type expired struct {
	q *queue
	r *ref
}

// keepExpired stores what expire has returned.
func (l *loop) keepExpired(t *tx) {
	t.extra = t.extra || len(l.expired)+len(l.ended) > 0
	for _, x := range l.expired {
		t.note(t.keep(x.q, x.r, nil))
	}
	clear(l.expired)
	l.expired = l.expired[:0]
	t.gone = append(t.gone, l.ended...)
	clear(l.ended)
	l.ended = l.ended[:0]
}

// end ends the lease of one message; back is its new place, if it stays.
func (l *loop) end(ls *lease, it *item, back *ref, now int64) {
	q := ls.q
	it.state = itemEnded
	it.blk.leased--
	q.active--
	ls.open--
	if ls.open == 0 {
		l.timers.stop(&ls.timer)
		delete(l.leases, ls.id)
		if ls.stored {
			l.ended = append(l.ended, ls)
		}
	}
	var g *group
	if it.group != 0 {
		g = q.groupFor(it.group)
		g.endHold(&it.ref)
	}
	q.endKey(l, it.limitKey, now)
	switch {
	case g != nil && ls.loaded && !q.tenantOf(it.key).passed(it.key, it.idx):
		it.blk.skip.unset(it.idx)
		if back != nil {
			q.toLane(it.blk, back, now)
		}
	case back != nil:
		q.returned(l, back, now)
	}
	if back == nil {
		q.left(&it.ref)
	}
	if g != nil {
		g.check(l, q, now)
	}
	l.blocks.release(it.blk)
	l.touch(q)
}

func errLeaseLost() error {
	return forebay.Errorf(forebay.CodeLeaseLost, "sqlite", "the lease is over: the message was settled, or its time ran out")
}

func tooMany(field string, bound int) error {
	err := forebay.Errorf(forebay.CodeInvalid, "sqlite", "more than %d in one call", bound)
	err.Field = field
	return err
}
