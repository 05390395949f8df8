package postgres

import (
	"context"
	"slices"
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
			e.held.Drop(r)
		} else {
			e.held.Extend(r, lease)
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

// endHeld ends the leases that are left, at the close.
func (e *Engine) endHeld() error {
	left := e.held.Left()
	if _, err := e.extend(context.Background(), left, 0); err != nil {
		return fail(forebay.CodeUnavailable, "%d leases could not be given back; their messages come again when their leases end: %w", len(left), err)
	}
	return nil
}
