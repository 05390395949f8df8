package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// Decide says how a delivery ends after its handler returned err:
//
//	nil                                    Ack
//	forebay.Snooze(d)                      Release after d, no attempt charged
//	ErrDraining, ErrLeaseLost inside       Release at once, no attempt charged
//	ErrCancelled inside, forebay.Cancel(…) Cancelled, with the cause "cancelled"
//	ErrDeadline inside                     Dead, with the cause "deadline"
//	ErrTimeout inside                      a failed attempt, with the cause "timeout"
//	forebay.Permanent(…)                   Dead, with the cause
//	attempts or hand-outs used up          Dead, with the cause
//	forebay.RetryAfter(d, …)               Retry after d
//	any other                              Retry after the backoff
//
// Where alerts are wanted, one rides with Dead and with a timeout (Settlement.Next).
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
	s.Cause = bounded(causeOf(err, b.now()))
	if d.Job != nil {
		s.Cause.Attempt = d.Attempt
	}
	if errors.Is(err, forebay.ErrCancelled) && !permanent {
		s.Verdict = forebay.Cancelled
		return s
	}
	late := errors.Is(err, forebay.ErrDeadline)
	// A retry that would be refused as poison is none: the failure is told instead.
	if attempts, most := p.limits(&d.Message); permanent || late || d.Attempt >= attempts || d.Deliveries >= most {
		s.Verdict = forebay.Dead
		return b.withAlert(s, &d, d.Attempt)
	}
	s.Verdict = forebay.Retry
	wait, ok := forebay.RetryDelay(err)
	if !ok {
		wait = b.wait(p, &d, err)
	}
	s.After = withinDelay(wait)
	return b.withAlert(s, &d, d.Attempt)
}

// Codes of causes that the broker gives.
const (
	codePoison    = "poison"
	codeTimeout   = "timeout"
	codeDeadline  = "deadline"
	codeCancelled = "cancelled"
	codeResult    = "bad_result"
)

// causeOf is forebay.CauseOf, with codes of their own for how jobs are ended.
func causeOf(err error, at time.Time) forebay.Cause {
	c := forebay.CauseOf(err, at)
	for _, end := range []struct {
		err  error
		code string
	}{{forebay.ErrTimeout, codeTimeout}, {forebay.ErrDeadline, codeDeadline}, {forebay.ErrCancelled, codeCancelled}} {
		if c.Code == codeHandler && errors.Is(err, end.err) {
			c.Code = end.code
		}
	}
	return c
}

const codeHandler = "handler" // what forebay.CauseOf gives to errors without a cause

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
		s := forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Dead, Unbegun: true, Cause: b.poison(&d, most)}
		poison = append(poison, b.withAlert(s, &d, d.Attempt-1))
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

// poison is the cause of what takes its consumers down, or outlives their leases.
func (b *Broker) poison(d *forebay.Delivery, most int) forebay.Cause {
	handed, failed := d.Deliveries-1, d.Attempt-1
	lost := max(handed-failed, 0)
	return forebay.Cause{
		Code: codePoison,
		Message: fmt.Sprintf("whoever had it was lost %d times before a verdict, by a crash or a lease that ran out; handed out %d times, %d are allowed",
			lost, handed, most),
		Detail: map[string]string{"lost": strconv.Itoa(lost), "handed_out": strconv.Itoa(handed), "failed": strconv.Itoa(failed)},
		At:     b.now(),
	}
}

const settleTimeout = 10 * time.Second
