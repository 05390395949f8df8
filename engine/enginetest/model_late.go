package enginetest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

var (
	_ engine.Late   = (*Model)(nil)
	_ engine.Peeker = (*Model)(nil)
)

// late finds the message of a receipt; nil: it is gone. False: that is no receipt.
func (o *oracle) late(r forebay.Receipt) (*entry, bool) {
	e, ok := o.owners[r]
	if ok && !slices.Contains(o.entries, e) {
		e = nil
	}
	return e, ok
}

func (e *entry) where(now time.Time) engine.Where {
	switch {
	case e == nil:
		return engine.WhereGone
	case e.active(now):
		return engine.WhereActive
	case e.delayed(now):
		return engine.WhereDelayed
	}
	return engine.WhereWaiting
}

func (e *Model) Late(ctx context.Context, receipts []forebay.Receipt) ([]engine.LateState, error) {
	return items(ctx, e, receipts, engine.MaxReceive, func(r forebay.Receipt, now time.Time) engine.LateState {
		m, ok := e.o.late(r)
		if !ok {
			return engine.LateState{Err: noReceipt(r)}
		}
		s := engine.LateState{Where: m.where(now)}
		if m != nil {
			s.Queue = m.msg.Queue
		}
		return s
	})
}

func noReceipt(r forebay.Receipt) error {
	return fail(forebay.CodeInvalid, "%q is no receipt", r)
}

func (e *Model) AckLate(ctx context.Context, receipts []forebay.Receipt) ([]error, error) {
	return items(ctx, e, receipts, engine.MaxReceive, func(r forebay.Receipt, now time.Time) error {
		m, ok := e.o.late(r)
		if !ok {
			return noReceipt(r)
		}
		return e.o.ackLate(m, now)
	})
}

func (e *Model) EndActive(ctx context.Context, queue string) (ended int64, err error) {
	now, err := e.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer e.mu.Unlock()
	for _, m := range slices.Clone(e.o.entries) {
		if m.msg.Queue == queue && m.active(now) && !m.job() {
			e.o.settle(m, forebay.Settlement{Verdict: forebay.Cancelled}, now)
			ended++
		}
	}
	return ended, nil
}

// ackLate removes a message that may be gone already.
func (o *oracle) ackLate(m *entry, now time.Time) error {
	switch {
	case m == nil:
	case m.active(now):
		o.settle(m, forebay.Settlement{Verdict: forebay.Ack}, now)
	case m.job():
		return fail(forebay.CodeConflict, "job %q is not active", m.msg.ID)
	default:
		o.settleMessage(m, forebay.Settlement{Verdict: forebay.Ack}, now)
	}
	return nil
}

func (e *Model) ExtendLate(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	if err := checkExtend(lease); err != nil {
		return nil, err
	}
	return items(ctx, e, receipts, engine.MaxReceive, func(r forebay.Receipt, now time.Time) error {
		m, ok := e.o.late(r)
		if !ok {
			return noReceipt(r)
		}
		return m.extendLate(lease, now)
	})
}

func (e *entry) extendLate(lease time.Duration, now time.Time) error {
	switch {
	case e == nil:
		return fail(forebay.CodeNotFound, "the message is gone")
	case !e.active(now):
		return nil
	}
	e.until = now.Add(lease)
	return e.stopping()
}

func (e *Model) Peek(ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
	after, err := strconv.ParseInt(cmp.Or(q.After, "0"), 10, 64)
	if err != nil || q.Limit < 0 || q.Limit > engine.MaxPeek || engine.CheckQueue(q.Queue) != nil {
		return engine.PeekPage{}, fail(forebay.CodeInvalid, "peek %+v is out of bounds", q)
	}
	now, err := e.enter(ctx)
	if err != nil {
		return engine.PeekPage{}, err
	}
	defer e.mu.Unlock()
	var page engine.PeekPage
	for _, m := range e.o.entries {
		if m.msg.Queue != q.Queue || m.seq <= after {
			continue
		}
		if len(page.Messages) == cmp.Or(q.Limit, engine.DefaultPeek) {
			page.Next = strconv.FormatInt(after, 10)
			break
		}
		after = m.seq
		page.Messages = append(page.Messages, m.peeked(now))
	}
	return page, nil
}

// peeked tells of a message as it is.
func (e *entry) peeked(now time.Time) engine.Peeked {
	p := engine.Peeked{Message: e.msg, Where: e.where(now), Deliveries: e.deliveries, Attempts: e.attempts, SentAt: e.sentAt}
	switch p.Where {
	case engine.WhereActive:
		p.LeaseUntil = e.until
	case engine.WhereDelayed:
		p.NotBefore = e.freeAt()
	}
	return p
}
