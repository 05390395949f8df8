package sqs

import (
	"crypto/rand"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay"
)

// lease is one hand-out, from its answer until it is settled or over. deadline is the
// moment up to which SQS has promised it, on the monotonic clock, counted from before
// the request that set it.
type lease struct {
	q         *queue
	receipt   forebay.Receipt
	handle    string
	messageID string
	raw       *types.Message // for its dead letter
	received  time.Time

	// guarded by leases.mu
	deadline time.Time
	set      time.Time // when the request that set the deadline began
	settling bool
	busy     int           // extensions that are on their way
	idle     chan struct{} // closed when busy is 0 again; nil: nobody waits for it
}

// end12 is when SQS ends a lease at the latest.
func (l *lease) end12() time.Time { return l.received.Add(12 * time.Hour) }

// leases are those of this engine. Their number is bounded by what is handed out:
// who is over leaves with the next look through all, at most once a second.
type leases struct {
	mu     sync.Mutex
	prefix string // makes receipts of another process's engine unknown here
	last   int64
	all    map[forebay.Receipt]*lease
	swept  time.Time
}

func newLeases() *leases {
	return &leases{prefix: rand.Text()[:8], all: make(map[forebay.Receipt]*lease)}
}

// add makes the receipt of a new lease.
func (t *leases) add(l *lease, now time.Time) forebay.Receipt {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.swept) > time.Second {
		t.swept = now
		for r, old := range t.all {
			if !old.settling && old.busy == 0 && old.deadline.Before(now) {
				delete(t.all, r)
			}
		}
	}
	t.last++
	l.receipt = forebay.Receipt(t.prefix + "-" + strconv.FormatInt(t.last, 36))
	t.all[l.receipt] = l
	return l.receipt
}

// void is the error of a receipt that leads to no live lease.
func void() error {
	return forebay.Errorf(forebay.CodeLeaseLost, "sqs", "the receipt is void: it was settled, or its lease has ended")
}

// hold takes a live lease for an extension; letGo gives it back.
func (t *leases) hold(r forebay.Receipt, now time.Time) *lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.all[r]
	if l == nil || l.settling || !now.Before(l.deadline) {
		return nil
	}
	l.busy++
	return l
}

// letGo ends an extension: done set the deadline, lost ended the lease.
func (t *leases) letGo(l *lease, began, deadline time.Time, done, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if done && !began.Before(l.set) {
		l.set, l.deadline = began, deadline
	}
	if lost {
		delete(t.all, l.receipt)
	}
	if l.busy--; l.busy == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// claim takes a live lease for its verdict. Extensions that are on their way are
// waited for first: one that arrives after the verdict would undo it. wait is then
// closed when to look again.
func (t *leases) claim(r forebay.Receipt, now time.Time) (l *lease, wait <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l = t.all[r]
	if l == nil || l.settling || !now.Before(l.deadline) {
		return nil, nil
	}
	if l.busy > 0 {
		if l.idle == nil {
			l.idle = make(chan struct{})
		}
		return nil, l.idle
	}
	l.settling = true
	return l, nil
}

// unclaim makes a lease live again whose verdict was not done.
func (t *leases) unclaim(l *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.settling = false
}

// drop ends a lease.
func (t *leases) drop(l *lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, l.receipt)
}

func (t *leases) until(l *lease) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return l.deadline
}

// live lists what nobody has settled.
func (t *leases) live() []*lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	var out []*lease
	for _, l := range t.all {
		if !l.settling && now.Before(l.deadline) {
			out = append(out, l)
		}
	}
	return out
}

// doomed remembers messages whose ack SQS never confirmed: done work that may come
// again. It is bounded; the oldest are forgotten first, and then work is repeated.
type doomed struct {
	mu    sync.Mutex
	ids   map[string]struct{}
	order []string
}

const maxDoomed = 100_000

func newDoomed() *doomed { return &doomed{ids: make(map[string]struct{})} }

func (d *doomed) add(messageID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.ids[messageID]; known {
		return
	}
	d.ids[messageID] = struct{}{}
	d.order = append(d.order, messageID)
	for len(d.order) > maxDoomed {
		delete(d.ids, d.order[0])
		d.order = d.order[1:]
	}
}

// remove forgets one; its place in the order is dropped when its turn comes.
func (d *doomed) remove(messageID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ids, messageID)
	if len(d.ids) == 0 {
		d.order = nil
	}
}

func (d *doomed) has(messageID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.ids[messageID]
	return known
}
