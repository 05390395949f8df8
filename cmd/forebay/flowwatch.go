package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
)

type flowWatchCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the run."`
}

func (flowWatchCmd) Help() string {
	return `Shows the steps as they go on a terminal, and a line for each change elsewhere. A
connection that breaks is resumed. The exit code is the run's end: 0 completed, 1 failed,
4 cancelled.

Examples:
  forebay flow watch 0198f2c4-…
  forebay flow watch 0198f2c4-… --json | jq -c 'select(.event == "step") | .step'`
}

func (c *flowWatchCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	return p.watchRun(ctx, client, c.ID)
}

// watchRun follows a run and ends as it did.
func (p *program) watchRun(ctx context.Context, client *api.Client, id string) error {
	b := &board{p: p, states: map[string]string{}}
	tell := b.lines
	switch {
	case p.json:
		lines := json.NewEncoder(p.out)
		lines.SetEscapeHTML(false)
		tell = func(u api.RunUpdate) error { return lines.Encode(u) }
	case p.terminal:
		tell = b.draw
	}
	end, err := client.WatchRun(ctx, id, tell)
	if err != nil {
		return err
	}
	if !p.json && !p.terminal {
		if err := p.print(end, func(w io.Writer) { p.showRun(w, &end) }); err != nil {
			return err
		}
	}
	if end.State == flow.RunCompleted {
		return nil
	}
	err = fmt.Errorf("run %s is %s: %s", end.RunID, end.State, failureCell(end.Failure))
	if end.State == flow.RunCancelled {
		return coded{err, exitCancelled}
	}
	return err
}

// board shows a run as it goes.
type board struct {
	p      *program
	run    *api.FlowRun
	drawn  int               // lines on the terminal
	states map[string]string // of steps, as they were told last
}

// take keeps what an update says of the run.
func (b *board) take(u api.RunUpdate) {
	if u.Run != nil {
		b.run = u.Run
	}
	if u.Step == nil || b.run == nil || u.Step.Undo {
		return
	}
	for i := range b.run.Steps {
		s := &b.run.Steps[i]
		if s.ID != u.Step.Step || s.Round != u.Step.Round {
			continue
		}
		if s.State == flow.StepBlocked {
			s.State = flow.StepSent
		}
		if s.Job == nil {
			s.Job = &api.Job{JobID: u.Step.JobID}
		}
		if u.Step.State != "" {
			s.Job.State = u.Step.State
		}
		if u.Step.Type == forebay.HistoryRetry {
			s.Job.Attempts = u.Step.Attempt
		}
		if u.Step.Progress != nil {
			s.Job.Progress = *u.Step.Progress
		}
	}
}

// draw writes the steps over what was there before.
func (b *board) draw(u api.RunUpdate) error {
	b.take(u)
	if b.run == nil {
		return nil
	}
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s %d\n", b.p.runState(b.run.State, b.run.Paused), b.run.Flow, b.run.Version)
	for i := range b.run.Steps {
		s := &b.run.Steps[i]
		fmt.Fprintf(w, "  %s\t%s\t%s%s\n", s.ID, b.p.stepState(s), progressBar(s), stepNote(s))
	}
	if u.Event == "done" && b.run.Output != nil {
		fmt.Fprintf(w, "output\t%s\n", oneLine(string(b.run.Output)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.drawn > 0 { // up, and all below it is cleared
		if _, err := fmt.Fprintf(b.p.out, "\x1b[%dA\x1b[J", b.drawn); err != nil {
			return err
		}
	}
	b.drawn = bytes.Count(out.Bytes(), []byte("\n"))
	_, err := b.p.out.Write(out.Bytes())
	return err
}

// progressBar is for a step whose job tells how far it is.
func progressBar(s *api.RunStep) string {
	const width = 20
	done := -1.0
	switch {
	case s.Items != nil && s.Items.Total > 0 && s.State == flow.StepSent:
		done = float64(s.Items.Done+s.Items.Failed) / float64(s.Items.Total)
	case s.Job != nil && !s.Job.Progress.At.IsZero() && s.State == flow.StepSent:
		done = s.Job.Progress.Percent / 100
	}
	if done < 0 {
		return ""
	}
	n := int(done * width)
	return strings.Repeat("█", n) + strings.Repeat("░", width-n) + "  "
}

// lines writes a line for each step that is otherwise than before.
func (b *board) lines(u api.RunUpdate) error {
	b.take(u)
	if b.run == nil {
		return nil
	}
	for i := range b.run.Steps {
		s := &b.run.Steps[i]
		now := strings.TrimSpace(b.p.stepState(s) + "  " + stepNote(s))
		if b.states[s.ID] == now || s.State == flow.StepBlocked {
			continue
		}
		b.states[s.ID] = now
		if _, err := fmt.Fprintf(b.p.out, "%s  %s\n", s.ID, now); err != nil {
			return err
		}
	}
	return nil
}
