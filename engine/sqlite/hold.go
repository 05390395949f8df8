package sqlite

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

var _ engine.Delayer = (*Engine)(nil)

// hold is the delay of a queue (engine.Delayer). Nothing is written for it, and no
// message has a time of its own: since the delay is the same for all, what was sent first
// is due first, whatever the delay is. A lane whose head is held stands still, as all
// behind that is younger. What waits outside the lanes, and was never handed out, is in a
// heap by the time at which it was sent; it comes there when a claim meets it, so that a
// changed delay costs nothing but the count of what is delayed (holdcount.go).
type hold struct {
	span  int64 // 0: none
	young youngHeap
	ripe  timer // when the next may be handed out, of those that a claim has met
	held  held
}

// youngItem is a message, or a group by its first one, that is held.
type youngItem struct {
	readyItem
	at int64 // when it was sent
}

type youngHeap []youngItem

func (h youngHeap) Len() int           { return len(h) }
func (h youngHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h youngHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *youngHeap) Push(x any)        { *h = append(*h, x.(youngItem)) }
func (h *youngHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = youngItem{}
	*h = old[:len(old)-1]
	return it
}

// keeps tells whether what was sent at a time, and never handed out, is delayed.
func (h *hold) keeps(sentAt, now int64) bool { return h.span > 0 && sentAt > now-h.span }

func (h *hold) holds(r *ref, now int64) bool { return r.deliveries == 0 && h.keeps(r.sentAt, now) }

// dueAt is when a message may be handed out by its own time and its queue's delay; 0: at once.
func dueAt(due, sentAt int64, deliveries int, span int64) int64 {
	if span == 0 || deliveries > 0 {
		return due
	}
	return max(due, sentAt+span)
}

func (h *hold) add(l *loop, it readyItem, at int64) {
	heap.Push(&h.young, youngItem{it, at})
	h.wakeAt(l, at)
}

// wakeAt has claims look again when what was sent at a time is due.
func (h *hold) wakeAt(l *loop, sentAt int64) { l.timers.sooner(&h.ripe, sentAt+h.span) }

// ripened lets all tenants have their turn: lanes may have stood still.
func (q *queue) ripened(l *loop) {
	for tn := range q.all {
		q.enter(tn)
	}
	l.touch(q)
}

// young puts a ready item aside that is held.
func (c *claim) young(it readyItem) bool {
	r := it.ref
	if it.group != nil {
		r = it.group.pending[0]
	}
	if !c.q.hold.holds(r, c.t.now) {
		return false
	}
	c.passed++
	if it.ref != nil {
		c.q.tenantOf(it.key).parked++
	}
	c.q.hold.add(c.l, it, r.sentAt)
	c.drop(r) // if it was its limit key's turn
	return true
}

// ripen makes ready what is due, as much as one claim passes over.
func (c *claim) ripen() {
	h := &c.q.hold
	for len(h.young) > 0 && c.passed < passAtOnce {
		if h.keeps(h.young[0].at, c.t.now) {
			h.wakeAt(c.l, h.young[0].at)
			return
		}
		it := heap.Pop(&h.young).(youngItem)
		tn := c.q.tenantOf(it.key)
		if it.ref != nil {
			tn.unpark()
		}
		tn.push(it.readyItem)
		c.passed++
	}
}

// forget takes what is gone out of memory, and all groups, which are looked at anew. It
// gives what is left.
func (h *hold) forget(q *queue, gone func(*ref) bool) youngHeap {
	h.young = slices.DeleteFunc(h.young, func(it youngItem) bool {
		if it.group == nil && gone(it.ref) {
			q.outside.remove(it.ref.sentAt)
			return true
		}
		return it.group != nil
	})
	heap.Init(&h.young)
	return h.young
}

// SetDelay keeps the delay of a queue; see engine.Delayer.
func (e *Engine) SetDelay(ctx context.Context, queue string, d time.Duration) error {
	if err := engine.CheckQueue(queue); err != nil {
		return err
	}
	if d < 0 || d > forebay.MaxDelay {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: delay", "must be 0 to %s", time.Duration(forebay.MaxDelay))
		err.Field = "delay"
		return err
	}
	o := &setDelay{name: queue, span: int64(d)}
	if err := e.submit(ctx, o); err != nil || !o.changed {
		return err
	}
	return e.countHeld(context.WithoutCancel(ctx), o.q, o.round)
}

type setDelay struct {
	change
	name    string
	span    int64
	q       *queue
	changed bool
	round   int64 // of the counting that follows
}

func (o *setDelay) apply(t *tx) (err error) {
	if old := t.l.queues[o.name]; o.span == 0 && (old == nil || old.id == 0) {
		return nil // a queue comes to be with a delay, not without one
	}
	if o.q, err = t.queue(o.name); err != nil {
		return err
	}
	return t.keepLimits(o.q, func(kept *keptLimits) { kept.Delay = time.Duration(o.span) })
}

func (o *setDelay) publish(t *tx) {
	if o.q == nil || o.q.hold.span == o.span {
		return
	}
	h := &o.q.hold
	o.changed = true
	h.span = o.span
	o.round = h.held.begin(t.l.seq)
	t.l.timers.stop(&h.ripe)
	o.q.ripened(t.l)
}

// Delay tells the delay of a queue.
func (e *Engine) Delay(ctx context.Context, queue string) (time.Duration, error) {
	return ask(ctx, e, func(t *tx) (d time.Duration, err error) {
		if q := t.l.queues[queue]; q != nil {
			d = time.Duration(q.hold.span)
		}
		return d, nil
	})
}
