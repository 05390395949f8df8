package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/keyring"
)

// RunCommand is what somebody wants of a run. Which fields count, the command says.
type RunCommand struct {
	Step   string          `json:"step,omitempty" doc:"retry: from where on, absent: whatever has failed. skip, discard: which."`
	Reason string          `json:"reason,omitempty" maxLength:"1024" doc:"cancel, skip, discard: why."`
	Input  json.RawMessage `json:"input,omitempty" doc:"retry of a step: what it gets, instead of what its with says."`
	NoUndo bool            `json:"noUndo,omitempty" doc:"cancel: without compensations."`
}

// RunTold is a run that was told something. It does it in its own order, after what
// it was told before.
type RunTold struct {
	RunID string  `json:"runId"`
	Do    flow.Do `json:"do"`
}

// ApproveRun answers a step that waits for an approval.
type ApproveRun struct {
	Step     string          `json:"step"`
	Approved *bool           `json:"approved,omitempty" doc:"Absent: yes. Where it is not, the step fails with the code rejected."`
	By       string          `json:"by,omitempty" maxLength:"256" doc:"Whose word it is, where whoever calls speaks for others."`
	Comment  string          `json:"comment,omitempty" maxLength:"4096"`
	Form     json.RawMessage `json:"form,omitempty" doc:"What was filled in, where the step has a form."`
}

// ApprovedRun is an answer that was taken.
type ApprovedRun struct {
	RunID    string `json:"runId"`
	Step     string `json:"step"`
	Approved bool   `json:"approved"`
	By       string `json:"by"`
}

// FlowEvent is an event that runs may wait for.
type FlowEvent struct {
	Type string          `json:"type" minLength:"1" maxLength:"128"`
	Data json.RawMessage `json:"data,omitempty"`
}

// FlowEventTold tells how many steps waited for it, and got it.
type FlowEventTold struct {
	Told int `json:"told"`
}

func (a *API) runActRoutes(h huma.API) {
	for _, one := range []struct {
		do      flow.Do
		summary string
	}{
		{flow.DoPause, "Let nothing new begin in a run; what was sent goes on"},
		{flow.DoResume, "Undo a pause"},
		{flow.DoCancel, "Cancel a run: what was sent is asked to end, then its compensations run"},
		{flow.DoRetry, "Go on from a step, or from whatever has failed, in a further round"},
		{flow.DoSkip, "Go on as if a step had completed, without output"},
		{flow.DoDiscard, "Give up the dead letter that a run waits for: its step has failed"},
	} {
		op := operation(http.MethodPost, runsPath+"/{id}/"+string(one.do), string(one.do)+"-run", one.summary)
		op.DefaultStatus = http.StatusAccepted
		op.MaxBodyBytes = maxJobBody
		huma.Register(h, op, func(ctx context.Context, in *struct {
			OneRun
			Body *RunCommand
		}) (*answer[RunTold], error) {
			c := RunCommand{}
			if in.Body != nil {
				c = *in.Body
			}
			return reply(a.tellRun(ctx, in.ID, one.do, c))
		})
	}
	approve := operation(http.MethodPost, runsPath+"/{id}/approve", "approve-run", "Answer a step that waits for an approval")
	approve.MaxBodyBytes = maxJobBody
	huma.Register(h, approve, func(ctx context.Context, in *struct {
		OneRun
		Body ApproveRun
	}) (*answer[ApprovedRun], error) {
		return reply(a.approveRun(ctx, in.ID, in.Body))
	})
	tell := operation(http.MethodPost, "/api/flow-events", "send-flow-event", "Tell all runs that wait for it of an event")
	tell.MaxBodyBytes = maxJobBody
	tell.Description = "Events that come before a run waits for them do not count for it."
	huma.Register(h, tell, func(ctx context.Context, in *answer[FlowEvent]) (*answer[FlowEventTold], error) {
		return reply(a.flowEvent(ctx, in.Body))
	})
}

func (a *API) tellRun(ctx context.Context, id string, do flow.Do, c RunCommand) (RunTold, error) {
	if a.cfg.Flows == nil {
		return RunTold{}, noFlows()
	}
	err := c.check(do)
	if err == nil && do == flow.DoSkip { // to pass an approval over is to give it
		err = a.mayApprove(ctx, id, c.Step)
	}
	if err != nil {
		return RunTold{}, err
	}
	if err := a.cfg.Flows.Do(ctx, id, flow.Command{Do: do, Step: c.Step, Reason: c.Reason, Payload: c.Input, NoUndo: c.NoUndo}); err != nil {
		return RunTold{}, err
	}
	a.cfg.Logger.Info("api: run: "+string(do), "run", id, "step", c.Step, "reason", c.Reason, "by", caller(ctx))
	return RunTold{id, do}, nil
}

// check refuses fields that a command would not look at.
func (c *RunCommand) check(do flow.Do) error {
	stepped := do == flow.DoRetry || do == flow.DoSkip || do == flow.DoDiscard
	switch {
	case c.Step != "" && !stepped:
		return wrong("step", "%s is for the whole run; retry, skip and discard name a step", do)
	case c.Step == "" && (do == flow.DoSkip || do == flow.DoDiscard):
		return wrong("step", "%s needs a step", do)
	case c.Input != nil && (do != flow.DoRetry || c.Step == ""):
		return wrong("input", "an input is for retry of a step")
	case c.NoUndo && do != flow.DoCancel:
		return wrong("noUndo", "noUndo is for cancel")
	case c.Reason != "" && (do == flow.DoPause || do == flow.DoResume || do == flow.DoRetry):
		return wrong("reason", "%s takes no reason; cancel, skip and discard do", do)
	}
	return nil
}

// approveRun takes an answer; who gave it is whoever calls, in whose name it may be.
func (a *API) approveRun(ctx context.Context, id string, in ApproveRun) (ApprovedRun, error) {
	if a.cfg.Flows == nil {
		return ApprovedRun{}, noFlows()
	}
	v := ApprovedRun{RunID: id, Step: in.Step, Approved: in.Approved == nil || *in.Approved, By: caller(ctx)}
	if in.By != "" {
		v.By = in.By + ", told by " + v.By
	}
	if err := a.mayApprove(ctx, id, in.Step); err != nil {
		return ApprovedRun{}, err
	}
	err := a.cfg.Flows.Approve(ctx, id, in.Step, runner.Approval{Approved: v.Approved, By: v.By, Comment: in.Comment, Form: in.Form})
	if err != nil {
		return ApprovedRun{}, err
	}
	a.cfg.Logger.Info("api: run: approve", "run", id, "step", in.Step, "approved", v.Approved, "by", v.By)
	return v, nil
}

func (a *API) flowEvent(ctx context.Context, in FlowEvent) (FlowEventTold, error) {
	if a.cfg.Flows == nil {
		return FlowEventTold{}, noFlows()
	}
	told, err := a.cfg.Flows.Event(ctx, in.Type, in.Data)
	if err == nil {
		a.cfg.Logger.Info("api: flow event", "type", in.Type, "told", told, "by", caller(ctx))
	}
	return FlowEventTold{told}, err
}

// mayApprove refuses whoever is none of the approvers of a step. This machine's token is
// as an admin key, and so is everybody as long as there are no keys at all.
func (a *API) mayApprove(ctx context.Context, run, step string) error {
	by, err := a.cfg.Flows.Approvers(ctx, run, step)
	if err != nil || len(by) == 0 {
		return err
	}
	who := caller(ctx)
	if who == anyoneHere || who == thisMachine && slices.Contains(by, string(keyring.ScopeAdmin)) {
		return nil
	}
	for _, k := range a.cfg.Ring.List() {
		if k.Live() && nameOf(k) == who && slices.ContainsFunc(by, func(one string) bool {
			return one == k.ID || one == k.Name || k.Has(keyring.Scope(one))
		}) {
			return nil
		}
	}
	p := newProblem(http.StatusForbidden, forebay.CodeUnauthorized, fmt.Sprintf("the step %s is answered by %s only; %s is not among them", step, strings.Join(by, ", "), who))
	p.Hint = "names and ids of keys, and scopes, are meant; forebay keys ls shows the keys"
	return p
}
