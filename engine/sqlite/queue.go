package sqlite

import (
	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// queue is what memory holds of a queue: where the lanes of its tenants stand, and
// the messages that left their place in the lane. The number of these is bounded by
// what was handed out and by maxParked; the rest stays in the store.
type queue struct {
	id       int64 // 0: nothing was ever sent to it
	name     string
	home     tenant            // of messages that name none
	tenants  map[int64]*tenant // the others that have something stored, by id
	byTenant map[string]*tenant
	turn     *tenant // whose turn it is, in the ring of those that may have something
	since    int64   // seq since which there have been tenants

	groups  map[uint64]*group // those with messages outside the lanes or leased
	outside ages              // of the ready ones, those under limit keys, and the first of each group
	waiters []*receive

	limits    engine.QueueLimits
	bucket    bucket
	drainedAt int64 // limit keys that are not known count as used up at this time
	keys      map[uint64]*limitKey
	crowd     crowd // of messages that are no jobs
	wakeup    timer // when the rate allows the next
	hold      hold

	total, active, delayed, dead, bytes  int64
	sent, duplicate, conflict, completed int64
	cancelled, expired                   int64 // since the engine was opened
	tally                                tally // of finished jobs
	log                                  queueLog
}

// maxParked bounds the messages that wait in memory for their group or limit key.
// Beyond it the lanes stand still until some of them are done.
const maxParked = 1 << 17

// ref is a message outside its lane.
type ref struct {
	key, ord, due, sentAt int64
	idx                   int
	attempts, deliveries  int
	group, limitKey       uint64
	stored                bool  // it has a row in again
	job                   bool  // it is one; known of what is leased
	started               int64 // when it was handed out last; 0: never
	told                  *told // nil: nothing
}

// told is what is known of an active job in memory only. Its progress stays while it
// waits for a retry, as long as memory does.
type told struct {
	progress []byte // JSON; nil: none
	stop     bool   // somebody asked it to
	reason   string // why
}

// order is the time by which messages of all levels are compared.
func order(ord int64, level int) int64 { return ord + int64(level)*int64(engine.Ageing) }

// readyItem is a ref without a group, or a group whose first message is due.
type readyItem struct {
	order, key int64
	idx        int
	ref        *ref
	group      *group
}

func refItem(r *ref) readyItem {
	return readyItem{order(r.ord, levelOf(r.key)), r.key, r.idx, r, nil}
}

func groupItem(g *group) readyItem {
	it := refItem(g.pending[0])
	it.ref, it.group = nil, g
	return it
}

type readyHeap []readyItem

func (h readyHeap) Len() int { return len(h) }
func (h readyHeap) Less(i, j int) bool {
	if h[i].order != h[j].order {
		return h[i].order < h[j].order
	}
	if h[i].key != h[j].key {
		return h[i].key < h[j].key
	}
	return h[i].idx < h[j].idx
}
func (h readyHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(x any)   { *h = append(*h, x.(readyItem)) }
func (h *readyHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = readyItem{}
	*h = old[:len(old)-1]
	return it
}

func (l *loop) touch(q *queue) { l.dirty[q] = struct{}{} }

// queueFor finds a queue in memory; with make it makes one that is not stored yet.
func (l *loop) queueFor(name string) *queue {
	q := l.queues[name]
	if q == nil {
		q = l.newQueue(0, name)
		l.queues[name] = q
	}
	return q
}

func (l *loop) newQueue(id int64, name string) *queue {
	q := &queue{id: id, name: name, groups: map[uint64]*group{}, keys: map[uint64]*limitKey{}}
	q.log.age = l.e.cfg.Log.age(name)
	q.home.start(q, id, "")
	q.home.listen(l)
	q.wakeup.fire = func(int64) { l.touch(q) }
	q.hold.ripe.fire = func(int64) { q.ripened(l) }
	return q
}

// dropIdle forgets a queue that was only asked for.
func (l *loop) dropIdle(q *queue) {
	if q.id == 0 && len(q.waiters) == 0 {
		delete(l.queues, q.name)
		delete(l.dirty, q)
	}
}

// queue gives the queue that messages are sent to, and stores it if it is new.
func (t *tx) queue(name string) (*queue, error) {
	if q := t.queues[name]; q != nil {
		return q, nil
	}
	q := t.l.queues[name]
	if q != nil && q.id > 0 {
		return q, nil
	}
	id := t.newID()
	if id == 0 {
		return nil, errNoID()
	}
	if err := t.exec("INSERT INTO queue (id, name) VALUES (?, ?)", id, name); err != nil {
		return nil, err
	}
	if t.queues == nil {
		t.queues = map[string]*queue{}
	}
	q = t.l.newQueue(id, name)
	t.queues[name] = q
	return q, nil
}

func errNoID() error {
	return forebay.Errorf(forebay.CodeFull, "sqlite: send", "no more queues and tenants")
}

// addQueue publishes a queue that was stored. Receivers may wait for it already.
func (l *loop) addQueue(q *queue) {
	if old := l.queues[q.name]; old != nil {
		q.waiters = old.waiters
		for _, w := range q.waiters {
			w.q = q
		}
		delete(l.dirty, old)
	}
	l.queues[q.name], l.byID[q.id] = q, q
	l.touch(q)
}

func (tn *tenant) lane(key int64) *lane {
	level := levelOf(key)
	if tn.lanes[level] == nil {
		base := blockKey(laneOf(key), 0)
		tn.lanes[level] = &lane{last: base, tail: base}
	}
	return tn.lanes[level]
}

func (tn *tenant) pushReady(r *ref) {
	tn.push(refItem(r))
	tn.q.outside.add(r.sentAt)
}

// toLane lets a message of a group wait where the cursor of its lane comes to it.
func (q *queue) toLane(b *block, r *ref, now int64) {
	tn := q.tenantOf(r.key)
	tn.delay(r.due, now)
	if r.stored {
		b.noted.set(r.idx)
	}
	q.enter(tn)
}

// returned puts a message back that was leased.
func (q *queue) returned(l *loop, r *ref, now int64) {
	tn := q.tenantOf(r.key)
	tn.delay(r.due, now)
	if r.group != 0 {
		q.groupFor(r.group).put(l, q, r, now)
		return
	}
	tn.putLater(l, r)
}
