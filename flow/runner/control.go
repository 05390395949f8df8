package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

// Handler is what a worker of the queue of flows needs.
func (r *Runner) Handler() worker.JobHandler {
	return worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
		switch j.Kind {
		case KindRun:
			return r.handleRun(ctx, j)
		case KindDelay:
			return r.Steps(worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { return nil, nil })).HandleJob(ctx, j)
		case KindWait:
			return r.handleWait(j)
		case KindDead:
			return r.Steps(worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
				return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "dead_letter"}, errors.New(j.Headers["flow-reason"])))
			})).HandleJob(ctx, j)
		}
		return nil, forebay.Permanent(fmt.Errorf("%q is no kind of the queue of flows", j.Kind))
	})
}

// arrival is the payload of a wait that has got what it waits for.
type arrival struct {
	Event    json.RawMessage `json:"event,omitempty"`
	Approval *Approval       `json:"approval,omitempty"`
}

// handleWait is called when something has arrived, or the timeout.
func (r *Runner) handleWait(j *worker.Job) ([]byte, error) {
	run, e := eventOf(&j.Message)
	if e == nil {
		return nil, forebay.Permanent(errors.New("a wait of no run"))
	}
	e.Type = flow.EventCompleted
	result := waited(e, j.Payload)
	j.Follow(func(s forebay.Settlement) forebay.Settlement {
		switch s.Verdict {
		case forebay.Ack:
			return r.carry(s, run, *e)
		case forebay.Release, forebay.Retry:
			return s
		}
		return r.follow(&j.Delivery, run, *e, s)
	})
	return result, nil
}

// waited makes of a wait's payload the event of its end, and the job's result.
func waited(e *flow.Event, payload []byte) []byte {
	var a arrival
	bad := json.Unmarshal(payload, &a)
	switch {
	case bad == nil && a.Approval != nil:
		out, _ := json.Marshal(a.Approval) // of texts and JSON that was checked
		withOutput(e, out)
		if !a.Approval.Approved {
			text := "not approved"
			if a.Approval.Comment != "" {
				text += ": " + a.Approval.Comment
			}
			e.Type, e.Error = flow.EventFailed, &flow.Failure{Code: "rejected", Message: text}
		}
		return out
	case bad == nil && len(a.Event) > 0:
		withOutput(e, a.Event)
		return a.Event
	}
	e.Type, e.Output, e.Error = flow.EventTimedOut, nil, &flow.Failure{Code: flow.FailTimeout, Message: "what it waits for has not come in time"}
	return []byte(`{"timedOut":true}`)
}
