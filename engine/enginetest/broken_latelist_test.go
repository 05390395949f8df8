package enginetest

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// lateFaults are the faults of leases, late receipts and looks, and the cases that
// must see each.
var lateFaults = []lateFault{
	{"locks a group until the whole batch has ended", locksWhole, true, []string{"group/each of a batch has a lease of its own", "group/extending one hides all that come after it"}},
	{"ends the leases of a whole group", endsAll, false, []string{"group/an ended lease gives back just that one"}},
	{"gives the hand-out of an ended lease back", func() *lateBroken {
		return &lateBroken{extend: func(m *Model, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
			if lease > 0 {
				return m.Extend(ctx, rs, lease)
			}
			ss := make([]forebay.Settlement, len(rs))
			for i, r := range rs {
				ss[i] = forebay.Settlement{Receipt: r, Verdict: forebay.Release}
			}
			return m.Settle(ctx, ss)
		}}
	}, true, []string{"lease/ended by its consumer, the hand-out counts"}},
	{"wakes nobody", quietly, false, []string{"lease/its end wakes a receiver", "late/ack lets a group go on"}},

	{"does not keep leases", takes(notKept), true, []string{
		"kept/live after a reopening, with the same receipts", "kept/they end on time, and the hand-out counts", "kept/extended ones keep their new end",
		"kept/others of the queue are freed", "kept/what was settled stays settled", "kept/given back after a reopening", "kept/limits count them",
		"kept/a job stays active, and stays asked to stop", "kept/many, over many reopenings",
		"kept group/locked after a reopening", "kept group/the last of a batch comes back first", "kept group/the first of a batch comes back first",
		"kept group/one in the middle is held", "kept group/many, given back in any order",
	}},
	{"keeps all leases", takes(func(r *engine.Receive) { r.Kept = true }), true, []string{"kept/others of the queue are freed"}},
	{"kept leases never end", takes(func(r *engine.Receive) {
		if r.Kept {
			r.Lease = engine.MaxLease
		}
	}), true, []string{"kept/as any other lease while nothing ends", "kept/they end on time, and the hand-out counts"}},
	{"begins the time of kept leases anew", reopens(func(_ *oracle, e *entry, now time.Time) {
		if e.kept && e.receipt != "" {
			e.until = now.Add(20 * time.Second)
		}
	}), true, []string{"kept/they end on time, and the hand-out counts", "kept/extended ones keep their new end"}},
	{"frees no lease that ended while it was closed", reopens(func(_ *oracle, e *entry, now time.Time) {
		if e.kept && e.receipt == "" && e.deliveries > 0 {
			e.due = now.Add(time.Hour)
		}
	}), true, []string{"kept/one that ended while nobody was there"}},
	{"gives kept leases other receipts", reopens(func(_ *oracle, e *entry, _ time.Time) {
		if e.receipt != "" {
			e.receipt += "'"
		}
	}), true, []string{"kept/live after a reopening, with the same receipts"}},
	{"keeps leases that were settled", reopens(func(o *oracle, e *entry, now time.Time) {
		for r, owner := range o.owners {
			if owner == e && e.receipt == "" {
				e.receipt, e.until = r, now.Add(time.Minute)
			}
		}
	}), false, []string{"kept/what was settled stays settled"}},
	{"loses what a kept lease holds", reopens(func(o *oracle, e *entry, now time.Time) {
		if e.active(now) && e.deliveries > 0 && e.msg.Group == "" && e.msg.Job == nil {
			o.remove(e)
		}
	}), true, []string{"kept/given back after a reopening", "kept/many, over many reopenings"}},
	{"forgets limit keys of kept leases", reopens(func(_ *oracle, e *entry, now time.Time) {
		if e.active(now) {
			e.msg.LimitKey = ""
		}
	}), false, []string{"kept/limits count them"}},
	{"forgets who is to stop", reopens(func(_ *oracle, e *entry, _ time.Time) { e.stop = false }), false,
		[]string{"kept/a job stays active, and stays asked to stop"}},
	{"forgets groups of kept leases", reopens(func(_ *oracle, e *entry, now time.Time) {
		if e.active(now) {
			e.msg.Group = ""
		}
	}), false, []string{"kept group/locked after a reopening", "kept group/the first of a batch comes back first", "kept group/one in the middle is held"}},
	{"puts what comes back behind its group", reopens(func(o *oracle, e *entry, now time.Time) {
		if e.active(now) {
			o.seq++
			e.seq = o.seq
		}
	}), false, []string{"kept group/the last of a batch comes back first"}},
	{"puts what comes back before its group", reopens(func(_ *oracle, e *entry, now time.Time) {
		if e.active(now) {
			e.seq = -e.seq
		}
	}), false, []string{"kept group/the last of a batch waits for those before it"}},

	{"calls all waiting", func() *lateBroken {
		return &lateBroken{late: func(_ forebay.Receipt, s *engine.LateState) { s.Where = engine.WhereWaiting }}
	}, true, []string{"late/tells where a message is, by any receipt", "late/what is no receipt"}},
	{"takes anything for a receipt", func() *lateBroken {
		return &lateBroken{late: func(_ forebay.Receipt, s *engine.LateState) {
			if s.Err != nil {
				*s = engine.LateState{Where: engine.WhereGone}
			}
		}}
	}, false, []string{"late/what is no receipt"}},
	{"acks nothing late", acksIf(func(*Model, forebay.Receipt, *entry, time.Time) bool { return false }), true, []string{"late/ack of what waits"}},
	{"acks by live receipts only", acksIf(func(_ *Model, r forebay.Receipt, e *entry, now time.Time) bool {
		return e.receipt == r && e.active(now)
	}), true, []string{"late/ack of what waits", "late/ack of what somebody else holds"}},
	{"counts twice what is acked twice", func() *lateBroken {
		return &lateBroken{ackLate: func(m *Model, ctx context.Context, rs []forebay.Receipt) ([]error, error) {
			errs, err := m.AckLate(ctx, rs)
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, r := range rs {
				if e := m.o.owners[r]; e != nil {
					m.o.count(e.msg.Queue).Completed++
				}
			}
			return errs, err
		}}
	}, true, []string{"late/side by side with settle"}},
	{"acks nothing that is delayed", acksIf(func(_ *Model, _ forebay.Receipt, e *entry, now time.Time) bool { return !e.delayed(now) }), false,
		[]string{"late/ack of what is delayed"}},
	{"counts nothing that is acked late", acksIf(func(m *Model, _ forebay.Receipt, e *entry, _ time.Time) bool {
		m.o.remove(e)
		return false
	}), true, []string{"late/ack of what waits", "late/jobs"}},
	{"finds messages by id", byID, false, []string{"late/never another message"}},
	{"extends by live receipts only", extendsIf(func(r forebay.Receipt, e *entry, _ time.Duration) bool { return e.receipt == r }), true,
		[]string{"late/extend sets the current lease"}},
	{"ends no lease late", extendsIf(func(_ forebay.Receipt, _ *entry, lease time.Duration) bool { return lease > 0 }), true,
		[]string{"late/extend by nothing ends the current lease"}},
	{"ends what waits, and nothing active", func() *lateBroken {
		return &lateBroken{endActive: func(m *Model, ctx context.Context, queue string) (int64, error) { return m.Purge(ctx, queue) }}
	}, false, []string{"late/ends what is active"}},
	{"has no bounds", func() *lateBroken {
		return &lateBroken{extendLate: func(m *Model, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
			return m.ExtendLate(ctx, rs, min(max(lease, engine.MinLease), engine.MaxLease))
		}}
	}, false, []string{"late/bounds"}},
	{"forgets receipts", func() *lateBroken {
		return &lateBroken{reopened: func(m *Model, _ time.Time) { clear(m.o.owners) }}
	}, false, []string{"late/receipts lead there after a reopening"}},

	{"shows all as waiting", peeks(func(p *engine.PeekPage) {
		for i := range p.Messages {
			p.Messages[i].Where = engine.WhereWaiting
		}
	}), false, []string{"peek/each as it is, without a hand-out", "peek/after a reopening"}},
	{"looks by handing out", func() *lateBroken {
		return &lateBroken{peek: func(m *Model, ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
			for _, e := range m.o.entries {
				e.deliveries++
			}
			return m.Peek(ctx, q)
		}}
	}, false, []string{"peek/each as it is, without a hand-out"}},
	{"shows a part of each page", peeks(func(p *engine.PeekPage) { p.Messages = p.Messages[:len(p.Messages)*9/10] }), false,
		[]string{"peek/page by page, each once"}},
	{"shows the first page again", func() *lateBroken {
		return &lateBroken{peek: func(m *Model, ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
			q.After = ""
			return m.Peek(ctx, q)
		}}
	}, false, []string{"peek/page by page, each once", "peek/bounds"}},
	{"shows no headers", peeks(func(p *engine.PeekPage) {
		for i := range p.Messages {
			p.Messages[i].Message.Headers = nil
		}
	}), false, []string{"peek/whole messages of one queue"}},
	{"pages by number", byOffset, false, []string{"peek/what goes meanwhile"}},
}
