package ledger

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Receiving in numbers.
const (
	poll        = 20 * time.Second // one wait for notices, and one for a job to begin with them
	noticeLease = 30 * time.Second // at least; longer than poll
)

// Receive waits for notices, and begins as many jobs by the ledger. A notice may come
// before its job can begin, since a limit holds it or another notice began it; then the
// wait goes on at the ledger, which knows at once when one can.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	q := e.queues[r.Queue]
	if q == nil || !sound(&r) {
		return e.rows.Receive(ctx, r)
	}
	end := time.Now().Add(r.Wait)
	for {
		if _, err := e.fill(ctx, q); err != nil {
			return nil, err
		}
		left := max(0, time.Until(end))
		began := time.Now()
		notices, err := e.take(ctx, q, &r, min(left, poll))
		if err != nil {
			return nil, err
		}
		if len(notices) == 0 && left >= time.Second {
			q.lost(began)
		}
		if len(notices) > 0 {
			ds, err := e.begin(ctx, q, r, notices, max(0, time.Until(end)))
			if len(ds) > 0 || err != nil {
				return ds, err
			}
		}
		if !time.Now().Before(end) {
			return nil, nil
		}
	}
}

// sound tells whether a call is not to be refused. Where it is, the ledger's engine says why.
func sound(r *engine.Receive) bool {
	return r.Max >= 1 && r.Max <= engine.MaxReceive && r.Wait >= 0 && r.Wait <= engine.MaxWait &&
		(r.Lease == 0 || r.Lease >= engine.MinLease && r.Lease <= engine.MaxLease)
}

// take receives notices. What else comes is made a job, and is notice of it.
func (e *Engine) take(ctx context.Context, q *queue, r *engine.Receive, wait time.Duration) ([]forebay.Receipt, error) {
	ds, err := e.remote.Receive(ctx, engine.Receive{Queue: q.name, Max: r.Max, Wait: wait, Lease: max(r.Lease, noticeLease)})
	if err != nil {
		return nil, err
	}
	notices := make([]forebay.Receipt, 0, len(ds))
	var others []forebay.Delivery
	for _, d := range ds {
		if d.Kind == noticeKind {
			notices = append(notices, d.Receipt)
		} else {
			others = append(others, d)
		}
	}
	if len(others) == 0 {
		return notices, nil
	}
	return append(notices, e.adopt(ctx, q, others)...), nil
}

// begin leases jobs for notices. Those that are left over go.
func (e *Engine) begin(ctx context.Context, q *queue, r engine.Receive, notices []forebay.Receipt, left time.Duration) ([]forebay.Delivery, error) {
	r.Max, r.Wait = len(notices), min(left, poll)
	ds, err := e.rows.Receive(ctx, r)
	e.held.add(q, ds, notices[:len(ds)])
	q.begun(int64(len(notices)))
	e.later(chore{receipts: notices[len(ds):]})
	q.ring() // what came meanwhile was counted against these notices, and may need its own
	return e.fit(ctx, ds), err
}
