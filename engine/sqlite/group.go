package sqlite

import "slices"

// group is a group of which some message is leased, or waits outside its lane.
// Later ones of it that the lane's cursor meets wait in pending, in order. So a
// message in pending is always older than those of the group in the lane.
//
// Invariant: it is in the ready heap, or waits for a limit key, exactly while
// queued is set, and then nobody holds a message of it.
type group struct {
	hash    uint64
	pending []*ref // by key and idx: the order in which they were sent
	active  int
	by      int64 // the lease whose claim took messages last
	queued  bool
	waits   int64 // since when its first message does, as the queue's ages have it; 0: none is due
}

// oneAtATime is set in the hash of a group of which not even one Receive takes several.
const oneAtATime = 1 << 63

func (q *queue) groupFor(hash uint64) *group {
	g := q.groups[hash]
	if g == nil {
		g = &group{hash: hash}
		q.groups[hash] = g
	}
	return g
}

// free tells whether a lease that is being filled may take the group's next
// message from the lane.
func (g *group) free(lease int64) bool {
	return len(g.pending) == 0 && (g.active == 0 || g.by == lease && g.hash&oneAtATime == 0)
}

// put adds a message that waits outside the lane.
func (g *group) put(l *loop, q *queue, r *ref, now int64) {
	at, _ := slices.BinarySearchFunc(g.pending, r, func(a, b *ref) int {
		if a.key != b.key {
			return int(min(max(a.key-b.key, -1), 1))
		}
		return a.idx - b.idx
	})
	g.pending = slices.Insert(g.pending, at, r)
	q.tenantOf(r.key).parked++
	if r.due > now {
		l.timers.set(&timer{fire: func(now int64) { g.wake(l, q, now) }}, r.due)
	}
	g.check(l, q, now)
}

// wake looks again at a group whose message has become due; the group may be gone.
func (g *group) wake(l *loop, q *queue, now int64) {
	if q.groups[g.hash] == g {
		g.check(l, q, now)
	}
}

// shift takes the first message out of pending.
func (g *group) shift(q *queue) {
	q.tenantOf(g.pending[0].key).unpark()
	g.pending[0] = nil
	g.pending = g.pending[1:]
}

// check lets the group be taken if nobody holds it and its first message is due,
// and forgets it when nothing is left of it.
func (g *group) check(l *loop, q *queue, now int64) {
	g.age(q, now)
	switch {
	case g.active > 0 || g.queued:
	case len(g.pending) == 0:
		delete(q.groups, g.hash)
	case g.pending[0].due > now: // its timer looks again
	case q.keyFree(g.pending[0].limitKey, now):
		g.queued = true
		q.tenantOf(g.pending[0].key).push(groupItem(g))
		l.touch(q)
	default:
		g.queued = true
		q.awaitKey(l, g.pending[0].limitKey, groupItem(g), now)
	}
}

// age keeps the queue's ages right about the group's first message.
func (g *group) age(q *queue, now int64) {
	waits := int64(0)
	if len(g.pending) > 0 && g.pending[0].due <= now {
		waits = g.pending[0].sentAt
	}
	if waits == g.waits {
		return
	}
	if g.waits != 0 {
		q.outside.remove(g.waits)
	}
	if waits != 0 {
		q.outside.add(waits)
	}
	g.waits = waits
}
