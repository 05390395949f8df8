package sqlite

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// lease is one hand-out of one Receive. It is true in memory; the store has a row
// of it so that a crash does not forget the deliveries.
type lease struct {
	id    int64
	epoch string
	q     *queue
	items []item
	until int64 // of the hand-out; each item has its own from then on
	open  int   // items that are not ended
	timer timer

	stored   bool // it has a row
	released bool // the row counts deliveries that were given back since
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

// hold makes a claim's lease live.
func (l *loop) hold(t *tx, ls *lease) {
	l.leases[ls.id] = ls
	ls.open, ls.stored = len(ls.items), true
	ls.timer.fire = func(now int64) { l.expire(ls, now) }
	l.timers.set(&ls.timer, ls.until)
	t.extra = true
	t.note(t.exec("INSERT INTO lease (id, items, at) VALUES (?, ?, ?)", ls.id, seal(ls.id, encodeLease(ls.items)), t.now))
}

// writeLease brings the row of a lease up to date with what this transaction
// settles: without it, or without the messages that were released, whose hand-out
// does not count.
func (t *tx) writeLease(ls *lease) error {
	switch {
	case !ls.holds():
		return t.exec("DELETE FROM lease WHERE id = ?", ls.id)
	case ls.released:
		return t.exec("UPDATE lease SET items = ? WHERE id = ?", seal(ls.id, encodeLease(ls.items)), ls.id)
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
		g.active--
	}
	q.endKey(l, it.limitKey, now)
	if back != nil {
		q.returned(l, back, now)
	}
	if g != nil {
		g.check(l, q, now)
	}
	l.blocks.release(it.blk)
	l.touch(q)
}

// Extend sets leases to end lease from now.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	if err := checkLease(lease); err != nil {
		return nil, err
	}
	if len(receipts) > engine.MaxReceive {
		return nil, tooMany("receipts", engine.MaxReceive)
	}
	receipts = slices.Clone(receipts)
	return ask(ctx, e, func(t *tx) ([]error, error) {
		errs := make([]error, len(receipts))
		for i, r := range receipts {
			ls, it := t.l.held(r)
			if it == nil {
				errs[i] = errLeaseLost()
				continue
			}
			it.until = t.now + int64(lease)
			t.l.timers.sooner(&ls.timer, it.until)
			errs[i] = it.stopping()
		}
		return errs, nil
	})
}

func errLeaseLost() error {
	return forebay.Errorf(forebay.CodeLeaseLost, "sqlite", "the lease is over: the message was settled, or its time ran out")
}

func tooMany(field string, bound int) error {
	err := forebay.Errorf(forebay.CodeInvalid, "sqlite", "more than %d in one call", bound)
	err.Field = field
	return err
}
