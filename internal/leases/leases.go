// Package leases remembers the leases that one process has and that end with it.
//
// It promises the receipts of those that are left, in the order in which they were handed
// out, and that those which have ended by themselves take no memory for long.
//
// It refuses to decide anything: the store, which several processes share, knows all leases
// and whether they hold. Here is only which of them are this process's.
package leases

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// Held are the leases of a process. The zero value has none; it is safe for concurrent use.
type Held struct {
	mu    sync.Mutex // guards all below
	all   map[forebay.Receipt]lease
	last  int64
	clean int // how many there may be before those that have ended are dropped
}

// lease is its number in the order of handing out, and its end.
type lease struct {
	n   int64
	end time.Time
}

// keepsAtLeast is how many there may be before anybody looks which have ended.
const keepsAtLeast = 1024

// Add notes what was handed out, in its order, for so long.
func (h *Held) Add(ds []forebay.Delivery, d time.Duration) {
	if len(ds) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all, h.clean = make(map[forebay.Receipt]lease), keepsAtLeast
	}
	now := time.Now()
	for _, one := range ds {
		h.last++
		h.all[one.Receipt] = lease{h.last, now.Add(d)}
	}
	if len(h.all) > h.clean {
		maps.DeleteFunc(h.all, func(_ forebay.Receipt, l lease) bool { return l.end.Before(now) })
		h.clean = max(keepsAtLeast, 2*len(h.all))
	}
}

// Extend sets the end of a lease that is held; it keeps its place in the order.
func (h *Held) Extend(r forebay.Receipt, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l, ok := h.all[r]; ok {
		h.all[r] = lease{l.n, time.Now().Add(d)}
	}
}

// Drop forgets one that has ended.
func (h *Held) Drop(r forebay.Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, r)
}

// Left are the receipts of those that are held, first the one that was handed out first.
func (h *Held) Left() []forebay.Receipt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.all), func(a, b forebay.Receipt) int { return cmp.Compare(h.all[a].n, h.all[b].n) })
}
