package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay/api"
)

type deadRedriveCmd struct {
	serverFlags `embed:""`
	Queue       string `arg:"" help:"Whose dead letters another store keeps, as groups tells it."`
	Rate        int    `placeholder:"N" help:"A second at most, up to 500 (0: as fast as the store likes)."`
	Cancel      string `placeholder:"TASK" help:"End this task instead."`
	Status      bool   `help:"Tell how far the last task is, instead."`
}

func (deadRedriveCmd) Help() string {
	return `A queue on AWS SQS whose redrive policy names a dead-letter queue keeps its dead letters there.
SQS moves them back to where they came from, in the background, and forgets what they died of.

Examples:
  forebay dead redrive events --rate 50
  forebay dead redrive events --status`
}

func (c *deadRedriveCmd) Run(ctx context.Context, p *program) error {
	if c.Cancel != "" && c.Status || c.Rate > 0 && (c.Cancel != "" || c.Status) {
		return usage(errors.New("--rate, --cancel and --status do not go together"))
	}
	client, err := c.client(ctx, p)
	switch {
	case err != nil:
		return err
	case c.Status:
		return c.status(ctx, p, client)
	case c.Cancel != "":
		v, err := client.CancelRedrive(ctx, c.Queue, c.Cancel)
		if err != nil {
			return err
		}
		return p.print(v, func(w io.Writer) {
			fmt.Fprintf(w, "cancelled, %s messages were moved before\n", humanize.Comma(v.Moved))
		})
	}
	v, err := client.RedriveDead(ctx, c.Queue, c.Rate)
	if err != nil {
		return err
	}
	return p.print(v, func(w io.Writer) { fmt.Fprintln(w, v.Task) })
}

func (c *deadRedriveCmd) status(ctx context.Context, p *program, client *api.Client) error {
	list, err := client.DeadGroups(ctx, api.DeadGroupFilter{Queue: c.Queue}, "", 1)
	if err != nil {
		return err
	}
	if len(list.Elsewhere) == 0 {
		return fmt.Errorf("no other store keeps the dead letters of queue %q", c.Queue)
	}
	e := list.Elsewhere[0]
	return p.print(e, func(w io.Writer) {
		fmt.Fprintf(w, "there\tabout %s, %s\n", humanize.Comma(e.Count), e.Where)
		if e.Error != "" {
			fmt.Fprintf(w, "error\t%s\n", oneLine(e.Error))
		}
		if t := e.Latest; t != nil {
			fmt.Fprintf(w, "last task\t%s, %s of %s moved\n", t.State, humanize.Comma(t.Moved), humanize.Comma(t.ToMove))
			fmt.Fprintf(w, "task\t%s\nbegun\t%s\n", dash(t.Task), when(t.Started))
		}
	})
}
