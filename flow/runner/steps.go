package runner

import (
	"context"
	"fmt"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

// codeSkipped is the cause of a job that was given up without a dead letter, since
// its step says on_failure: skip.
const codeSkipped = "skipped"

// Steps makes a handler one for steps too: the verdict on a job of a run carries what
// lets the run go on. Other jobs pass unchanged. Every worker whose queue may get
// steps needs it; without, runs go on all the same, but late.
func (r *Runner) Steps(h worker.JobHandler) worker.JobHandler {
	return worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
		j.Follow(func(s forebay.Settlement) forebay.Settlement { return r.Follow(j.Delivery, s) })
		return h.HandleJob(ctx, j)
	})
}

// Follow adds to the verdict on a step's job what lets its run go on, for whoever
// settles without a worker: call it with what broker.Decide or DecideJob gave, and
// settle with what it gives. Verdicts on other messages pass unchanged.
func (r *Runner) Follow(d forebay.Delivery, s forebay.Settlement) forebay.Settlement {
	if run, e := eventOf(&d.Message); e != nil {
		return r.follow(&d, run, *e, s)
	}
	return s
}

// follow adds to a verdict that lasts the advance of its run.
func (r *Runner) follow(j *forebay.Delivery, run string, e flow.Event, s forebay.Settlement) forebay.Settlement {
	switch s.Verdict {
	case forebay.Ack:
		e.Type = flow.EventCompleted
		withOutput(&e, s.Result)
	case forebay.Dead:
		e.Type, e.Error = flow.EventFailed, failure(s.Cause)
		if j.Headers[HeaderFailure] == string(flow.Skip) {
			s.Verdict, s.Next = forebay.Cancelled, nil // nobody needs to be alerted, and nothing replayed
			s.Cause.Message = fmt.Sprintf("skipped after %d attempts: %s", j.Attempt, s.Cause.Message)
			s.Cause.Code = codeSkipped
		}
	case forebay.Cancelled, forebay.Expired:
		e.Type, e.Error = flow.EventCancelled, failure(s.Cause)
	default:
		return s
	}
	if r.chain(j, run, e, &s) {
		return s
	}
	return r.carry(s, run, e)
}

// carry lets an advance ride with a verdict.
func (r *Runner) carry(s forebay.Settlement, run string, e flow.Event) forebay.Settlement {
	if m, err := r.advanceMessage(run, advance{Events: []flow.Event{e}}); err == nil {
		s.Next = append(s.Next[:len(s.Next):len(s.Next)], m)
	}
	return s // else the run finds out by itself
}

// ended is the event of a job's record; nil: it has not ended.
func ended(j *forebay.Job) *flow.Event {
	_, e := eventOf(&j.Message)
	if j.Kind == KindRun {
		e = parentEvent(&j.Message)
	}
	if e == nil {
		return nil
	}
	switch j.State {
	case forebay.StateCompleted:
		e.Type = flow.EventCompleted
		withOutput(e, j.Result)
		if j.Kind == KindWait {
			waited(e, j.Payload)
		}
	case forebay.StateDead:
		e.Type, e.Error = flow.EventFailed, failure(j.Cause)
	case forebay.StateCancelled, forebay.StateExpired:
		e.Type, e.Error = flow.EventCancelled, failure(j.Cause)
		if j.Cause.Code == codeSkipped {
			e.Type = flow.EventFailed
			_, e.Error.Message, _ = strings.Cut(j.Cause.Message, ": ")
		}
	default:
		return nil
	}
	return e
}
