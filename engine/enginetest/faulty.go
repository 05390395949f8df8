package enginetest

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Op names a method of an engine.
type Op string

const (
	OpSend    Op = "send"
	OpReceive Op = "receive"
	OpExtend  Op = "extend"
	OpSettle  Op = "settle"
	OpStats   Op = "stats"
)

// Plan says how a Faulty engine fails. The zero Plan does nothing. Chances go from
// 0 to 1; the same seed and the same calls in the same order give the same faults.
type Plan struct {
	Seed   uint64
	Ops    []Op          // which calls it is about; nil: all
	Before float64       // chance that a call fails and nothing is done
	After  float64       // chance that a call is done and its answer lost: it fails all the same
	Item   float64       // chance, of each item, to be refused and not done (send, extend, settle)
	Deaf   float64       // chance that a waiting Receive misses all wake-ups and looks only when its wait ends
	Delay  time.Duration // longest delay before a call, drawn anew for each
	Err    error         // what faults answer; nil: CodeUnavailable
	Times  int           // most faults; 0: no bound
}

// Faults is an engine that fails on demand. After and Deaf go beyond what the
// contract lets an engine do in this process, but not beyond what a network does.
type Faults struct {
	inner engine.Engine
	plan  Plan

	mu    sync.Mutex // guards rng and count
	rng   *rand.Rand
	count int
}

var _ engine.Engine = (*Faults)(nil)

// Faulty wraps an engine so that it fails as planned.
func Faulty(e engine.Engine, plan Plan) *Faults {
	if plan.Err == nil {
		plan.Err = forebay.Errorf(forebay.CodeUnavailable, "enginetest", "a planned fault")
	}
	return &Faults{inner: e, plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 1))}
}

// Unwrap gives the engine below, for engine.As. Calls of optional abilities do not
// fail.
func (f *Faults) Unwrap() engine.Engine { return f.inner }

// Count tells how many faults there have been.
func (f *Faults) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// strikes draws whether a fault happens.
func (f *Faults) strikes(op Op, chance float64) bool {
	if chance <= 0 || f.plan.Ops != nil && !slices.Contains(f.plan.Ops, op) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan.Times > 0 && f.count >= f.plan.Times || f.rng.Float64() >= chance {
		return false
	}
	f.count++
	return true
}

// before delays a call and perhaps fails it.
func (f *Faults) before(ctx context.Context, op Op) error {
	if f.plan.Delay > 0 && (f.plan.Ops == nil || slices.Contains(f.plan.Ops, op)) {
		f.mu.Lock()
		d := time.Duration(f.rng.Int64N(int64(f.plan.Delay) + 1))
		f.mu.Unlock()
		if err := wait(ctx, d); err != nil {
			return err
		}
	}
	if f.strikes(op, f.plan.Before) {
		return f.plan.Err
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// faultyCall makes a plural call with its planned faults: refused items are held
// back, the rest goes on.
func faultyCall[In, Out any](
	ctx context.Context, f *Faults, op Op, items []In, refused Out, call func([]In) ([]Out, error),
) ([]Out, error) {
	if err := f.before(ctx, op); err != nil {
		return nil, err
	}
	var passed []In
	out, places := make([]Out, len(items)), []int(nil)
	for i, item := range items {
		if f.strikes(op, f.plan.Item) {
			out[i] = refused
			continue
		}
		passed, places = append(passed, item), append(places, i)
	}
	answers, err := call(passed)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		out[place] = answers[i]
	}
	if f.strikes(op, f.plan.After) {
		return nil, f.plan.Err
	}
	return out, nil
}

func (f *Faults) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	return faultyCall(ctx, f, OpSend, msgs, forebay.SendResult{Err: f.plan.Err},
		func(msgs []forebay.Message) ([]forebay.SendResult, error) { return f.inner.Send(ctx, msgs) })
}

func (f *Faults) Extend(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
	return faultyCall(ctx, f, OpExtend, rs, f.plan.Err,
		func(rs []forebay.Receipt) ([]error, error) { return f.inner.Extend(ctx, rs, lease) })
}

func (f *Faults) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	return faultyCall(ctx, f, OpSettle, ss, f.plan.Err,
		func(ss []forebay.Settlement) ([]error, error) { return f.inner.Settle(ctx, ss) })
}

func (f *Faults) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if err := f.before(ctx, OpReceive); err != nil {
		return nil, err
	}
	ds, err := f.receive(ctx, r)
	if err == nil && f.strikes(OpReceive, f.plan.After) {
		return nil, f.plan.Err // what was leased comes back when its lease runs out
	}
	return ds, err
}

func (f *Faults) receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if r.Wait <= 0 || !f.strikes(OpReceive, f.plan.Deaf) {
		return f.inner.Receive(ctx, r)
	}
	deaf := r
	deaf.Wait = 0
	if ds, err := f.inner.Receive(ctx, deaf); err != nil || len(ds) > 0 {
		return ds, err
	}
	if err := wait(ctx, r.Wait); err != nil {
		return nil, err
	}
	return f.inner.Receive(ctx, deaf)
}

func (f *Faults) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	if err := f.before(ctx, OpStats); err != nil {
		return nil, err
	}
	qs, err := f.inner.Stats(ctx, queues...)
	if err == nil && f.strikes(OpStats, f.plan.After) {
		return nil, f.plan.Err
	}
	return qs, err
}

func (f *Faults) Close() error { return f.inner.Close() }
