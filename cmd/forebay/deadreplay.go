package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forebayhq/forebay/api"
)

// deadMeant says which dead letters a command is for.
type deadMeant struct {
	Seqs   []int64 `arg:"" optional:"" name:"seq" help:"Their numbers, as ls shows them."`
	All    bool    `help:"All there are, instead of numbers or a filter."`
	Limit  int     `help:"With a filter or --all: at most so many, at once."`
	DryRun bool    `help:"Only count, and show some."`
	Watch  bool    `short:"w" help:"With a filter or --all: follow it until its end."`
}

// check tells whether many are meant, by a filter or all of them, or some by number.
func (m *deadMeant) check(f deadFilter) (many bool, err error) {
	filtered := f != deadFilter{}
	switch {
	case len(m.Seqs) > 0 && (filtered || m.All):
		return false, usage(errors.New("name some by their numbers, or say a filter or --all, not both"))
	case len(m.Seqs) == 0 && !filtered && !m.All:
		return false, usage(errors.New("name some by their numbers, or say a filter (--queue, --code, --group, --id) or --all"))
	case len(m.Seqs) > 0 && m.Watch:
		return false, usage(errors.New("--watch is for a filter or --all; some numbers are done at once"))
	}
	return len(m.Seqs) == 0 && m.Limit == 0, nil
}

// selection is for what the server does while it is waited for.
func (m *deadMeant) selection() api.Selection {
	return api.Selection{Seqs: m.Seqs, All: len(m.Seqs) == 0, Limit: m.Limit, DryRun: m.DryRun}
}

type deadReplayCmd struct {
	serverFlags `embed:""`
	deadFilter  `embed:""`
	deadMeant   `embed:""`

	Into          string   `placeholder:"QUEUE" help:"Another queue than the one in which they died."`
	Canary        int      `placeholder:"N" help:"First so many; the others only if these end well."`
	CanaryFailed  int      `placeholder:"N" help:"So many of the canary may be lost (0)."`
	CanaryTimeout duration `placeholder:"TIME" help:"The canary has to end well within this (10m)."`
	Rate          float64  `placeholder:"N" help:"A second at most (0: as fast as it goes)."`
}

func (deadReplayCmd) Help() string {
	return `Some numbers are sent at once. A filter or --all begins an action, which goes on without this
command, also after a restart of the server: forebay dead actions shows, pauses, resumes and
cancels it. What dies from then on is not meant.

A canary is lost at the first failed attempt of one of it; then nothing more is sent, and the
exit code is 1. With --watch the exit code is 0 only when all were sent again, 4 when it was
cancelled.

Examples:
  forebay dead replay 17 18
  forebay dead replay --all --dry-run
  forebay dead replay --group 1f3c9a70b2d4e586 --canary 10 --rate 500 --watch
  forebay dead replay --code 23514 --into events-slow --rate 50`
}

func (c *deadReplayCmd) Run(ctx context.Context, p *program) error {
	many, err := c.check(c.deadFilter)
	if err != nil {
		return err
	}
	if !many && (c.Canary > 0 || c.Rate > 0) {
		return usage(errors.New("--canary and --rate are for a filter or --all, without --limit"))
	}
	if c.Canary == 0 && (c.CanaryFailed > 0 || c.CanaryTimeout > 0) {
		return usage(errors.New("--canary-failed and --canary-timeout go with --canary"))
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	if !many {
		out, err := client.ReplayDead(ctx, api.DeadReplay{Selection: c.selection(), DeadFilter: c.api(), Into: c.Into})
		if err != nil {
			return err
		}
		return p.outcome(out, "sent again")
	}
	a := api.DeadAction{Action: "replay", DeadFilter: c.api(), All: c.deadFilter == deadFilter{}, Rate: c.Rate, Into: c.Into}
	if c.Canary > 0 {
		a.Canary = &api.Canary{Count: c.Canary, MaxFailed: c.CanaryFailed, Timeout: api.Duration(c.CanaryTimeout)}
	}
	return p.actOnDead(ctx, client, a, c.deadMeant)
}

type deadDiscardCmd struct {
	serverFlags `embed:""`
	deadFilter  `embed:""`
	deadMeant   `embed:""`
	Reason      string `required:"" help:"Why, for the history."`
}

func (deadDiscardCmd) Help() string {
	return `What was discarded cannot be had again. A filter or --all begins an action, as replay does.

Examples:
  forebay dead discard 17 --reason "test traffic"
  forebay dead discard --queue events --dry-run --reason "agreed with the shop team"
  forebay dead discard --group 1f3c9a70b2d4e586 --reason "customer has left" --watch`
}

func (c *deadDiscardCmd) Run(ctx context.Context, p *program) error {
	many, err := c.check(c.deadFilter)
	if err != nil {
		return err
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	if !many {
		out, err := client.DiscardDead(ctx, api.DeadDiscard{Selection: c.selection(), DeadFilter: c.api(), Reason: c.Reason})
		if err != nil {
			return err
		}
		return p.outcome(out, "discarded")
	}
	return p.actOnDead(ctx, client, api.DeadAction{Action: "discard", DeadFilter: c.api(), All: c.deadFilter == deadFilter{}, Reason: c.Reason}, c.deadMeant)
}

// actOnDead begins an action on many dead letters, and follows it if that is wanted.
func (p *program) actOnDead(ctx context.Context, client *api.Client, a api.DeadAction, which deadMeant) error {
	a.DryRun = which.DryRun
	work, err := client.ActOnDead(ctx, a)
	if err != nil {
		return err
	}
	if which.DryRun {
		return p.print(work, func(w io.Writer) {
			fmt.Fprintf(w, "%s would be %s\n", workTotal(&work), pastOf(a.Action))
			for _, d := range work.Sample {
				fmt.Fprintf(w, "  %d\t%s\t%s\t%s\n", d.Seq, when(d.DiedAt), d.Message.Queue, oneLine(d.Cause.Message))
			}
		})
	}
	if which.Watch {
		return p.followDead(ctx, client, work)
	}
	return p.print(work, func(w io.Writer) {
		fmt.Fprintf(w, "%s\t%s of %s dead letters has begun\n", work.ID, a.Action, workTotal(&work))
	})
}

// followDead follows an action, and ends as it did.
func (p *program) followDead(ctx context.Context, client *api.Client, work api.DeadWork) error {
	if work.State == api.DeadRunning {
		if _, err := client.WatchJob(ctx, work.JobID, p.follower()); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("it goes on without you; forebay dead actions cancel %s ends it", work.ID)
			}
			return err
		}
	}
	end, err := settledDead(ctx, client, work.ID)
	if err != nil {
		return err
	}
	if err := p.print(end, func(w io.Writer) { p.showWork(w, &end) }); err != nil {
		return err
	}
	return endOfWork(&end)
}

// settledDead reads an action whose job has just ended: what was stored last may be a
// moment behind.
func settledDead(ctx context.Context, client *api.Client, id string) (api.DeadWork, error) {
	const tries, every = 20, 50 * time.Millisecond
	again := time.NewTicker(every)
	defer again.Stop()
	for range tries {
		w, err := client.DeadAction(ctx, id)
		if err != nil || w.State != api.DeadRunning {
			return w, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return w, ctx.Err()
		}
	}
	return client.DeadAction(ctx, id)
}

// endOfWork is nil for an action that did all that it was to do, or that may go on.
func endOfWork(v *api.DeadWork) error {
	switch v.State {
	case api.DeadCompleted:
		if v.Failed > 0 {
			return fmt.Errorf("%d of %s were not %s", v.Failed, workTotal(v), pastOf(v.Action))
		}
	case api.DeadStopped:
		return fmt.Errorf("the canary has not passed (%s); mend the cause, then: forebay dead actions resume %s", v.Canary.Verdict, v.ID)
	case api.DeadCancelled:
		return coded{fmt.Errorf("it was cancelled after %d of %s; forebay dead actions resume %s goes on", v.Done, workTotal(v), v.ID), exitCancelled}
	case api.DeadInterrupted:
		return fmt.Errorf("its job has ended before it was done; forebay dead actions resume %s goes on", v.ID)
	}
	return nil
}
