package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Policy says how often and how fast a queue's messages are tried again. What a
// message says in its own Limits goes first. A hand-out that was released or snoozed
// does not count as a delivery, but on engines that count every one (invariant 5
// of package engine): who snoozes often there raises Deliveries.
type Policy struct {
	Attempts   int           // failed attempts before a message is dead; 0: forebay.DefaultAttempts
	Deliveries int           // hand-outs before it is poison; 0: twice the attempts, at least forebay.DefaultDeliveries
	Base       time.Duration // wait after the first failure, at most; 0: 1 s
	Factor     float64       // by which the wait grows; 0: 2
	Cap        time.Duration // longest wait; 0: 5 min
}

var defaultPolicy = Policy{
	Attempts: forebay.DefaultAttempts,
	Base:     time.Second,
	Factor:   2,
	Cap:      5 * time.Minute,
}

// over fills the zero fields of p from base.
func (p Policy) over(base Policy) Policy {
	fill(&p.Attempts, base.Attempts)
	fill(&p.Deliveries, base.Deliveries)
	fill(&p.Base, base.Base)
	fill(&p.Factor, base.Factor)
	fill(&p.Cap, base.Cap)
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

// Decide says how a delivery ends after its handler returned err:
//
//	nil                                    Ack
//	forebay.Snooze(d)                      Release after d, no attempt charged
//	ErrDraining, ErrLeaseLost inside       Release at once, no attempt charged
//	forebay.Permanent(…), attempts used up Dead, with the cause
//	forebay.RetryAfter(d, …)               Retry after d
//	any other                              Retry after the backoff
func (b *Broker) Decide(d forebay.Delivery, err error) forebay.Settlement {
	s := forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue}
	if err == nil {
		s.Verdict = forebay.Ack
		return s
	}
	permanent := forebay.IsPermanent(err)
	if wait, ok := forebay.SnoozeDelay(err); ok && !permanent {
		s.Verdict, s.After = forebay.Release, withinDelay(wait)
		return s
	}
	if !permanent && (errors.Is(err, forebay.ErrDraining) || errors.Is(err, forebay.ErrLeaseLost)) {
		s.Verdict = forebay.Release
		return s
	}
	p := b.policyOf(d.Queue)
	s.Cause = bounded(forebay.CauseOf(err, b.now()))
	if attempts, _ := p.limits(&d.Message); permanent || d.Attempt >= attempts {
		s.Verdict = forebay.Dead
		return s
	}
	s.Verdict = forebay.Retry
	wait, ok := forebay.RetryDelay(err)
	if !ok {
		wait = p.backoff(d.Attempt, b.rand())
	}
	s.After = withinDelay(wait)
	return s
}

// backoff is exponential with a cap and full jitter, bounded below by a tenth:
// clients that failed together spread out, and none comes back at once.
func (p Policy) backoff(attempt int, random float64) time.Duration {
	most := float64(p.Base) * math.Pow(p.Factor, float64(max(attempt, 1)-1))
	most = min(most, float64(p.Cap))
	return max(time.Millisecond, time.Duration(most*(0.1+0.9*random)))
}

func withinDelay(d time.Duration) time.Duration { return min(max(d, 0), forebay.MaxDelay) }

// Limits of a cause: ten of them are kept with a message.
const (
	maxCauseCode    = 64
	maxCauseMessage = 2048
	maxCauseDetails = 16
	maxCauseDetail  = 4096
)

// bounded cuts a cause to its limits, so that a handler that quotes its input
// in its errors does not fill the store.
func bounded(c forebay.Cause) forebay.Cause {
	c.Code = cut(c.Code, maxCauseCode)
	c.Message = cut(c.Message, maxCauseMessage)
	if len(c.Detail) == 0 {
		return c
	}
	detail := make(map[string]string, min(len(c.Detail), maxCauseDetails))
	for k, v := range c.Detail {
		if len(detail) < maxCauseDetails {
			detail[cut(k, maxCauseCode)] = cut(v, maxCauseDetail)
		}
	}
	c.Detail = detail
	return c
}

func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most-len("…")] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// withoutPoison settles what was handed out too often as dead, and returns the
// rest. Such a message has never come to a verdict: most likely it takes its
// consumer down, so no handler may see it again.
func (b *Broker) withoutPoison(ctx context.Context, ds []forebay.Delivery) ([]forebay.Delivery, error) {
	var poison []forebay.Settlement
	sound := ds[:0]
	for _, d := range ds {
		_, most := b.policyOf(d.Queue).limits(&d.Message)
		if d.Deliveries <= most {
			sound = append(sound, d)
			continue
		}
		poison = append(poison, forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Dead, Cause: forebay.Cause{
			Code:    "poison",
			Message: fmt.Sprintf("handed out %d times without a verdict that lasts; %d are allowed", d.Deliveries-1, most),
			At:      b.now(),
		}})
	}
	if len(poison) == 0 {
		return ds, nil
	}
	// The caller's deadline is for waiting; what was received must be settled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_, err := b.Settle(ctx, poison)
	return sound, err
}

const settleTimeout = 10 * time.Second
