package ledger

import (
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// held are the notices of jobs that are worked, by the receipts of the jobs.
type held struct {
	mu    sync.Mutex
	all   map[forebay.Receipt]*holding
	swept time.Time
}

type holding struct {
	q      *queue
	notice forebay.Receipt
	until  time.Time // when the lease of the job ends
}

func newHeld() held { return held{all: make(map[forebay.Receipt]*holding)} }

// add notes with which notices jobs were begun. Those whose lease has ended leave.
func (h *held) add(q *queue, ds []forebay.Delivery, notices []forebay.Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.swept) > time.Second {
		h.swept = now
		for r, one := range h.all {
			if one.until.Before(now) {
				delete(h.all, r)
			}
		}
	}
	for i, notice := range notices {
		h.all[ds[i].Receipt] = &holding{q, notice, ds[i].LeaseUntil}
	}
}

func (h *held) extend(r forebay.Receipt, until time.Time) *holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.all[r]
	if one != nil {
		one.until = until
	}
	return one
}

func (h *held) take(r forebay.Receipt) *holding {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.all[r]
	delete(h.all, r)
	return one
}
