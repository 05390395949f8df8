package sqlite

import (
	"container/heap"
	"math"
)

// claim takes messages for one receiver. more: it stopped at its bound of work,
// and there may be messages yet.
func (l *loop) claim(t *tx, q *queue, w *receive) (more bool, err error) {
	room := min(w.max, q.allowance(l, t.now))
	l.leaseID++ // also when it stays empty: groups remember who took from them
	c := claim{l: l, t: t, q: q, max: room, whole: w.together, ahead: aheadAtMost, ls: &lease{q: q, id: l.leaseID, start: l.opening, kept: w.kept, until: t.now + int64(w.lease)}}
	c.ripen()
	var failure error // none if it took anything: the next claim meets it again
	for failure == nil && c.room() && c.passed < passAtOnce && q.turn != nil {
		failure = c.give(q.turn)
	}
	c.endGroups()
	if len(c.ls.items) == 0 {
		return failure == nil && c.passed >= passAtOnce, failure
	}
	w.ls, w.taken = c.ls, c.taken
	l.hold(t, c.ls)
	t.claims = append(t.claims, w)
	return true, nil
}

// claim is the work of filling one lease.
type claim struct {
	l      *loop
	t      *tx
	q      *queue
	ls     *lease
	taken  []taken
	max    int
	bytes  int
	passed int      // messages that had to be left, since others hold their group or key
	groups []*group // of which this claim took messages
	whole  bool     // take several of a group, where they are near
	ahead  int      // so many messages may still be looked at for that
}

// give takes one message of the tenant whose turn it is, if it has one, and gives
// the turn to the next.
func (c *claim) give(tn *tenant) error {
	for had := len(c.ls.items); len(c.ls.items) == had && c.passed < passAtOnce; {
		if err := tn.advance(c.l, c.t.now); err != nil {
			return err
		}
		ok, err := c.next(tn)
		if err != nil {
			return err
		}
		if !ok && !tn.behind(c.t.now) {
			c.q.leave(tn)
			return nil
		}
	}
	if tn.alone() {
		return nil
	}
	if tn.hasMore(c.t.now) {
		c.q.turn = tn.next
	} else {
		c.q.leave(tn) // so that it comes after all others when it has something again
	}
	tn.rest(c.l)
	return nil
}

// next takes the message that comes first by order, from the ready ones and the
// heads of the lanes.
func (c *claim) next(tn *tenant) (ok bool, err error) {
	best := int64(math.MaxInt64)
	if len(tn.ready) > 0 {
		best = tn.ready[0].order
	}
	var from *lane
	var blk *block
	var idx int
	for level, n := range tn.lanes {
		if n == nil || tn.full() {
			continue
		}
		b, i, err := n.peek(c.l)
		if err != nil {
			return false, err
		}
		if b == nil {
			continue
		}
		if c.q.hold.keeps(b.sentAt, c.t.now) && !b.noted.has(i) { // and all behind it
			c.q.hold.wakeAt(c.l, b.sentAt)
			continue
		}
		if o := order(b.sentAt, level); o < best {
			best, from, blk, idx = o, n, b, i
		}
	}
	switch {
	case from != nil:
		had := len(c.ls.items)
		if err := c.fromLane(blk, idx); err != nil {
			return false, err
		}
		from.head++
		if c.whole && len(c.ls.items) > had {
			return true, c.together(from, c.ls.items[had].group)
		}
		return true, nil
	case len(tn.ready) == 0:
		return false, nil
	}
	it := heap.Pop(&tn.ready).(readyItem)
	if c.young(it) {
		return true, nil
	}
	if it.group != nil {
		return true, c.fromGroup(it.group, tn)
	}
	c.q.outside.remove(it.ref.sentAt)
	return true, c.fromReady(it.ref)
}

// fromLane takes, parks or passes the message at the cursor.
func (c *claim) fromLane(b *block, i int) error {
	group, key := routing(b.body(i))
	r := ref{key: b.key, idx: i, ord: b.sentAt, sentAt: b.sentAt, group: group, limitKey: key}
	if group != 0 {
		if b.noted.has(i) {
			kept, err := c.l.kept(b.key, i)
			if err != nil {
				return err
			}
			if kept != nil {
				kept.group = group
				r = *kept
			}
		}
		g := c.q.groupFor(group)
		if r.due <= c.t.now && !c.q.hold.holds(&r, c.t.now) && g.free(c.ls.id, &r) && c.q.keyFree(key, c.t.now) {
			c.join(g)
			return c.take(r, b)
		}
		c.passed++
		g.put(c.l, c.q, &r, c.t.now)
		return nil
	}
	if !c.q.keyFree(key, c.t.now) {
		c.passed++
		c.q.awaitKey(c.l, key, refItem(&r), c.t.now)
		return nil
	}
	return c.take(r, b)
}

func (c *claim) fromReady(r *ref) error {
	if !c.q.keyFree(r.limitKey, c.t.now) {
		c.passed++
		c.q.awaitKey(c.l, r.limitKey, refItem(r), c.t.now)
		return nil
	}
	b, err := c.l.readable(r.key)
	if err != nil {
		c.q.tenantOf(r.key).pushReady(r)
		return err
	}
	if b == nil || b.settled.has(r.idx) {
		c.drop(r)
		return nil
	}
	return c.take(*r, b)
}

// fromGroup takes the first messages of a group, down to one that somebody holds;
// where others wait for their turn, only one.
func (c *claim) fromGroup(g *group, tn *tenant) error {
	g.queued = false
	c.join(g)
	one := !tn.alone() || g.hash&oneAtATime != 0
	for had := len(c.ls.items); len(g.pending) > 0 && c.room() && !(one && len(c.ls.items) > had); {
		r := g.pending[0]
		if r.due > c.t.now || c.q.hold.holds(r, c.t.now) || !g.open(r) {
			return nil
		}
		if !c.q.keyFree(r.limitKey, c.t.now) {
			c.passed++
			return nil // endGroups lets the group wait for the key
		}
		b, err := c.l.readable(r.key)
		if err != nil {
			return err
		}
		g.shift(c.q)
		if b == nil || b.settled.has(r.idx) {
			c.drop(r)
			continue
		}
		if err := c.take(*r, b); err != nil {
			return err
		}
	}
	return nil
}

// drop leaves out a message whose data is damaged. If it was its key's turn, the
// key's next has it now.
func (c *claim) drop(r *ref) {
	if k := c.q.keys[r.limitKey]; k != nil {
		c.q.wakeKey(c.l, k, c.t.now)
	}
}

func (c *claim) room() bool { return len(c.ls.items) < c.max && c.bytes < claimBytes }

// join makes the claim the holder of a group.
func (c *claim) join(g *group) {
	if g.by != c.ls.id {
		g.join(c.ls.id)
		c.groups = append(c.groups, g)
	}
}

// endGroups puts back the groups that the claim looked at and did not take.
func (c *claim) endGroups() {
	for _, g := range c.groups {
		g.check(c.l, c.q, c.t.now)
	}
}

// take leases a message to the claim.
func (c *claim) take(r ref, b *block) error {
	k := taken{body: b.body(r.idx), sentAt: r.sentAt, attempts: r.attempts, count: r.deliveries + 1}
	if r.stored && r.attempts > 0 {
		var err error
		if k.failures, err = c.l.failures(&r); err != nil {
			k.failures = "" // the message matters more than its past
		}
	}
	if isJob(k.body) && !c.l.begin(c.t, c.q, &r, k.body) {
		c.passed++
		c.drop(&r)
		return nil
	}
	r.deliveries++
	r.due = 0
	b.leased++
	c.q.active++
	c.q.bucket.take(c.q.limits.Rate, c.t.now)
	if r.group != 0 {
		c.q.groupFor(r.group).hold(&r)
	}
	c.q.startKey(c.l, r.limitKey, c.t.now)
	c.ls.items = append(c.ls.items, item{ref: r, blk: b, until: c.ls.until, state: itemLeased})
	c.taken = append(c.taken, k)
	c.bytes += len(k.body)
	return nil
}
