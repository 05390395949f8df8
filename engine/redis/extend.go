package redis

import (
	"context"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// endHeld ends the leases that are left, at the close: the last first, since each then
// waits before the others.
func (e *Engine) endHeld() error {
	rs := e.held.Left()
	slices.Reverse(rs)
	for part := range slices.Chunk(rs, settlesAtOnce) {
		args := []any{0, 0}
		for _, r := range part {
			if token, queue, id, ok := readReceipt(r); ok {
				args = append(args, queue, id, token)
			}
		}
		args[1] = len(args[2:]) / 3
		if _, err := e.run(context.Background(), "extend", args...); err != nil {
			return fail(forebay.CodeUnavailable, "%d leases could not be given back; their messages come again when their leases end: %w", len(rs), err)
		}
	}
	return nil
}

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
	errs := make([]error, 0, len(receipts))
	for len(receipts) > 0 {
		n := min(len(receipts), engine.MaxReceive/5)
		part, err := e.extend(ctx, receipts[:n], lease)
		if err != nil {
			return nil, err
		}
		errs, receipts = append(errs, part...), receipts[n:]
	}
	return errs, nil
}

func (e *Engine) extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	args, of, errs := []any{ceilMillis(lease), 0}, []int(nil), make([]error, len(receipts))
	for i, r := range receipts {
		token, queue, id, ok := readReceipt(r)
		if !ok {
			errs[i] = lost(r)
			continue
		}
		args, of = append(args, queue, id, token), append(of, i)
	}
	args[1] = len(of)
	v, err := e.run(ctx, "extend", args...)
	if err != nil {
		return nil, err
	}
	for n, i := range of {
		errs[i] = kept(receipts[i], number(v.out[n]))
		if lease == 0 || number(v.out[n]) == 0 {
			e.held.Drop(receipts[i])
		} else {
			e.held.Extend(receipts[i], lease)
		}
	}
	return errs, nil
}

// kept is the answer about a delivery: 0 it has ended, 1 done, 2 done and it is to stop.
func kept(r forebay.Receipt, answer int64) error {
	switch answer {
	case 0:
		return lost(r)
	case 2:
		return fail(forebay.CodeCancelled, "the job is to stop: somebody cancelled it")
	}
	return nil
}
