package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
)

type deadCmd struct {
	Ls      deadLsCmd      `cmd:"" default:"withargs" help:"List dead letters, newest first."`
	Show    deadShowCmd    `cmd:"" help:"Show one with its cause and payload."`
	Replay  deadReplayCmd  `cmd:"" help:"Send them again, in the order in which they died."`
	Discard deadDiscardCmd `cmd:"" help:"Remove them for good."`
}

type deadFilter struct {
	Queue string `placeholder:"NAME" help:"Only of this queue."`
	Code  string `placeholder:"CODE" help:"Only with this cause, such as a SQLSTATE."`
	ID    string `placeholder:"ID" help:"Only of this message."`
}

func (f deadFilter) api() api.DeadFilter {
	return api.DeadFilter{Queue: f.Queue, Code: f.Code, ID: f.ID}
}

type deadLsCmd struct {
	serverFlags `embed:""`
	deadFilter  `embed:""`
	Limit       int `default:"50" help:"At most so many."`
}

func (deadLsCmd) Help() string {
	return `Examples:
  forebay dead ls
  forebay dead ls --code 23514 --json`
}

func (c *deadLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, err := pages(c.Limit, func(before int64, limit int) ([]api.DeadLetter, int64, error) {
		page, err := client.Dead(ctx, c.api(), before, limit)
		return page.Items, page.Next, err
	})
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no dead letters")
			return
		}
		fmt.Fprintln(w, "seq\tdied\tqueue\tid\tcode\tcause")
		for _, d := range all {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", d.Seq, when(d.DiedAt), d.Message.Queue, d.Message.ID, d.Cause.Code, oneLine(d.Cause.Message))
		}
	})
}

type deadShowCmd struct {
	serverFlags `embed:""`
	Seq         int64 `arg:"" help:"Its number, as ls shows it."`
}

func (c *deadShowCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	d, err := client.DeadLetter(ctx, c.Seq)
	if err != nil {
		return err
	}
	return p.print(d, func(w io.Writer) {
		fmt.Fprintf(w, "id\t%s\nqueue\t%s\nkind\t%s\n", d.Message.ID, d.Message.Queue, d.Message.Kind)
		fmt.Fprintf(w, "sent\t%s\ndied\t%s\n", when(d.SentAt), when(d.DiedAt))
		fmt.Fprintf(w, "tried\t%d attempts, %d deliveries\n", d.Attempts, d.Deliveries)
		printCause(w, "cause", d.Cause)
		for _, f := range d.Failures {
			printCause(w, "before", f)
		}
		fmt.Fprintf(w, "payload\t%s\n", d.Message.Payload.Bytes())
	})
}

func printCause(w io.Writer, name string, c forebay.Cause) {
	fmt.Fprintf(w, "%s\t%s: %s\n", name, c.Code, oneLine(c.Message))
	for _, k := range slices.Sorted(maps.Keys(c.Detail)) {
		fmt.Fprintf(w, "  %s\t%s\n", k, oneLine(c.Detail[k]))
	}
}

type deadReplayCmd struct {
	serverFlags `embed:""`
	deadFilter  `embed:""`
	selectFlags `embed:""`
}

func (deadReplayCmd) Help() string {
	return `Examples:
  forebay dead replay 17 18
  forebay dead replay --all --code 23514 --dry-run`
}

func (c *deadReplayCmd) Run(ctx context.Context, p *program) error {
	return p.act(ctx, c.serverFlags, c.selectFlags, "sent again", func(client *api.Client, s api.Selection) (api.Outcome, error) {
		return client.ReplayDead(ctx, api.DeadReplay{Selection: s, DeadFilter: c.api()})
	})
}

type deadDiscardCmd struct {
	serverFlags `embed:""`
	deadFilter  `embed:""`
	selectFlags `embed:""`
	Reason      string `required:"" help:"Why, for the log of the server."`
}

func (deadDiscardCmd) Help() string {
	return `Examples:
  forebay dead discard 17 --reason "test traffic"
  forebay dead discard --all --queue events --reason "agreed with the shop team"`
}

func (c *deadDiscardCmd) Run(ctx context.Context, p *program) error {
	return p.act(ctx, c.serverFlags, c.selectFlags, "discarded", func(client *api.Client, s api.Selection) (api.Outcome, error) {
		return client.DiscardDead(ctx, api.DeadDiscard{Selection: s, DeadFilter: c.api(), Reason: c.Reason})
	})
}
