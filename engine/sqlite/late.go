package sqlite

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// What receipts of leases that are over are good for: they say where their message
// lies, and a seq is never used twice, so that they never lead to another one. A job
// that was sent to another lane (Change of its priority) is gone from where they lead.

var _ engine.Late = (*Engine)(nil)

// lateTickets reads receipts for a call of Late. What is none has an error.
func (e *Engine) lateTickets(receipts []forebay.Receipt) (at []ticket, errs []error, err error) {
	if len(receipts) > engine.MaxReceive {
		return nil, nil, tooMany("receipts", engine.MaxReceive)
	}
	at, errs = make([]ticket, len(receipts)), make([]error, len(receipts))
	for i, r := range receipts {
		var ok bool
		if at[i], ok = e.sealer.ticket(r); !ok {
			bad := forebay.Errorf(forebay.CodeInvalid, "sqlite", "that is no receipt of this store")
			bad.Field = "receipt"
			errs[i] = bad
		}
	}
	return at, errs, nil
}

// Late tells where messages are; see engine.Late.
func (e *Engine) Late(ctx context.Context, receipts []forebay.Receipt) ([]engine.LateState, error) {
	at, errs, err := e.lateTickets(receipts)
	if err != nil {
		return nil, err
	}
	return ask(ctx, e, func(t *tx) ([]engine.LateState, error) {
		states := make([]engine.LateState, len(at))
		for i := range at {
			if states[i].Err = errs[i]; errs[i] != nil {
				continue
			}
			f, err := t.find(at[i])
			if err != nil {
				return nil, err
			}
			if states[i].Where = f.where(t.now); f.q != nil {
				states[i].Queue = f.q.name
			}
		}
		return states, nil
	})
}

// stray is the message of a ticket, wherever it is now.
type stray struct {
	q   *queue // nil: it is gone
	ls  *lease // nil: it is not leased
	it  *item
	ref ref  // as it waits, where it is not leased
	job bool // there are jobs in its block
}

func (f *stray) where(now int64) engine.Where {
	switch {
	case f.q == nil:
		return engine.WhereGone
	case f.it != nil:
		return engine.WhereActive
	case dueAt(f.ref.due, f.ref.sentAt, f.ref.deliveries, f.q.hold.span) > now:
		return engine.WhereDelayed
	}
	return engine.WhereWaiting
}

// find looks first at the ticket's own lease, which is live as a rule.
func (t *tx) find(at ticket) (f stray, err error) {
	l := t.l
	if ls, it := l.held(at); it != nil {
		return stray{q: ls.q, ls: ls, it: it}, nil
	}
	stored, err := t.isStored(at.key, at.idx)
	if err != nil || !stored {
		return f, err
	}
	b, err := l.meta(at.key)
	if err != nil || b == nil || at.idx >= b.n {
		return f, err
	}
	f = stray{q: l.queueOf(at.key), ref: ref{key: at.key, idx: at.idx, ord: b.sentAt, sentAt: b.sentAt}, job: b.jobs > 0}
	if ls, it := l.holder(at.key, at.idx); it != nil && it.state == itemLeased {
		f.ls, f.it = ls, it
		return f, nil
	}
	r, err := l.kept(at.key, at.idx)
	if r != nil {
		f.ref = *r
	}
	return f, err
}

// AckLate removes messages, whoever holds them; see engine.Late.
func (e *Engine) AckLate(ctx context.Context, receipts []forebay.Receipt) ([]error, error) {
	at, errs, err := e.lateTickets(receipts)
	if err != nil {
		return nil, err
	}
	o := &ackLate{settle{at: at, refused: errs, errs: make([]error, len(at)), bytes: int64(64 * len(at))}}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

// ackLate is the op of AckLate.
type ackLate struct {
	settle // what it does with those that are leased
}

func (o *ackLate) apply(t *tx) error {
	o.done = o.done[:0]
	copy(o.errs, o.refused)
	for i := range o.at {
		if o.errs[i] != nil {
			continue
		}
		f, err := t.find(o.at[i])
		switch {
		case err != nil:
		case f.it != nil:
			o.errs[i], err = o.end(t, f.ls, f.it, &forebay.Settlement{Verdict: forebay.Ack})
		case f.q != nil:
			o.errs[i], err = f.ackWaiting(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ackWaiting takes a message that waits out of the store.
func (f *stray) ackWaiting(t *tx) (refused, err error) {
	if f.job {
		switch body, _, err := t.l.bodyOf(&f.ref); {
		case err == errUnreadable:
			return forebay.Errorf(forebay.CodeDamaged, "sqlite: ack", "%w", err), nil
		case err != nil:
			return nil, err
		case isJob(body):
			return forebay.Errorf(forebay.CodeConflict, "sqlite: ack", "the job is not active; cancel it"), nil
		}
	}
	t.moved.refs = append(t.moved.refs, leaver{q: f.q, key: f.ref.key, idx: f.ref.idx, state: stCompleted, due: f.ref.due})
	return nil, t.leave(&f.ref)
}

// ExtendLate sets the ends of current leases; see engine.Late.
func (e *Engine) ExtendLate(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	if err := checkExtend(receipts, lease); err != nil {
		return nil, err
	}
	at, errs, err := e.lateTickets(receipts)
	if err != nil {
		return nil, err
	}
	o := &extendLate{extend: extend{at: at, lease: lease, errs: make([]error, len(at))}, refused: errs}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

// extendLate is the op of ExtendLate.
type extendLate struct {
	extend
	refused []error
}

func (o *extendLate) apply(t *tx) error {
	o.was, o.lapses = o.was[:0], o.lapses[:0]
	copy(o.errs, o.refused)
	for i := range o.at {
		if o.errs[i] != nil {
			continue
		}
		f, err := t.find(o.at[i])
		switch {
		case err != nil:
		case f.it != nil:
			o.errs[i], err = o.one(t, f.ls, f.it)
		case f.q == nil:
			o.errs[i] = forebay.Errorf(forebay.CodeNotFound, "sqlite: extend", "the message is gone")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
