package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// SettleLeases ends leased jobs.
type SettleLeases struct {
	Items []SettleLease `json:"items" minItems:"1" maxItems:"1000"`
}

// SettleLease ends one.
type SettleLease struct {
	Receipt string          `json:"receipt"`
	Verdict string          `json:"verdict" enum:"ack,retry,release,dead,cancelled" doc:"ack: done. retry: failed, to be tried again while it has attempts. release: not tried or interrupted, nothing charged. dead: will not work. cancelled: stopped on request."`
	Result  json.RawMessage `json:"result,omitempty" doc:"ack: any JSON, at most 1 MiB."`
	After   *Duration       `json:"after,omitempty" doc:"retry, release: how long to wait; absent: as the backoff says, or not."`
	Cause   *LeaseCause     `json:"cause,omitempty" doc:"retry, dead, cancelled: why."`
	Next    []NewJob        `json:"next,omitempty" maxItems:"100" doc:"Jobs that follow; they are added in the same step or not at all."`
}

// LeaseCause says why an attempt failed.
type LeaseCause struct {
	Code    string            `json:"code,omitempty" maxLength:"64" doc:"A short word to group by; absent: handler."`
	Message string            `json:"message" maxLength:"4096"`
	Detail  map[string]string `json:"detail,omitempty"`
}

func (a *API) settle(ctx context.Context, in SettleLeases) (LeaseResults, error) {
	states := make([]forebay.State, len(in.Items))
	out, err := eachReceipt(in.Items, func(s SettleLease) string { return s.Receipt }, a.reads(ctx), func(held []receipt, at []int) ([]error, error) {
		errs := make([]error, len(held))
		var settlements []forebay.Settlement
		var which []int // of held
		for i := range held {
			s, err := a.settlement(ctx, &held[i], &in.Items[at[i]])
			if err != nil {
				errs[i] = err
				continue
			}
			states[at[i]] = stateAfter(&s)
			settlements, which = append(settlements, s), append(which, i)
		}
		done, err := a.cfg.Broker.Settle(ctx, settlements)
		for k, e := range done {
			errs[which[k]] = e
		}
		return errs, err
	})
	for i := range out.Items {
		if out.Items[i].Error == nil {
			out.Items[i].State = states[i]
		}
	}
	return out, err
}

func stateAfter(s *forebay.Settlement) forebay.State {
	switch s.Verdict {
	case forebay.Ack:
		return forebay.StateCompleted
	case forebay.Dead:
		return forebay.StateDead
	case forebay.Cancelled:
		return forebay.StateCancelled
	case forebay.Expired:
		return forebay.StateExpired
	}
	if s.After > 0 {
		return forebay.StateDelayed
	}
	return forebay.StateWaiting
}

// settlement makes what the broker takes of a verdict; what a failure means, the
// broker's policy says.
func (a *API) settlement(ctx context.Context, r *receipt, in *SettleLease) (forebay.Settlement, error) {
	now := a.cfg.Now()
	s := forebay.Settlement{Receipt: r.Receipt, Queue: r.Queue}
	switch in.Verdict {
	case "ack":
		s.Verdict, s.Result = forebay.Ack, in.Result
	case "release":
		s.Verdict = forebay.Release
		if in.After != nil {
			s.After = time.Duration(*in.After)
		}
	case "retry", "dead", "cancelled":
		s = a.failed(r, in)
	}
	switch {
	case in.After != nil && !slices.Contains([]string{"retry", "release"}, in.Verdict):
		return s, wrong("after", "%s takes no after; retry and release do", in.Verdict)
	case in.Result != nil && in.Verdict != "ack":
		return s, wrong("result", "%s takes no result; ack does", in.Verdict)
	}
	if err := engine.CheckResult(s.Result); err != nil {
		return s, err
	}
	for i := range in.Next {
		m, err := in.Next[i].message(now)
		if err == nil {
			err = mustAdd(ctx, &m)
		}
		if err != nil {
			return s, err
		}
		if m.Job.Parent == "" {
			m.Job.Parent = r.ID
		}
		s.Next = append(s.Next, m)
	}
	if a.cfg.Flows != nil {
		s = a.cfg.Flows.Follow(r.delivery(), s)
	}
	return s, nil
}

// failed decides as for a handler in this process that failed so.
func (a *API) failed(r *receipt, in *SettleLease) forebay.Settlement {
	cause := forebay.Cause{Code: "handler", Message: "the worker gave no reason"}
	if c := in.Cause; c != nil {
		cause.Message, cause.Detail = c.Message, c.Detail
		if c.Code != "" {
			cause.Code = c.Code
		}
	}
	err := forebay.Because(cause, errors.New(cause.Message))
	switch {
	case in.Verdict == "dead":
		err = forebay.Permanent(err)
	case in.Verdict == "cancelled":
		err = forebay.Cancel(cause.Message)
	case in.After != nil:
		err = forebay.RetryAfter(time.Duration(*in.After), err)
	}
	return a.cfg.Broker.Decide(r.delivery(), err)
}
