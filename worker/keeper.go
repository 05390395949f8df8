package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
)

// keeper renews the leases of all items at hand: many in one call, those that
// end first in front, at a third of the lease, so that two calls may fail.
type keeper struct {
	b     *broker.Broker
	lease time.Duration
	lost  func(forebay.Delivery)
	wake  chan struct{}

	stopWork func(*work, error) // ends a handler that runs
	refuse   func(*item, error) // settles what has not begun

	health health // of the calls; owned by run

	mu     sync.Mutex
	held   map[*item]struct{}
	next   time.Time     // when run looks again by itself; zero: only when woken
	flight chan struct{} // closed when the call under way has been answered; nil: none
}

func newKeeper(w *Worker) *keeper {
	k := &keeper{
		b: w.b, lease: w.cfg.Lease, lost: w.cfg.Observe.LeaseLost,
		wake: make(chan struct{}, 1), held: make(map[*item]struct{}),
		health: health{log: w.log, what: "renewing leases"},
	}
	if k.lost == nil {
		k.lost = func(forebay.Delivery) {}
	}
	return k
}

// hold begins to renew items, those too that stop has let go.
func (k *keeper) hold(items []*item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	early := false
	for _, it := range items {
		if it.lost.Load() {
			continue
		}
		k.plan(it)
		k.held[it] = struct{}{}
		early = early || k.next.IsZero() || it.due.Before(k.next)
	}
	if early {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// plan sets when an item is renewed: so that two thirds of its lease are left.
// The jitter, downwards only, keeps many workers from calling together.
func (k *keeper) plan(it *item) {
	left := k.lease * 2 / 3
	it.due = it.deadline.Add(-left - rand.N(k.lease/12))
}

// begin gives a work its items, without those whose leases are lost or that have
// their verdict.
func (k *keeper) begin(w *work) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, it := range w.all {
		if it.lost.Load() || it.settled {
			w.unbegun = append(w.unbegun, it)
			continue
		}
		it.work = w
		w.items = append(w.items, it)
	}
	w.live = len(w.items)
}

// stop ends the renewal of items. When it returns, no call that is under way
// names one of them: an extension that arrives after the verdict would, on some
// engines, undo it.
func (k *keeper) stop(items []*item) {
	k.mu.Lock()
	var flight chan struct{}
	for _, it := range items {
		delete(k.held, it)
		if it.extending {
			flight = k.flight
		}
	}
	k.mu.Unlock()
	if flight != nil {
		<-flight
	}
}

// run renews until quit is closed. Its calls have deadlines of their own.
func (k *keeper) run(quit <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-quit:
			return
		case <-k.wake:
		case <-timer.C:
		}
		if due := k.collect(); len(due) > 0 {
			k.extend(due)
		}
		if wait, ok := k.untilNext(); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// collect takes what is due, or nearly, and marks it as under way.
func (k *keeper) collect() []*item {
	k.mu.Lock()
	defer k.mu.Unlock()
	soon := time.Now().Add(k.lease / 12)
	var due []*item
	for it := range k.held {
		if !it.due.After(soon) {
			it.extending = true
			due = append(due, it)
		}
	}
	if len(due) > 0 {
		k.flight = make(chan struct{})
		slices.SortFunc(due, func(a, b *item) int { return a.deadline.Compare(b.deadline) })
	}
	return due
}

// extendTimeout bounds one call, which verdicts of the same items wait for.
const extendTimeout = 10 * time.Second

// margin is how much before its end a lease that cannot be renewed is given up,
// so that the handler stops before another one begins.
func (k *keeper) margin() time.Duration { return k.lease / 50 }

func (k *keeper) untilNext() (time.Duration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = time.Time{}
	for it := range k.held {
		if k.next.IsZero() || it.due.Before(k.next) {
			k.next = it.due
		}
	}
	return max(time.Until(k.next), k.lease/100), !k.next.IsZero()
}

func (k *keeper) extend(due []*item) {
	receipts := make([]forebay.Receipt, len(due))
	for i, it := range due {
		receipts[i] = it.d.Receipt
	}
	before := time.Now() // the lease counts from the call, at the earliest
	left := due[0].deadline.Sub(before) - k.margin()
	ctx, cancel := context.WithTimeout(context.Background(), min(max(left, k.margin()), k.lease/3, extendTimeout))
	errs, err := k.b.Extend(ctx, receipts, k.lease)
	cancel()
	if err != nil {
		k.health.failed(err)
	} else {
		k.health.worked()
	}
	lost, cancelled := k.answer(due, before, errs, err)
	for _, it := range lost {
		k.lost(it.d)
	}
	if len(cancelled) > 0 {
		k.end(func(it *item) bool { return slices.Contains(cancelled, it) }, forebay.ErrCancelled)
	}
}

// answer books the answers of one call and returns the items that are lost, and
// those whose jobs are to stop.
func (k *keeper) answer(due []*item, before time.Time, errs []error, err error) (lost, cancelled []*item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for i, it := range due {
		it.extending = false
		e := err
		if e == nil {
			e = errs[i]
		}
		_, held := k.held[it]
		switch {
		case e == nil || forebay.CodeOf(e) == forebay.CodeCancelled:
			it.deadline = before.Add(k.lease)
			k.plan(it)
			if e != nil {
				cancelled = append(cancelled, it)
			}
		case !held:
			// It is being settled: the engine will say whether it is still ours.
		case forebay.CodeOf(e) == forebay.CodeLeaseLost, !now.Before(it.deadline.Add(-k.margin())):
			k.lose(it)
			lost = append(lost, it)
		default:
			it.due = now.Add(min(k.lease/12, it.deadline.Sub(now)-k.margin()))
		}
	}
	close(k.flight)
	k.flight = nil
	return lost, cancelled
}

// lose ends the handler's context, if nothing of its work is still ours.
func (k *keeper) lose(it *item) {
	it.lost.Store(true)
	delete(k.held, it)
	if w := it.work; w != nil {
		if w.live--; w.live == 0 {
			w.cancel(forebay.ErrLeaseLost)
		}
	}
}
