package sqlite

import (
	"cmp"
	"slices"
)

// group is a group of which some message is leased, or waits outside its lane.
// Later ones of it that the lane's cursor meets wait in pending, in order. So a
// message in pending is always older than those of the group in the lane.
//
// Each message of a group that is leased has a lease of its own. One that comes back
// may be handed out again when nothing before it is leased, though something after
// it still is; what comes after that waits.
//
// Invariant: it is in the ready heap, or waits for a limit key or the queue's delay, exactly while
// queued is set, and then nobody holds a message of it that is before the first of
// pending.
type group struct {
	hash    uint64
	pending []*ref // by key and idx: the order in which they were sent
	held    []spot // what is leased, in the same order
	by      int64  // the lease whose claim took messages last
	before  spot   // that claim may take what is before it; none: all
	queued  bool
	timer   timer // when its first message is due
	waits   int64 // since when its first message does, as the queue's ages have it; 0: none is due
}

// oneAtATime is set in the hash of a group of which not even one Receive takes several.
const oneAtATime = 1 << 63

// spot is where a message lies. Those of a group are in one lane, so that they have
// the order in which they were sent.
type spot struct {
	key int64
	idx int
}

func (r *ref) spot() spot { return spot{r.key, r.idx} }

func (s spot) compare(o spot) int {
	return cmp.Or(cmp.Compare(s.key, o.key), cmp.Compare(s.idx, o.idx))
}

func (q *queue) groupFor(hash uint64) *group {
	g := q.groups[hash]
	if g == nil {
		g = &group{hash: hash}
		q.groups[hash] = g
	}
	return g
}

// free tells whether a lease that is being filled may take a message from the lane.
func (g *group) free(lease int64, r *ref) bool {
	return len(g.pending) == 0 && (g.first(r) || g.by == lease && g.hash&oneAtATime == 0 && g.open(r))
}

// first tells whether nothing before a message is leased.
func (g *group) first(r *ref) bool { return len(g.held) == 0 || r.spot().compare(g.held[0]) < 0 }

// open tells whether the claim that took from the group last may take a message:
// nothing before it is leased but what the claim has taken.
func (g *group) open(r *ref) bool { return g.before == spot{} || r.spot().compare(g.before) < 0 }

// join makes a claim the holder of the group.
func (g *group) join(lease int64) {
	g.by, g.before = lease, spot{}
	if len(g.held) > 0 {
		g.before = g.held[0]
	}
}

// hold notes that a message is leased. Most are the last of their group.
func (g *group) hold(r *ref) {
	s := r.spot()
	if n := len(g.held); n == 0 || g.held[n-1].compare(s) < 0 {
		g.held = append(g.held, s)
		return
	}
	at, _ := slices.BinarySearchFunc(g.held, s, spot.compare)
	g.held = slices.Insert(g.held, at, s)
}

// endHold notes that it no longer is. Most are the first of their group.
func (g *group) endHold(r *ref) {
	at, found := slices.BinarySearchFunc(g.held, r.spot(), spot.compare)
	switch {
	case !found:
	case at == 0:
		g.held = g.held[1:]
	default:
		g.held = slices.Delete(g.held, at, at+1)
	}
}

// put adds a message that waits outside the lane.
func (g *group) put(l *loop, q *queue, r *ref, now int64) {
	at, _ := slices.BinarySearchFunc(g.pending, r, func(a, b *ref) int { return a.spot().compare(b.spot()) })
	g.pending = slices.Insert(g.pending, at, r)
	q.tenantOf(r.key).parked++
	g.check(l, q, now)
}

func (g *group) wakeAt(l *loop, q *queue, due int64) {
	if g.timer.fire == nil {
		g.timer.fire = func(now int64) { g.wake(l, q, now) }
	}
	l.timers.set(&g.timer, due)
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

// check lets the group be taken if its first message is due and nothing before that
// is leased, and forgets the group when nothing is left of it.
func (g *group) check(l *loop, q *queue, now int64) {
	g.age(q, now)
	if len(g.pending) > 0 && g.pending[0].due > now { // also once more, where the clock went back before it was taken
		g.wakeAt(l, q, g.pending[0].due)
	}
	switch {
	case g.queued:
	case len(g.pending) == 0:
		if len(g.held) == 0 {
			l.timers.stop(&g.timer)
			delete(q.groups, g.hash)
		}
	case !g.first(g.pending[0]):
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
