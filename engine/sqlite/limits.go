package sqlite

import (
	"container/heap"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// bucket is a token bucket told by one time: when it will be full again.
type bucket struct{ full int64 }

func interval(r engine.Rate) int64 {
	per := r.Per
	if per == 0 {
		per = time.Second
	}
	n := int64(r.Count)
	return max((int64(per)+n-1)/n, 1) // rounded up, so that no window has too many
}

func burst(r engine.Rate) int64 { return int64(max(r.Burst, 1)) }

// free is how many may start now.
func (b bucket) free(r engine.Rate, now int64) int64 {
	if r.Count == 0 {
		return math.MaxInt32
	}
	return burst(r) - (max(b.full-now, 0)+interval(r)-1)/interval(r)
}

// next is when the next may start.
func (b bucket) next(r engine.Rate) int64 {
	if r.Count == 0 {
		return 0
	}
	return b.full - (burst(r)-1)*interval(r)
}

func (b *bucket) take(r engine.Rate, now int64) {
	if r.Count > 0 {
		b.full = max(b.full, now) + interval(r)
	}
}

// drained is a bucket that had its last token taken at a time.
func drained(r engine.Rate, at int64) bucket {
	if r.Count == 0 {
		return bucket{}
	}
	return bucket{at + burst(r)*interval(r)}
}

// allowance is how many messages the queue's own limits let start now. When it is
// none for the rate's sake, the loop wakes up for the next.
func (q *queue) allowance(l *loop, now int64) int {
	if q.limits.Paused {
		return 0
	}
	n := int64(math.MaxInt32)
	if q.limits.Active > 0 {
		n = max(int64(q.limits.Active)-q.active, 0)
	}
	free := q.bucket.free(q.limits.Rate, now)
	if free <= 0 {
		l.timers.sooner(&q.wakeup, q.bucket.next(q.limits.Rate))
		return 0
	}
	return int(min(n, free))
}

// limitKey is what is known of a limit key: its live leases, its rate, and the
// messages that wait for it.
type limitKey struct {
	hash    uint64
	active  int
	bucket  bucket
	waiting readyHeap
	timer   timer
}

func (q *queue) keyed() bool { return q.limits.KeyActive > 0 || q.limits.KeyRate.Count > 0 }

func (q *queue) keyFree(key uint64, now int64) bool {
	return key == 0 || !q.keyed() || q.keyRoom(q.keys[key], now) > 0
}

// keyRoom is how many messages of a key may start now; a key that is not known has no lease.
func (q *queue) keyRoom(k *limitKey, now int64) int64 {
	b, active := drained(q.limits.KeyRate, q.drainedAt), 0
	if k != nil {
		b, active = k.bucket, k.active
	}
	n := b.free(q.limits.KeyRate, now)
	if q.limits.KeyActive > 0 {
		n = min(n, int64(q.limits.KeyActive-active))
	}
	return n
}

func (q *queue) keyFor(l *loop, hash uint64) *limitKey {
	k := q.keys[hash]
	if k == nil {
		k = &limitKey{hash: hash, bucket: drained(q.limits.KeyRate, q.drainedAt)}
		k.timer.fire = func(now int64) { q.wakeKey(l, k, now) }
		q.keys[hash] = k
	}
	return k
}

// awaitKey lets an item wait until its key has room.
func (q *queue) awaitKey(l *loop, hash uint64, it readyItem, now int64) {
	k := q.keyFor(l, hash)
	heap.Push(&k.waiting, it)
	if it.ref != nil {
		q.tenantOf(it.key).parked++
		q.outside.add(it.ref.sentAt)
	}
	if next := k.bucket.next(q.limits.KeyRate); next > now {
		l.timers.sooner(&k.timer, next)
	}
}

// startKey counts a lease of a key; endKey counts its end.
func (q *queue) startKey(l *loop, hash uint64, now int64) {
	if hash != 0 && q.keyed() {
		k := q.keyFor(l, hash)
		k.active++
		k.bucket.take(q.limits.KeyRate, now)
	}
}

func (q *queue) endKey(l *loop, hash uint64, now int64) {
	if k := q.keys[hash]; k != nil && hash != 0 {
		k.active--
		q.wakeKey(l, k, now)
	}
}

// wakeKey makes as many waiting items ready as the key has room for.
func (q *queue) wakeKey(l *loop, k *limitKey, now int64) {
	room := q.keyRoom(k, now)
	for ; room > 0 && len(k.waiting) > 0; room-- {
		it := heap.Pop(&k.waiting).(readyItem)
		tn := q.tenantOf(it.key)
		if it.ref != nil {
			tn.unpark()
		}
		tn.push(it)
		l.touch(q)
	}
	switch {
	case len(k.waiting) > 0:
		if next := k.bucket.next(q.limits.KeyRate); next > now {
			l.timers.sooner(&k.timer, next)
		}
	case k.active > 0:
	case k.bucket.full > now:
		l.timers.sooner(&k.timer, k.bucket.full)
	default:
		l.timers.stop(&k.timer)
		delete(q.keys, k.hash)
	}
}

// SetLimits keeps limits of a queue, and applies them from the next claim on.
func (e *Engine) SetLimits(ctx context.Context, queue string, limits engine.QueueLimits) error {
	if err := engine.CheckQueue(queue); err != nil {
		return err
	}
	if limits.Active < 0 || limits.KeyActive < 0 || badRate(limits.Rate) || badRate(limits.KeyRate) {
		return forebay.Errorf(forebay.CodeInvalid, "sqlite: limits", "limits must not be negative")
	}
	return e.submit(ctx, &setLimits{name: queue, limits: limits})
}

func badRate(r engine.Rate) bool { return r.Count < 0 || r.Per < 0 || r.Burst < 0 }

type setLimits struct {
	change
	name   string
	limits engine.QueueLimits
	q      *queue
}

func (o *setLimits) apply(t *tx) (err error) {
	if o.q, err = t.queue(o.name); err != nil {
		return err
	}
	return t.keepLimits(o.q, func(kept *keptLimits) { kept.QueueLimits = o.limits })
}

// keptLimits are the limits of a queue as they are stored, with its delay.
type keptLimits struct {
	engine.QueueLimits
	Delay time.Duration `json:"delay,omitempty"`
}

// keepLimits stores them changed; what else the transaction changes of them stays.
func (t *tx) keepLimits(q *queue, change func(*keptLimits)) error {
	kept, changed := t.kept[q]
	if !changed {
		kept = keptLimits{q.limits, time.Duration(q.hold.span)}
	}
	change(&kept)
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if t.kept == nil {
		t.kept = map[*queue]keptLimits{}
	}
	t.kept[q] = kept
	return t.exec("UPDATE queue SET limits = ? WHERE id = ?", string(text), q.id)
}

// publish counts the live leases of each key anew, and lets all that waited for a
// key be judged by the new limits.
func (o *setLimits) publish(t *tx) {
	q, l := o.q, t.l
	old := q.keys
	q.limits, q.keys, q.drainedAt = o.limits, map[uint64]*limitKey{}, math.MinInt64/2
	for hash, k := range old {
		l.timers.stop(&k.timer)
		for _, it := range k.waiting {
			tn := q.tenantOf(it.key)
			if it.ref != nil {
				tn.unpark()
			}
			tn.push(it)
		}
		if q.keyed() && k.bucket.full > t.now {
			fresh := q.keyFor(l, hash)
			fresh.bucket = k.bucket
			l.timers.set(&fresh.timer, k.bucket.full)
		}
	}
	if q.keyed() {
		for _, ls := range l.leases {
			for i := range ls.items {
				if it := &ls.items[i]; ls.q == q && it.state != itemEnded && it.limitKey != 0 {
					q.keyFor(l, it.limitKey).active++
				}
			}
		}
	}
	l.touch(q)
}

// QueueLimits tells the limits of a queue; none of an unknown one.
func (e *Engine) QueueLimits(ctx context.Context, queue string) (engine.QueueLimits, error) {
	return ask(ctx, e, func(t *tx) (limits engine.QueueLimits, err error) {
		if q := t.l.queues[queue]; q != nil {
			limits = q.limits
		}
		return limits, nil
	})
}
