package sqlite

import (
	"container/heap"
	"math"
	"time"
)

// tenant is what memory holds of one tenant's messages in one queue. Each has
// lanes of its own under an id of its own, from the same numbers as the queues'. So
// what is met next in a lane is always of the tenant whose turn it is, and nothing
// is searched. Groups, limit keys and limits are the queue's.
//
// The tenants that may have something to hand out stand in a ring, and each gives
// one message when its turn comes (claim.give). Messages without a tenant are the
// queue's home; a queue that knows no other turns round that one.
//
// A tenant's row comes with its first message, and goes when it has had nothing
// stored for a while; its id is then used again, for another tenant.
type tenant struct {
	id    int64
	q     *queue
	name  string
	lanes [levels]*lane

	ready  readyHeap // outside the lanes, could be handed out
	later  later     // delayed messages that are in the store only
	parked int       // messages in groups and under limit keys
	total  int64     // stored

	next, prev *tenant // in the ring; nil: not in it
	idle       bool    // it is among those that may go
}

// leastParked is how many messages each tenant of a queue may park at least,
// however many tenants there are.
const leastParked = 16

func (tn *tenant) start(q *queue, id int64, name string) {
	tn.id, tn.q, tn.name = id, q, name
	tn.later.start()
}

// listen lets the tenant have its turn when what is delayed becomes due.
func (tn *tenant) listen(l *loop) {
	tn.later.timer.fire = func(int64) {
		tn.q.enter(tn)
		l.touch(tn.q)
	}
}

// enter lets a tenant have its turn, after all others.
func (q *queue) enter(tn *tenant) {
	switch {
	case tn.next != nil:
	case q.turn == nil:
		q.turn, tn.next, tn.prev = tn, tn, tn
	default:
		tn.prev, tn.next = q.turn.prev, q.turn
		tn.prev.next, tn.next.prev = tn, tn
	}
}

// leave takes a tenant that has nothing to hand out from the ring.
func (q *queue) leave(tn *tenant) {
	switch {
	case tn.next == nil:
	case tn.next == tn:
		q.turn = nil
	default:
		tn.prev.next, tn.next.prev = tn.next, tn.prev
		if q.turn == tn {
			q.turn = tn.next
		}
	}
	tn.next, tn.prev = nil, nil
}

// alone tells whether nobody else waits for a turn.
func (tn *tenant) alone() bool { return tn.next == nil || tn.next == tn }

// hasMore tells whether the tenant seems to have something to hand out.
func (tn *tenant) hasMore(now int64) bool {
	if len(tn.ready) > 0 || tn.behind(now) {
		return true
	}
	for _, n := range tn.lanes {
		if n != nil && (n.inWindow() || n.last < n.tail) && !tn.full() {
			return true
		}
	}
	return false
}

// push makes an item ready.
func (tn *tenant) push(it readyItem) {
	heap.Push(&tn.ready, it)
	tn.q.enter(tn)
}

// full tells whether the tenant has parked its share. Its lanes then stand still.
func (tn *tenant) full() bool {
	n := len(tn.q.tenants)
	return n == 0 && tn.parked >= maxParked || n > 0 && tn.parked >= max(maxParked/(n+1), leastParked)
}

func (tn *tenant) unpark() {
	tn.parked--
	tn.q.enter(tn)
}

// tenantOf gives the tenant of a stored message.
func (q *queue) tenantOf(key int64) *tenant {
	if id := laneOf(key) / levels; id != q.id {
		return q.tenants[id]
	}
	return &q.home
}

// all gives the tenants of a queue.
func (q *queue) all(yield func(*tenant) bool) {
	if !yield(&q.home) {
		return
	}
	for _, tn := range q.tenants {
		if !yield(tn) {
			return
		}
	}
}

// queueOf gives the queue that a block belongs to; nil: it is not known.
func (l *loop) queueOf(key int64) *queue {
	id := laneOf(key) / levels
	if q := l.byID[id]; q != nil {
		return q
	}
	if tn := l.tenants.byID[id]; tn != nil {
		return tn.q
	}
	return nil
}

// tenantOf gives the tenant that a block belongs to; nil: it is not known.
func (l *loop) tenantOf(key int64) *tenant {
	if q := l.queueOf(key); q != nil {
		return q.tenantOf(key)
	}
	return nil
}

// tenants are those of all queues, but for the homes.
type tenants struct {
	byID  map[int64]*tenant
	free  []int64 // ids that are not in use
	idle  []idleTenant
	timer timer
}

type idleTenant struct {
	tn *tenant
	at int64
}

const (
	idleTenantStays = int64(time.Minute) // so that one who sends now and then costs no row each time
	idleAtOnce      = 256
)

// placing is what a transaction says of tenants.
type placing struct {
	tenants map[tenantName]*tenant // made by it
	seats   map[seat]int64         // where groups belong
	reused  int                    // numbers that somebody had before
	unused  int                    // and that nobody had
}

// tenantID gives the transaction the next number for a tenant; 0: there is none.
func (t *tx) tenantID() int64 {
	if free := t.l.tenants.free; t.reused < len(free) {
		t.reused++
		return free[len(free)-t.reused]
	}
	return t.newID()
}

// newID gives a number that no remembered message is of. Queues have such, so that
// what is known of a message that is gone never leads to another's queue (locateDone).
func (t *tx) newID() int64 {
	if id := t.l.topID + int64(t.unused) + 1; id <= math.MaxInt64>>seqBits/levels {
		t.unused++
		return id
	}
	return 0
}

// takeIDs makes the numbers of a committed transaction used.
func (l *loop) takeIDs(reused, unused int) {
	l.tenants.free = l.tenants.free[:len(l.tenants.free)-reused]
	l.topID += int64(unused)
}

type tenantName struct {
	q    *queue
	name string
}

// place finds the tenant of a message, and stores it if it is new.
func (t *tx) place(q *queue, m *encoded) error {
	m.in = q.id
	q.fair(m)
	if m.tenant != "" {
		tn, err := t.tenant(tenantName{q, m.tenant})
		if err != nil {
			return err
		}
		m.in = tn.id
	}
	if m.group != 0 && (len(q.tenants) > 0 || len(t.tenants) > 0) {
		return t.seat(q, m)
	}
	return nil
}

func (t *tx) tenant(at tenantName) (*tenant, error) {
	if tn := t.tenants[at]; tn != nil {
		return tn, nil
	}
	if tn := at.q.byTenant[at.name]; tn != nil {
		return tn, nil
	}
	tn := new(tenant)
	tn.start(at.q, t.tenantID(), at.name)
	if tn.id == 0 {
		return nil, errNoID()
	}
	if err := t.exec("INSERT INTO tenant (id, queue, name) VALUES (?, ?, ?)", tn.id, at.q.id, at.name); err != nil {
		return nil, err
	}
	if t.tenants == nil {
		t.tenants = map[tenantName]*tenant{}
	}
	t.tenants[at] = tn
	return tn, nil
}

// addTenant publishes a tenant that was stored.
func (l *loop) addTenant(tn *tenant) {
	q := tn.q
	if len(q.tenants) == 0 {
		q.since = l.seq
		q.tenants, q.byTenant = map[int64]*tenant{}, map[string]*tenant{}
	}
	tn.listen(l)
	q.tenants[tn.id], q.byTenant[tn.name], l.tenants.byID[tn.id] = tn, tn, tn
}

// counted changes the number of a tenant's stored messages.
func (l *loop) counted(tn *tenant, n int64) {
	tn.total += n
	if tn.total > 0 || tn.idle || tn == &tn.q.home {
		return
	}
	tn.idle = true
	s := &l.tenants
	s.idle = append(s.idle, idleTenant{tn, l.now()})
	if s.timer.i == 0 {
		l.timers.set(&s.timer, s.idle[0].at+idleTenantStays)
	}
}

// drop forgets a slice of the tenants that have had nothing stored for a while.
func (s *tenants) drop(l *loop, now int64) {
	if l.damaged {
		return
	}
	for n := 0; len(s.idle) > 0 && n < idleAtOnce && s.idle[0].at+idleTenantStays <= now; n++ {
		if tn := s.idle[0].tn; tn.total <= 0 {
			done, err := l.unseatAll(tn.id)
			if err == nil && done {
				err = l.db.exec("DELETE FROM tenant WHERE id = ?", tn.id)
			}
			if err != nil {
				l.log.Error("a tenant that has nothing stored could not be dropped", "error", err)
				l.timers.set(&s.timer, now+idleTenantStays)
				return
			}
			if !done {
				break
			}
			l.dropTenant(tn)
		} else {
			tn.idle = false
		}
		s.idle[0].tn = nil
		s.idle = s.idle[1:]
	}
	if len(s.idle) > 0 {
		l.timers.set(&s.timer, max(s.idle[0].at+idleTenantStays, now+sweepRest))
	}
}

func (l *loop) dropTenant(tn *tenant) {
	q := tn.q
	q.leave(tn)
	l.timers.stop(&tn.later.timer)
	delete(q.tenants, tn.id)
	delete(q.byTenant, tn.name)
	delete(l.tenants.byID, tn.id)
	l.tenants.free = append(l.tenants.free, tn.id)
}
