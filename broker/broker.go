// Package broker is the portable half of delivery: what is the same on every
// engine. It fills ids, checks messages one by one, decides what becomes of a
// delivery after its handler returned (ack, retry with backoff, dead letter),
// keeps poison away from handlers and measures how fast a queue drains. For jobs it
// also tells what happens (Watcher), remembers effects (Effect), alerts of failures
// without a flood (Alerts) and estimates how long they take.
//
// It promises that one bad message never spoils its neighbours, that a refusal
// says what is wrong and what is allowed, and that what an engine cannot do is
// answered with CodeUnsupported, never guessed.
//
// It refuses to store anything itself or to run handlers: durability is the
// engine's, the loop is package worker's. Only Watcher.Run starts goroutines, and it
// waits for them. It never logs.
package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Config of a broker. The zero value works.
type Config struct {
	Policy Policy            // for queues that Queues does not name
	Queues map[string]Policy // by queue; their zero fields are filled from Policy
	Alerts Alerts            // zero: nobody is alerted
	Now    func() time.Time  // nil: time.Now
	Rand   func() float64    // for jitter, in [0,1); nil: math/rand/v2
}

// Broker is safe for concurrent use.
type Broker struct {
	engine engine.Engine
	able   abilities
	policy Policy
	queues map[string]Policy
	now    func() time.Time
	rand   func() float64

	draining  atomic.Bool
	meters    sync.Map // queue name → *meter
	replayers sync.Map // replayed → Replayer

	effects    effects
	alertQueue string
	alerts     alerts
	dead       deadWatch
	estimates  *estimates
	overdue    atomic.Int64
	watcher    *Watcher
}

// New puts a broker before an engine. Every problem of cfg is reported at once.
// The broker owns e from here on: Close closes it.
func New(e engine.Engine, cfg Config) (*Broker, error) {
	if e == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "broker: new", "no engine was given")
	}
	b := &Broker{
		engine: e,
		able:   findAbilities(e),
		policy: cfg.Policy.over(defaultPolicy),
		queues: make(map[string]Policy, len(cfg.Queues)),
		now:    cfg.Now,
		rand:   cfg.Rand,

		effects:    effects{running: make(map[string]chan struct{})},
		alertQueue: cfg.Alerts.Queue,
		estimates:  newEstimates(),
	}
	b.watcher = newWatcher(b)
	if b.now == nil {
		b.now = time.Now
	}
	if b.rand == nil {
		b.rand = rand.Float64
	}
	problems := []error{b.policy.check("policy")}
	for name, p := range cfg.Queues {
		p = p.over(b.policy)
		problems = append(problems, engine.CheckQueue(name), p.check("queues."+name))
		b.queues[name] = p
	}
	if b.alertQueue != "" {
		problems = append(problems, engine.CheckQueue(b.alertQueue), cfg.Alerts.Growth.check())
	}
	b.dead = newDeadWatch(cfg.Alerts.Growth, b.queues)
	if err := errors.Join(problems...); err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "broker: new", "%w", err)
	}
	return b, nil
}

// Receive leases messages as engine.Engine says. A delivery beyond its limit of
// hand-outs is settled as a dead letter with the cause "poison" and not returned.
func (b *Broker) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if err := checkReceive(r); err != nil {
		return nil, err
	}
	until := b.now().Add(r.Wait)
	for {
		ds, err := b.engine.Receive(ctx, r)
		if err != nil {
			return nil, err
		}
		sound, err := b.withoutPoison(ctx, ds)
		switch {
		case len(sound) > 0:
			return sound, nil // what could not be settled comes again when its lease ends
		case err != nil:
			return nil, err
		case len(ds) == 0:
			return nil, nil
		}
		r.Wait = max(0, until.Sub(b.now()))
	}
}

// Extend sets leases to end lease from now, as engine.Engine says.
func (b *Broker) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	return inParts(receipts, engine.MaxReceive, func(part []forebay.Receipt) ([]error, error) {
		return b.engine.Extend(ctx, part, lease)
	}, asIs)
}

// Settle ends deliveries, as engine.Engine says. Messages in Next get ids and
// are checked as by Send; a settlement with a bad one, or with a bad result, is
// refused and not done. An alert that Decide lets ride goes out, or is held back
// and told later with others of its kind.
func (b *Broker) Settle(ctx context.Context, s []forebay.Settlement) ([]error, error) {
	s, rides := b.admitAlerts(s)
	good, refused := b.checkSettlements(s)
	errs, err := inParts(good, engine.MaxReceive, func(part []forebay.Settlement) ([]error, error) {
		return b.engine.Settle(ctx, part)
	}, asIs)
	if err != nil {
		b.undoAlerts(rides, nil, err)
		return nil, err
	}
	b.count(good, errs)
	errs = weave(errs, refused, asIs)
	b.undoAlerts(rides, errs, nil)
	return errs, nil
}

// Stats counts, as engine.Engine says.
func (b *Broker) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	return b.engine.Stats(ctx, queues...)
}

// Drain is the first phase of closing: from now on Send answers CodeClosed.
// Receiving, extending and settling go on, so that workers can finish.
func (b *Broker) Drain() { b.draining.Store(true) }

// Close drains, then closes the engine, which waits for running calls.
func (b *Broker) Close() error {
	b.Drain()
	return b.engine.Close()
}

func asIs(err error) error { return err }
