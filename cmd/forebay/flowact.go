package main

import (
	"context"
	"fmt"
	"io"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
)

// tellRun tells a run to do something.
func (p *program) tellRun(ctx context.Context, f serverFlags, id string, do flow.Do, r api.RunCommand) error {
	client, err := f.client(ctx, p)
	if err != nil {
		return err
	}
	told, err := client.TellRun(ctx, id, do, r)
	if err != nil {
		return err
	}
	return p.print(told, func(w io.Writer) { fmt.Fprintf(w, "%s\ttold to %s\n", told.RunID, told.Do) })
}

type flowCancelCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
	Reason      string `help:"For its history."`
	NoUndo      bool   `help:"Leave what it did as it is: no compensations."`
}

func (flowCancelCmd) Help() string {
	return `Examples:
  forebay flow cancel 0198f2c4-… --reason "ordered twice"
  forebay flow cancel 0198f2c4-… --no-undo`
}

func (c *flowCancelCmd) Run(ctx context.Context, p *program) error {
	return p.tellRun(ctx, c.serverFlags, c.ID, flow.DoCancel, api.RunCommand{Reason: c.Reason, NoUndo: c.NoUndo})
}

type flowPauseCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
}

func (flowPauseCmd) Help() string {
	return `What was sent goes on.

Examples:
  forebay flow pause 0198f2c4-…`
}

func (c *flowPauseCmd) Run(ctx context.Context, p *program) error {
	return p.tellRun(ctx, c.serverFlags, c.ID, flow.DoPause, api.RunCommand{})
}

type flowResumeCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
}

func (flowResumeCmd) Help() string {
	return `Examples:
  forebay flow resume 0198f2c4-…`
}

func (c *flowResumeCmd) Run(ctx context.Context, p *program) error {
	return p.tellRun(ctx, c.serverFlags, c.ID, flow.DoResume, api.RunCommand{})
}

type flowRetryCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
	Step        string `arg:"" optional:"" help:"From where on; without it, whatever has failed."`
	Input       string `placeholder:"JSON" help:"What the step gets, instead of what its with says; @FILE reads a file."`
}

func (flowRetryCmd) Help() string {
	return `The step and all that follow it run a further round.

Examples:
  forebay flow retry 0198f2c4-…
  forebay flow retry 0198f2c4-… charge --input '{"amount":12}'`
}

func (c *flowRetryCmd) Run(ctx context.Context, p *program) error {
	input, err := p.jsonArg(c.Input)
	if err != nil {
		return err
	}
	return p.tellRun(ctx, c.serverFlags, c.ID, flow.DoRetry, api.RunCommand{Step: c.Step, Input: input})
}

type flowSkipCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
	Step        string `arg:"" help:"Which; it has no output then."`
	Reason      string `help:"For the run."`
}

func (flowSkipCmd) Help() string {
	return `Examples:
  forebay flow skip 0198f2c4-… welcome --reason "the mail server is gone"`
}

func (c *flowSkipCmd) Run(ctx context.Context, p *program) error {
	return p.tellRun(ctx, c.serverFlags, c.ID, flow.DoSkip, api.RunCommand{Step: c.Step, Reason: c.Reason})
}

type flowDiscardCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
	Step        string `arg:"" help:"Whose dead letter it waits for; it has failed then."`
	Reason      string `help:"For the run."`
}

func (flowDiscardCmd) Help() string {
	return `Examples:
  forebay flow discard 0198f2c4-… create --reason "the user has gone"`
}

func (c *flowDiscardCmd) Run(ctx context.Context, p *program) error {
	return p.tellRun(ctx, c.serverFlags, c.ID, flow.DoDiscard, api.RunCommand{Step: c.Step, Reason: c.Reason})
}

type flowApproveCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
	Step        string `arg:"" help:"Which waits for it."`
	Reject      bool   `help:"Say no: the step fails with the code rejected."`
	By          string `help:"Whose word it is."`
	Comment     string `help:"Why."`
	Form        string `placeholder:"JSON" help:"What was filled in, where the step has a form; @FILE reads a file."`
}

func (flowApproveCmd) Help() string {
	return `Examples:
  forebay flow approve 0198f2c4-… review --by Ann
  forebay flow approve 0198f2c4-… review --reject --comment "too large"`
}

func (c *flowApproveCmd) Run(ctx context.Context, p *program) error {
	form, err := p.jsonArg(c.Form)
	if err != nil {
		return err
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	yes := !c.Reject
	v, err := client.ApproveRun(ctx, c.ID, api.ApproveRun{Step: c.Step, Approved: &yes, By: c.By, Comment: c.Comment, Form: form})
	if err != nil {
		return err
	}
	return p.print(v, func(w io.Writer) {
		word := "approved"
		if !v.Approved {
			word = "rejected"
		}
		fmt.Fprintf(w, "%s\t%s %s by %s\n", v.RunID, v.Step, word, v.By)
	})
}

type flowEventCmd struct {
	serverFlags `embed:""`
	Type        string `arg:"" help:"Of the event."`
	Data        string `arg:"" optional:"" help:"JSON; @FILE reads a file, - standard input."`
}

func (flowEventCmd) Help() string {
	return `Examples:
  forebay flow event card.updated '{"orderId":"o-17"}'`
}

func (c *flowEventCmd) Run(ctx context.Context, p *program) error {
	data, err := p.jsonArg(c.Data)
	if err != nil {
		return err
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	told, err := client.SendFlowEvent(ctx, api.FlowEvent{Type: c.Type, Data: data})
	if err != nil {
		return err
	}
	return p.print(map[string]int{"told": told}, func(w io.Writer) { fmt.Fprintf(w, "%d steps waited for it\n", told) })
}
