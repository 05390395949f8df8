package sqs

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Extend sets leases to end lease from now, as package engine says, rounded up to
// seconds. No lease reaches beyond twelve hours from its receipt.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	if lease != 0 && lease < engine.MinLease || lease > engine.MaxLease || len(receipts) > engine.MaxReceive {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sqs: extend", "%d leases by %s; up to %d, and 0 or %s to %s are allowed",
			len(receipts), lease, engine.MaxReceive, engine.MinLease, engine.MaxLease)
	}
	call, leave, err := e.enter(ctx, e.base)
	if err != nil {
		return nil, err
	}
	defer leave()
	began := time.Now()
	errs := make([]error, len(receipts))
	some, items := make([]*held, 0, len(receipts)), make([]*handleItem, 0, len(receipts))
	for i, r := range receipts {
		l := e.leases.hold(r, began)
		if l == nil {
			errs[i] = void()
			continue
		}
		some = append(some, &held{l, i})
		whole := seconds(min(lease, l.end12().Sub(began).Truncate(time.Second)))
		items = append(items, &handleItem{q: l.q, handle: l.handle, seconds: whole, deadline: e.leases.until(l)})
	}
	ended := e.handles(call, items)
	for i, h := range some {
		err := items[i].outcome()
		lost := forebay.CodeOf(err) == forebay.CodeLeaseLost
		if lost {
			e.count.leaseLost.Add(1)
		}
		until := began.Add(time.Duration(items[i].seconds) * time.Second)
		e.leases.letGo(h.lease, began, until, err == nil, lost || err == nil && lease == 0)
		errs[h.at] = err
	}
	if ended != nil {
		return nil, e.ended(ctx)
	}
	return errs, nil
}

// held is a lease and its place in a call.
type held struct {
	*lease
	at int
}
