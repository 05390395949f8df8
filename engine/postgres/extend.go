package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// Extend sets leases; see engine.Engine.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	if lease != 0 {
		if err := checkLease(lease); err != nil {
			return nil, err
		}
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return e.extend(ctx, receipts, lease)
}

func (e *Engine) extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	errs := make([]error, 0, len(receipts))
	for part := range slices.Chunk(receipts, atOnce) {
		some, err := e.extendSome(ctx, part, lease)
		if err != nil {
			return nil, err
		}
		errs = append(errs, some...)
	}
	return errs, nil
}

func (e *Engine) extendSome(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	p, seqs, queues, read := plan{lazy: lease > 0}, []int64(nil), []int32(nil), make([]receipt, len(receipts))
	for i, r := range receipts {
		one, ok := readReceipt(r)
		if !ok {
			continue
		}
		if read[i] = one; one.special && lease == 0 {
			p.alone = append(p.alone, one.queue)
		}
		seqs, queues = append(seqs, one.seq), append(queues, one.queue)
	}
	errs := make([]error, len(receipts))
	if err := e.queues.nameOf(ctx, e, queues); err != nil {
		return nil, err
	}
	err := e.do(ctx, p, func(ctx context.Context, w *work) error {
		if err := w.bySeq(ctx, seqs); err != nil {
			return err
		}
		for i, r := range receipts {
			errs[i] = w.extend(r, read[i], lease)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, r := range receipts {
		if lease == 0 || forebay.CodeOf(errs[i]) == forebay.CodeLeaseLost {
			e.held.drop(r)
		} else {
			e.held.extend(r, lease)
		}
	}
	return errs, nil
}

func (w *work) extend(r forebay.Receipt, read receipt, lease time.Duration) error {
	it := w.items[read.seq]
	if it == nil || it.token != read.token || !w.holds(it) {
		return lost(r)
	}
	stop := it.extra.Stop
	if lease == 0 {
		w.lapse(it)
	} else {
		it.until, it.changed = w.now+ceilMicros(lease), true
		w.soon(it.until)
	}
	if stop != nil {
		return toStop(*stop)
	}
	return nil
}

func toStop(reason string) error {
	return fail(forebay.CodeCancelled, "the job is to stop: %s", reason)
}

// hold is one lease: its number in the order of handing out, and its end.
type hold struct {
	n   int64
	end time.Time
}

// held are the leases that end with the engine. The store knows them too: here is only
// which of them are this process's.
type held struct {
	mu    sync.Mutex // guards all below
	all   map[forebay.Receipt]hold
	last  int64
	clean int // how many there may be before those that have ended are dropped
}

func (h *held) add(ds []forebay.Delivery, lease time.Duration) {
	if len(ds) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = make(map[forebay.Receipt]hold)
	}
	now := time.Now()
	for _, d := range ds {
		h.last++
		h.all[d.Receipt] = hold{h.last, now.Add(lease)}
	}
	if len(h.all) > h.clean {
		maps.DeleteFunc(h.all, func(_ forebay.Receipt, o hold) bool { return o.end.Before(now) })
		h.clean = max(1024, 2*len(h.all))
	}
}

func (h *held) extend(r forebay.Receipt, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o, ok := h.all[r]; ok {
		h.all[r] = hold{o.n, time.Now().Add(lease)}
	}
}

func (h *held) drop(r forebay.Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, r)
}

// endHeld ends the leases that are left, at the close.
func (e *Engine) endHeld() error {
	e.held.mu.Lock()
	all := slices.SortedFunc(maps.Keys(e.held.all), func(a, b forebay.Receipt) int { return cmp.Compare(e.held.all[a].n, e.held.all[b].n) })
	e.held.mu.Unlock()
	_, err := e.extend(context.Background(), all, 0)
	return err
}
