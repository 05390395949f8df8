package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
)

type flowRunCmd struct {
	serverFlags    `embed:""`
	Flow           string   `arg:"" help:"Name of the flow; or a file, which is stored first."`
	Input          string   `arg:"" optional:"" help:"JSON; @FILE reads a file, - standard input."`
	Version        int      `help:"Without it, the latest."`
	ID             string   `placeholder:"ID" help:"Of the run; a second one with it is the same run."`
	Tag            []string `help:"To find it by; may be repeated."`
	Owner          string   `help:"Who is told when it fails."`
	Tenant         string   `help:"Whose it is."`
	IdempotencyKey string   `placeholder:"KEY" help:"Running the same command again with it starts nothing."`
	Watch          bool     `short:"w" help:"Show its steps until its end."`
}

func (flowRunCmd) Help() string {
	return `Examples:
  forebay flow run registration '{"email":"a@example.com","name":"Ada"}' --watch
  forebay flow run registration.yaml @input.json
  forebay flow run nightly --id nightly-2026-11-30`
}

func (c *flowRunCmd) Run(ctx context.Context, p *program) error {
	input, err := p.jsonArg(c.Input)
	if err != nil {
		return err
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	name := c.Flow
	if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		put, err := putFile(ctx, client, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		name = put.Name
	}
	started, err := client.StartRun(ctx, name, api.StartRun{
		Input: input, Version: c.Version, ID: c.ID, Tags: c.Tag, Owner: c.Owner, Tenant: c.Tenant,
	}, c.IdempotencyKey)
	if err != nil {
		return err
	}
	if c.Watch {
		return p.watchRun(ctx, client, started.RunID)
	}
	return p.print(started, func(w io.Writer) {
		note := ""
		if started.Duplicate {
			note = "  it was there already"
		}
		fmt.Fprintf(w, "%s\t%s version %d%s\n", started.RunID, started.Flow, started.Version, note)
	})
}

type flowRunsCmd struct {
	serverFlags `embed:""`
	Flow        string `arg:"" optional:"" help:"Only of this flow."`
	State       string `enum:",running,completed,failed,cancelled" default:"" help:"Only those: running, completed, failed, cancelled."`
	Limit       int    `default:"50" help:"At most so many."`
}

func (flowRunsCmd) Help() string {
	return `Those that go on come first, newest first, then those that failed.

Examples:
  forebay flow runs
  forebay flow runs registration --state failed --json`
}

func (c *flowRunsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	f := api.RunFilter{Flow: c.Flow, State: flow.RunState(c.State)}
	all, more, err := listed(c.Limit, 200, func(after string, n int) ([]api.RunInfo, string, error) {
		page, err := client.Runs(ctx, f, after, n)
		return page.Items, page.Next, err
	})
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no runs")
			return
		}
		fmt.Fprintln(w, "run\tflow\tstate\tstarted\ttook\twhy")
		for _, r := range all {
			took := "-"
			if !r.FinishedAt.IsZero() {
				took = r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
			}
			fmt.Fprintf(w, "%s\t%s %d\t%s\t%s\t%s\t%s\n", r.RunID, r.Flow, r.Version, p.runState(r.State, r.Paused), when(r.StartedAt), took, failureCell(r.Failure))
		}
		tellMore(w, more, c.Limit)
	})
}

func failureCell(f *api.RunFailure) string {
	if f == nil {
		return "-"
	}
	text := f.Message
	if f.Step != "" {
		text = strings.TrimPrefix(text, "the step "+f.Step+": ") // a dead run's cause says it too
		text = f.Step + ": " + text
	}
	return oneLine(text)
}

// runState shows the state of a run in its colour.
func (p *program) runState(s flow.RunState, paused bool) string {
	switch {
	case paused && !s.Final():
		return p.paint(amber, string(s)+", paused")
	case s == flow.RunCompleted:
		return p.paint(green, string(s))
	case s == flow.RunFailed || s == flow.RunFailing:
		return p.paint(red, string(s))
	case s.Final() || s == flow.RunUndoing:
		return p.paint(amber, string(s))
	}
	return p.paint(bold, string(s))
}

// stepState shows the state of a step, and of its job while that is on its way.
func (p *program) stepState(s *api.RunStep) string {
	word, colour := string(s.State), ""
	switch s.State {
	case flow.StepCompleted:
		colour = green
	case flow.StepFailed, flow.StepDead:
		colour = red
	case flow.StepSkipped, flow.StepCancelled:
		colour = amber
	case flow.StepBlocked:
		word, colour = "-", dim
	case flow.StepSent:
		if s.Job != nil {
			word = string(s.Job.State)
		}
		if word == string(forebay.StateActive) {
			colour = bold
		}
	}
	if s.Undo != "" {
		word += ", undo " + string(s.Undo)
	}
	if colour == "" {
		return word
	}
	return p.paint(colour, word)
}

func (p *program) showRun(w io.Writer, r *api.FlowRun) {
	fmt.Fprintf(w, "run\t%s\nflow\t%s, version %d\nstate\t%s\nstarted\t%s\n", r.RunID, r.Flow, r.Version, p.runState(r.State, r.Paused), when(r.StartedAt))
	if !r.FinishedAt.IsZero() {
		fmt.Fprintf(w, "took\t%s\n", r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond))
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "why\t%s\n", failureCell(r.Failure))
	}
	fmt.Fprintf(w, "input\t%s\n", oneLine(string(r.Input)))
	if r.Output != nil {
		fmt.Fprintf(w, "output\t%s\n", oneLine(string(r.Output)))
	}
	for i := range r.Steps {
		fmt.Fprintf(w, "step\t%s\t%s\t%s\n", r.Steps[i].ID, p.stepState(&r.Steps[i]), stepNote(&r.Steps[i]))
	}
	for _, one := range r.Waiting {
		fmt.Fprintf(w, "waits\t%s\t%s\n", dash(one.Step), oneLine(one.Text))
	}
}

// stepNote is what else is to be said of a step.
func stepNote(s *api.RunStep) string {
	var notes []string
	if n := s.Items; n != nil {
		notes = append(notes, fmt.Sprintf("%d of %d done, %d failed, %d on their way", n.Done, n.Total, n.Failed, n.InFlight))
	}
	if j := s.Job; j != nil {
		if j.Attempts > 0 {
			notes = append(notes, fmt.Sprintf("%d failed attempts", j.Attempts))
		}
		if !j.Progress.At.IsZero() && !j.State.Final() {
			notes = append(notes, strings.TrimSpace(fmt.Sprintf("%.0f%% %s %s", j.Progress.Percent, j.Progress.Stage, j.Progress.Message)))
		}
	}
	if s.Round > 0 {
		notes = append(notes, fmt.Sprintf("round %d", s.Round+1))
	}
	if s.Error != nil {
		notes = append(notes, s.Error.Message)
	}
	if len(s.Chose) > 0 {
		notes = append(notes, "chose "+strings.Join(s.Chose, ", "))
	}
	if s.WentTo != "" {
		notes = append(notes, "went to "+s.WentTo)
	}
	return oneLine(strings.Join(notes, "; "))
}
