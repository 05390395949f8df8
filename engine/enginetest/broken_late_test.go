package enginetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// lateBroken is a model that is broken in what it does with leases, late receipts and
// looks, where a func is set.
type lateBroken struct {
	*Model
	receive    func(m *Model, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error)
	extend     func(m *Model, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error)
	late       func(r forebay.Receipt, s *engine.LateState)
	ackLate    func(m *Model, ctx context.Context, rs []forebay.Receipt) ([]error, error)
	extendLate func(m *Model, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error)
	endActive  func(m *Model, ctx context.Context, queue string) (int64, error)
	peek       func(m *Model, ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error)
	reopened   func(m *Model, now time.Time)
}

func (b *lateBroken) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if b.receive != nil {
		return b.receive(b.Model, ctx, r)
	}
	return b.Model.Receive(ctx, r)
}

func (b *lateBroken) Extend(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
	if b.extend != nil {
		return b.extend(b.Model, ctx, rs, lease)
	}
	return b.Model.Extend(ctx, rs, lease)
}

func (b *lateBroken) Late(ctx context.Context, rs []forebay.Receipt) ([]engine.LateState, error) {
	states, err := b.Model.Late(ctx, rs)
	if b.late != nil {
		for i := range states {
			b.late(rs[i], &states[i])
		}
	}
	return states, err
}

func (b *lateBroken) AckLate(ctx context.Context, rs []forebay.Receipt) ([]error, error) {
	if b.ackLate != nil {
		return b.ackLate(b.Model, ctx, rs)
	}
	return b.Model.AckLate(ctx, rs)
}

func (b *lateBroken) ExtendLate(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
	if b.extendLate != nil {
		return b.extendLate(b.Model, ctx, rs, lease)
	}
	return b.Model.ExtendLate(ctx, rs, lease)
}

func (b *lateBroken) EndActive(ctx context.Context, queue string) (int64, error) {
	if b.endActive != nil {
		return b.endActive(b.Model, ctx, queue)
	}
	return b.Model.EndActive(ctx, queue)
}

func (b *lateBroken) Peek(ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
	if b.peek != nil {
		return b.peek(b.Model, ctx, q)
	}
	return b.Model.Peek(ctx, q)
}

// acksIf acks only what a func allows, and calls the rest done.
func acksIf(allow func(m *Model, r forebay.Receipt, e *entry, now time.Time) bool) func() *lateBroken {
	return func() *lateBroken {
		return &lateBroken{ackLate: func(m *Model, ctx context.Context, rs []forebay.Receipt) ([]error, error) {
			return items(ctx, m, rs, engine.MaxReceive, func(r forebay.Receipt, now time.Time) error {
				e, ok := m.o.late(r)
				if !ok {
					return noReceipt(r)
				}
				if e == nil || !allow(m, r, e, now) {
					return nil
				}
				return m.o.ackLate(e, now)
			})
		}}
	}
}

// extendsIf is acksIf for leases.
func extendsIf(allow func(r forebay.Receipt, e *entry, lease time.Duration) bool) func() *lateBroken {
	return func() *lateBroken {
		return &lateBroken{extendLate: func(m *Model, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
			errs := make([]error, len(rs))
			for i, r := range rs {
				m.mu.Lock()
				e, _ := m.o.late(r)
				skip := e != nil && !allow(r, e, lease)
				m.mu.Unlock()
				if skip {
					continue
				}
				one, err := m.ExtendLate(ctx, []forebay.Receipt{r}, lease)
				if err != nil {
					return nil, err
				}
				errs[i] = one[0]
			}
			return errs, nil
		}}
	}
}

// peeks changes pages on their way out.
func peeks(change func(p *engine.PeekPage)) func() *lateBroken {
	return func() *lateBroken {
		return &lateBroken{peek: func(m *Model, ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
			p, err := m.Peek(ctx, q)
			p.Messages = slices.Clone(p.Messages)
			change(&p)
			return p, err
		}}
	}
}

// takes changes what Receive asks for.
func takes(change func(r *engine.Receive)) func() *lateBroken {
	return func() *lateBroken {
		return &lateBroken{receive: func(m *Model, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			change(&r)
			return m.Receive(ctx, r)
		}}
	}
}

// reopens changes each message after a reopening.
func reopens(change func(o *oracle, e *entry, now time.Time)) func() *lateBroken {
	return func() *lateBroken {
		return &lateBroken{reopened: func(m *Model, now time.Time) {
			for _, e := range slices.Clone(m.o.entries) {
				change(m.o, e, now)
			}
		}}
	}
}

func notKept(r *engine.Receive) { r.Kept = false }

// locksWhole keeps a group locked until nothing of it is leased.
func locksWhole() *lateBroken {
	return &lateBroken{receive: func(m *Model, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
		m.mu.Lock()
		hidden := make(map[*entry]time.Time)
		for _, e := range m.o.entries {
			for _, other := range m.o.entries {
				if e.msg.Group != "" && other.msg.Group == e.msg.Group && other.active(time.Now()) && hidden[e].IsZero() {
					hidden[e] = e.due
					e.due = time.Now().Add(time.Hour)
				}
			}
		}
		m.mu.Unlock()
		ds, err := m.Receive(ctx, r)
		m.mu.Lock()
		defer m.mu.Unlock()
		for e, due := range hidden {
			e.due = due
		}
		return ds, err
	}}
}

// endsAll ends the leases of a whole group with one of them.
func endsAll() *lateBroken {
	return &lateBroken{extend: func(m *Model, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
		m.mu.Lock()
		for _, e := range m.o.entries {
			if lease == 0 && e.receipt != "" && e.msg.Group != "" {
				e.until = time.Now()
			}
		}
		m.mu.Unlock()
		errs, err := m.Extend(ctx, rs, lease)
		if lease == 0 {
			clear(errs)
		}
		return errs, err
	}}
}

// quietly does without waking whoever waits.
func quietly() *lateBroken {
	hush := func(m *Model, do func() ([]error, error)) ([]error, error) {
		m.mu.Lock()
		changed := m.changed
		m.changed = make(chan struct{})
		m.mu.Unlock()
		errs, err := do()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changed = changed
		return errs, err
	}
	return &lateBroken{
		extend: func(m *Model, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
			return hush(m, func() ([]error, error) { return m.Extend(ctx, rs, lease) })
		},
		ackLate: func(m *Model, ctx context.Context, rs []forebay.Receipt) ([]error, error) {
			return hush(m, func() ([]error, error) { return m.AckLate(ctx, rs) })
		},
	}
}

// byOffset pages by how many came before, so that what leaves moves the rest.
func byOffset() *lateBroken {
	return &lateBroken{peek: func(m *Model, ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
		n := len(q.After)
		all, err := m.Peek(ctx, engine.PeekQuery{Queue: q.Queue, Limit: engine.MaxPeek})
		if err != nil {
			return all, err
		}
		all.Messages = all.Messages[min(n, len(all.Messages)):]
		if len(all.Messages) > q.Limit {
			all.Messages = all.Messages[:q.Limit]
			all.Next = string(make([]byte, n+q.Limit))
		}
		return all, nil
	}}
}

// byID finds what an old receipt means by the id of its message.
func byID() *lateBroken {
	return &lateBroken{ackLate: func(m *Model, ctx context.Context, rs []forebay.Receipt) ([]error, error) {
		return items(ctx, m, rs, engine.MaxReceive, func(r forebay.Receipt, now time.Time) error {
			return m.o.ackLate(m.o.entry(m.o.owners[r].msg.ID), now)
		})
	}}
}

func TestSuiteCatchesBrokenLeases(t *testing.T) {
	for _, f := range lateFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range f.fails {
				mustFail(t, f.harness(), name)
			}
		})
	}
}

// TestModelTestCatchesLate plays random steps on some of them.
func TestModelTestCatchesLate(t *testing.T) {
	for _, f := range lateFaults {
		if !f.random {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				if err := f.harness().play(t, randomSteps(seed, modelSteps)); err != nil {
					return
				}
			}
			t.Error("the model test saw nothing")
		})
	}
}

type lateFault struct {
	name   string
	make   func() *lateBroken
	random bool // random steps see it
	fails  []string
}

func (f *lateFault) harness() Harness {
	wrap := func(m *Model) engine.Engine {
		b := f.make()
		b.Model = m
		return b
	}
	return Harness{
		Unit: time.Second,
		Open: func(testing.TB) engine.Engine { return wrap(NewModel()) },
		Reopen: func(_ testing.TB, e engine.Engine) engine.Engine {
			b := e.(*lateBroken)
			m := b.Model.Reopen()
			if b.reopened != nil {
				b.reopened(m, time.Now())
			}
			return wrap(m)
		},
	}
}
