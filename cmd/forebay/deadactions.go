package main

import (
	"context"
	"fmt"
	"io"

	"github.com/forebayhq/forebay/api"
)

type deadActionsCmd struct {
	Ls     deadActionsLsCmd     `cmd:"" default:"withargs" help:"List those of the last 30 days, the newest first."`
	Show   deadActionsShowCmd   `cmd:"" help:"Show how far one is."`
	Pause  deadActionsPauseCmd  `cmd:"" help:"Stop one for now."`
	Resume deadActionsResumeCmd `cmd:"" help:"Go on where one stopped."`
	Cancel deadActionsCancelCmd `cmd:"" help:"End one; it can still be resumed."`
}

type deadActionsLsCmd struct {
	serverFlags `embed:""`
}

func (c *deadActionsLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, err := client.DeadActions(ctx)
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no action yet")
			return
		}
		fmt.Fprintln(w, "id\tstarted\taction\tstate\tdone\tnot\tof\tmeant\tby")
		for i := range all {
			v := &all[i]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", v.ID, when(v.StartedAt), v.Action, p.workState(v), v.Done, v.Failed, workTotal(v), workFilter(v), dash(v.By))
		}
	})
}

// oneAction is an action in a command.
type oneAction struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the action, as replay and actions tell it."`
}

func (c *oneAction) change(ctx context.Context, p *program, verb string, watch bool) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	v, err := client.ChangeDeadAction(ctx, c.ID, verb)
	if err != nil {
		return err
	}
	if watch {
		return p.followDead(ctx, client, v)
	}
	return p.print(v, func(w io.Writer) { p.showWork(w, &v) })
}

type deadActionsShowCmd struct {
	oneAction `embed:""`
	Watch     bool `short:"w" help:"Follow it until its end."`
}

func (deadActionsShowCmd) Help() string {
	return `With --watch the exit code tells the end, as of forebay dead replay --watch.

Examples:
  forebay dead actions show 0198f2c4-…
  forebay dead actions show 0198f2c4-… --watch`
}

func (c *deadActionsShowCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	v, err := client.DeadAction(ctx, c.ID)
	if err != nil {
		return err
	}
	if c.Watch {
		return p.followDead(ctx, client, v)
	}
	return p.print(v, func(w io.Writer) { p.showWork(w, &v) })
}

type deadActionsPauseCmd struct {
	oneAction `embed:""`
}

func (c *deadActionsPauseCmd) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "pause", false)
}

type deadActionsResumeCmd struct {
	oneAction `embed:""`
	Watch     bool `short:"w" help:"Follow it until its end."`
}

func (deadActionsResumeCmd) Help() string {
	return `One whose canary has not passed begins with another canary, of what is left.`
}

func (c *deadActionsResumeCmd) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "resume", c.Watch)
}

type deadActionsCancelCmd struct {
	oneAction `embed:""`
}

func (c *deadActionsCancelCmd) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "cancel", false)
}

// showWork tells how far an action is.
func (p *program) showWork(w io.Writer, v *api.DeadWork) {
	fmt.Fprintf(w, "%s\t%s of %s: %s\n", v.ID, v.Action, workFilter(v), p.workState(v))
	fmt.Fprintf(w, "done\t%d of %s, %d failed\n", v.Done, workTotal(v), v.Failed)
	if v.Rate > 0 {
		fmt.Fprintf(w, "rate\t%g a second at most\n", v.Rate)
	}
	if v.Into != "" {
		fmt.Fprintf(w, "into\t%s\n", v.Into)
	}
	if v.Reason != "" {
		fmt.Fprintf(w, "reason\t%s\n", oneLine(v.Reason))
	}
	if c := v.Canary; c != nil {
		fmt.Fprintf(w, "canary\t%s: %d of %d passed, %d lost, %d unknown\n", orElse(c.Verdict, "no verdict yet"), c.Passed, max(c.Sent, c.Count), c.Lost, c.Unknown)
		for _, f := range c.Failures {
			fmt.Fprintf(w, "  %s\t%s: %s\n", f.JobID, f.Code, oneLine(f.Message))
		}
	}
	fmt.Fprintf(w, "started\t%s\nended\t%s\nruns\t%d\n", when(v.StartedAt), when(v.EndedAt), v.Runs)
	for _, f := range v.Errors {
		fmt.Fprintf(w, "  %d\t%s\n", f.Seq, oneLine(f.Message))
	}
}

// workState shows how an action stands in its colour.
func (p *program) workState(v *api.DeadWork) string {
	switch v.State {
	case api.DeadCompleted:
		return p.paint(green, string(v.State))
	case api.DeadStopped, api.DeadInterrupted:
		return p.paint(red, string(v.State))
	case api.DeadPaused, api.DeadCancelled:
		return p.paint(amber, string(v.State))
	}
	return string(v.State)
}

func workTotal(v *api.DeadWork) string {
	if v.More {
		return fmt.Sprintf("more than %d", v.Total)
	}
	return fmt.Sprint(v.Total)
}

// workFilter says which dead letters are meant.
func workFilter(v *api.DeadWork) string {
	text := ""
	for _, f := range [][2]string{{"queue", v.Filter.Queue}, {"code", v.Filter.Code}, {"group", v.Filter.Group}, {"id", v.Filter.ID}} {
		if f[1] == "" {
			continue
		}
		if text != "" {
			text += " "
		}
		text += f[0] + ":" + f[1]
	}
	return orElse(text, "all")
}

func pastOf(action string) string {
	if action == "discard" {
		return "discarded"
	}
	return "sent again"
}
