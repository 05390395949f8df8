package broker

import (
	"errors"
	"math"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Policy says how often and how fast a queue's messages are tried again. What a
// message says in its own Limits goes first. A hand-out that was released or snoozed
// does not count as a delivery, but on engines that count every one (invariant 5
// of package engine): who snoozes often there raises Deliveries.
type Policy struct {
	Attempts   int // failed attempts before a message is dead; 0: forebay.DefaultAttempts
	Deliveries int // hand-outs before it is poison; 0: twice the attempts, at least forebay.DefaultDeliveries

	Backoff forebay.BackoffKind // how the wait after a failure grows; empty: exponential
	Base    time.Duration       // wait after the first failure, at most; 0: 1 s
	Factor  float64             // by which the exponential wait grows; 0: 2
	Cap     time.Duration       // longest wait; 0: 5 min
	Jitter  float64             // up to 1: this share of the wait is random; 0: 0.9

	// Wait, where it is set, says how long to wait after a failed attempt, instead of
	// all of these. A job with a backoff of its own does not ask it.
	Wait func(d *forebay.Delivery, err error) time.Duration

	Timeout  time.Duration // of one attempt of a job; 0: none
	DeadMost int           // dead letters of a queue that Config.Queues names; the oldest leave beyond it. 0: no bound

	Keep forebay.Retention // of jobs; 0: finished ones for 7 days, a million of the queue at most
}

var defaultPolicy = Policy{
	Attempts: forebay.DefaultAttempts,
	Backoff:  forebay.BackoffExponential,
	Base:     time.Second,
	Factor:   2,
	Cap:      5 * time.Minute,
	Jitter:   0.9,
	Keep:     forebay.Retention{Finished: forebay.Keep{Age: 7 * 24 * time.Hour, Count: 1_000_000}},
}

// over fills the zero fields of p from base.
func (p Policy) over(base Policy) Policy {
	fill(&p.Attempts, base.Attempts)
	fill(&p.Deliveries, base.Deliveries)
	fill(&p.Base, base.Base)
	fill(&p.Factor, base.Factor)
	fill(&p.Cap, base.Cap)
	fill(&p.Backoff, base.Backoff)
	fill(&p.Jitter, base.Jitter)
	fill(&p.Timeout, base.Timeout)
	fill(&p.DeadMost, base.DeadMost)
	fill(&p.Keep.Finished, base.Keep.Finished)
	fill(&p.Keep.Dead, base.Keep.Dead)
	if p.Wait == nil {
		p.Wait = base.Wait
	}
	return p
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (p Policy) check(name string) error {
	var problems []error
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			problems = append(problems, invalid(name+"."+field, format, args...))
		}
	}
	wrong(p.Attempts < 1 || p.Attempts > engine.MaxAttempts, "attempts", "%d; 1 to %d are allowed", p.Attempts, engine.MaxAttempts)
	wrong(p.Deliveries != 0 && (p.Deliveries < p.Attempts || p.Deliveries > engine.MaxDeliveries), "deliveries",
		"%d; the attempts (%d) to %d are allowed, since each attempt is a hand-out", p.Deliveries, p.Attempts, engine.MaxDeliveries)
	wrong(p.Base < 0 || p.Base > p.Cap, "base", "%s; up to the cap (%s) is allowed", p.Base, p.Cap)
	wrong(!(p.Factor >= 1 && p.Factor <= 100), "factor", "%v; 1 to 100 are allowed", p.Factor)
	wrong(p.Cap < 0 || p.Cap > forebay.MaxDelay, "cap", "%s; up to %s is allowed", p.Cap, forebay.MaxDelay)
	wrong(!(p.Jitter >= 0 && p.Jitter <= 1), "jitter", "%v; 0 (the default) to 1 are allowed", p.Jitter)
	wrong(p.Backoff != forebay.BackoffFixed && p.Backoff != forebay.BackoffExponential, "backoff",
		"%q; %s or %s are allowed", p.Backoff, forebay.BackoffFixed, forebay.BackoffExponential)
	wrong(p.Timeout < 0 || p.Timeout > forebay.MaxDelay, "timeout", "%s; 0 (none) to %s are allowed", p.Timeout, forebay.MaxDelay)
	wrong(p.DeadMost < 0, "deadMost", "%d; 0 (no bound) or more is allowed", p.DeadMost)
	if err := engine.CheckRetention(name+".keep", p.Keep); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (b *Broker) policyOf(queue string) Policy {
	if p, ok := b.queues[queue]; ok {
		return p
	}
	return b.policy
}

// limits that hold for one message: its own, else its queue's.
func (p Policy) limits(m *forebay.Message) (attempts, deliveries int) {
	attempts, deliveries = m.Limits.Attempts, m.Limits.Deliveries
	fill(&attempts, p.Attempts)
	fill(&deliveries, p.Deliveries)
	// Nobody named a number: then failures alone must not make a message poison.
	fill(&deliveries, max(forebay.DefaultDeliveries, 2*attempts))
	return attempts, deliveries
}

// wait after a failed attempt. What the job says goes first, then the queue.
func (b *Broker) wait(p Policy, d *forebay.Delivery, err error) time.Duration {
	var own forebay.Backoff
	if d.Job != nil {
		own = d.Job.Backoff
	}
	if own == (forebay.Backoff{}) && p.Wait != nil {
		return p.Wait(d, err)
	}
	return p.with(own).backoff(d.Attempt, b.rand())
}

// with puts a job's own backoff over the queue's.
func (p Policy) with(own forebay.Backoff) Policy {
	fill(&own.Kind, p.Backoff)
	fill(&own.Base, p.Base)
	fill(&own.Cap, max(p.Cap, own.Base)) // a job that names a long wait means it
	fill(&own.Jitter, p.Jitter)
	p.Backoff, p.Base, p.Cap, p.Jitter = own.Kind, own.Base, own.Cap, own.Jitter
	return p
}

// backoff has a cap, and jitter: clients that failed together spread out. Unless
// somebody wants it otherwise, none comes back at once.
func (p Policy) backoff(attempt int, random float64) time.Duration {
	most := float64(p.Base)
	if p.Backoff != forebay.BackoffFixed {
		most *= math.Pow(p.Factor, float64(max(attempt, 1)-1))
	}
	most = min(most, float64(p.Cap))
	return max(time.Millisecond, time.Duration(most*(1-p.Jitter+p.Jitter*random)))
}

func withinDelay(d time.Duration) time.Duration { return min(max(d, 0), forebay.MaxDelay) }
