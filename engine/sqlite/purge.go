package sqlite

import (
	"container/heap"
	"context"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay/engine"
)

// purgeBlocks is how many blocks one step of a purge removes, so that others get
// their turn in between.
const (
	purgeBlocks = 256
	purgeJobs   = 4096 // of which each has an event
)

// Purge drops the messages of a queue that are not active, with their dedup
// records. What is sent while it runs stays.
func (e *Engine) Purge(ctx context.Context, queue string) (dropped int64, err error) {
	if err := engine.CheckQueue(queue); err != nil {
		return 0, err
	}
	o := &purge{name: queue, next: purgeState{first: true}}
	for !o.next.done {
		o.state = o.next
		if err := e.submit(ctx, o); err != nil {
			return dropped, err
		}
		dropped += o.dropped
	}
	return dropped, nil
}

// purge is one step of Purge.
type purge struct {
	change
	name        string
	state, next purgeState // before and after the step
	dropped     int64
	jobs        int // of them, so far
	q           *queue
	delayed     int64             // of what was dropped, so many were delayed
	drops       map[int64]*bitmap // what was dropped of each block
	held        []sentThen        // and of what the queue's delay holds
}

// purgeState says how far a purge has come.
type purgeState struct {
	first, done bool
	lanes       []int64 // that are left; the first has been looked at up to a block
	after       int64   // key of that block
	before      int64   // what has this seq, or a later one, was sent since
}

func (o *purge) apply(t *tx) error {
	o.next, o.dropped, o.delayed, o.jobs, o.drops, o.held = o.state, 0, 0, 0, map[int64]*bitmap{}, nil
	o.q = t.l.queues[o.name]
	if o.q == nil || o.q.id == 0 {
		o.next.done = true
		return nil
	}
	if o.state.first {
		o.next.before = t.l.seq
		for tn := range o.q.all {
			for level, n := range tn.lanes {
				if n != nil {
					o.next.lanes = append(o.next.lanes, laneID(tn.id, level))
				}
			}
		}
		o.next.done = len(o.next.lanes) == 0
	}
	o.next.first = false
	for left := purgeBlocks; left > 0 && !o.next.done; {
		keys, err := o.blocks(t, left)
		if err != nil {
			return err
		}
		for i, key := range keys {
			if o.jobs >= purgeJobs {
				keys, left = keys[:i], 0
				break
			}
			if err := o.block(t, key); err != nil {
				return err
			}
			o.next.after = key
		}
		if len(keys) < left {
			o.next.lanes, o.next.after = o.next.lanes[1:], 0
			o.next.done = len(o.next.lanes) == 0
			left-- // a lane without blocks is some work too
		}
		left -= len(keys)
	}
	return nil
}

// blocks gives the keys of the next blocks of the lane.
func (o *purge) blocks(t *tx, n int) (keys []int64, err error) {
	lane := o.next.lanes[0]
	from := max(o.next.after, blockKey(lane, 0))
	err = t.l.db.each("SELECT key FROM block WHERE key > ? AND key < ? ORDER BY key LIMIT ?", func(s *sqlite.Stmt) error {
		keys = append(keys, s.ColumnInt64(0))
		return nil
	}, from, blockKey(lane, o.next.before), int64(n))
	return keys, err
}

// block drops what is not leased of a block.
func (o *purge) block(t *tx, key int64) error {
	b, err := t.l.meta(key)
	if b == nil || err != nil {
		return err
	}
	leased := t.l.leasedOf(key)
	if b.jobs > 0 {
		if err := o.discard(t, b, &leased); err != nil {
			return err
		}
	}
	drop := new(bitmap)
	for i := range b.n {
		if !b.settled.has(i) && !leased.has(i) {
			drop.set(i)
			t.settle(b, i)
			o.dropped++
		}
	}
	if *drop == (bitmap{}) {
		return nil
	}
	o.drops[key] = drop
	delayed, err := t.l.db.int("SELECT count(*) FROM again WHERE key = ? AND due > ?", key, o.q.tenantOf(key).later.counted)
	if err != nil {
		return err
	}
	o.delayed += delayed
	o.held = append(o.held, sentThen{b.sentAt, int64(drop.count()) - delayed})
	if err := o.forgetAgain(t, b, drop); err != nil {
		return err
	}
	return t.forget(seqOf(key), drop)
}

// discard notes that jobs are dropped. It reads what they are, so that fewer blocks
// fit into a step.
func (o *purge) discard(t *tx, b *block, leased *bitmap) error {
	b, err := t.l.readable(b.key)
	if b == nil || err != nil {
		return err
	}
	for i := range b.n {
		body := b.body(i)
		if b.settled.has(i) || leased.has(i) || !isJob(body) {
			continue
		}
		if g, err := glanceAt(body); err == nil {
			t.record(&note{typ: evDiscarded, id: g.id, kind: g.kind, queue: o.name, text: "its queue was purged"})
			o.jobs++
		}
	}
	return nil
}

func (o *purge) forgetAgain(t *tx, b *block, drop *bitmap) error {
	if drop.count() == b.n {
		return t.exec("DELETE FROM again WHERE key = ?", b.key)
	}
	for i := range b.n {
		if drop.has(i) {
			if err := t.exec("DELETE FROM again WHERE key = ? AND idx = ?", b.key, int64(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget clears dedup entries of a block. What memory still has of them finds
// nothing in the store.
func (t *tx) forget(seq int64, drop *bitmap) error {
	var ids []byte
	err := t.l.db.each("SELECT ids FROM dedup WHERE seq = ?", func(s *sqlite.Stmt) error {
		eachEntry(columnBytes(s, 0), func(i int, n *entry) bool {
			if drop.has(i) {
				*n = entry{}
			}
			ids = n.append(ids)
			return true
		})
		return nil
	}, seq)
	if err != nil || ids == nil {
		return err
	}
	return t.exec("UPDATE dedup SET ids = ? WHERE seq = ?", ids, seq)
}

// publish forgets what memory holds of the dropped messages.
func (o *purge) publish(t *tx) {
	q, l := o.q, t.l
	if q == nil || q.id == 0 {
		return
	}
	q.delayed -= o.delayed
	for _, h := range o.held {
		q.hold.gone(h)
	}
	if len(o.drops) > 0 {
		q.forget(l, func(r *ref) bool {
			drop := o.drops[r.key]
			return drop != nil && drop.has(r.idx)
		}, t.now)
	}
	l.touch(q)
}

// forget takes messages outside the lanes out of memory. All groups are looked at
// anew, since each may have lost its first message.
func (q *queue) forget(l *loop, gone func(*ref) bool, now int64) {
	left := func(h readyHeap) readyHeap {
		h = slices.DeleteFunc(h, func(it readyItem) bool {
			if it.group == nil && gone(it.ref) {
				q.outside.remove(it.ref.sentAt)
				return true
			}
			return it.group != nil
		})
		heap.Init(&h)
		return h
	}
	parked := map[*tenant]int{}
	for tn := range q.all {
		if tn.parked > 0 {
			parked[tn] = tn.parked
		}
		tn.ready, tn.parked = left(tn.ready), 0
	}
	for _, it := range q.hold.forget(q, gone) {
		q.tenantOf(it.key).parked++
	}
	for _, k := range q.keys {
		k.waiting = left(k.waiting)
		for _, it := range k.waiting {
			q.tenantOf(it.key).parked++
		}
	}
	for _, g := range q.groups {
		g.pending = slices.DeleteFunc(g.pending, gone)
		g.queued = false
		for _, r := range g.pending {
			q.tenantOf(r.key).parked++
		}
	}
	for _, g := range q.groups {
		g.check(l, q, now)
	}
	for _, k := range q.keys {
		q.wakeKey(l, k, now)
	}
	for tn, n := range parked {
		if tn.parked < n { // its lanes may have stood still
			q.enter(tn)
		}
	}
}
