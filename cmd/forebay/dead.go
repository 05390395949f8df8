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
	Groups  deadGroupsCmd  `cmd:"" help:"List them by cause."`
	Show    deadShowCmd    `cmd:"" help:"Show one with its cause and payload."`
	Replay  deadReplayCmd  `cmd:"" help:"Send them again, in the order in which they died."`
	Edit    deadEditCmd    `cmd:"" help:"Send one again with changes."`
	Discard deadDiscardCmd `cmd:"" help:"Remove them for good."`
	Actions deadActionsCmd `cmd:"" help:"What is done to many: list, show, pause, resume, cancel."`
	Redrive deadRedriveCmd `cmd:"" help:"Give back those that another store keeps, such as SQS."`
}

type deadFilter struct {
	Queue string `placeholder:"NAME" help:"Only of this queue."`
	Code  string `placeholder:"CODE" help:"Only with this cause, such as a SQLSTATE."`
	ID    string `placeholder:"ID" help:"Only of this message."`
	Group string `short:"g" placeholder:"GROUP" help:"Only of this cause, as groups shows it."`
}

func (f deadFilter) api() api.DeadFilter {
	return api.DeadFilter{Queue: f.Queue, Code: f.Code, ID: f.ID, Group: f.Group}
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

type deadGroupsCmd struct {
	serverFlags `embed:""`
	Queue       string `placeholder:"NAME" help:"Only of this queue."`
	Kind        string `placeholder:"KIND" help:"Only of this kind of jobs or messages."`
	Code        string `placeholder:"CODE" help:"Only with this cause, such as a SQLSTATE."`
	Order       string `enum:"newest,largest" default:"newest" help:"Which come first: newest, largest."`
	Limit       int    `default:"50" help:"At most so many."`
}

func (deadGroupsCmd) Help() string {
	return `Dead letters of one cause are a group: of one queue, kind and code, with texts that differ
only in numbers, ids and quoted values. Newest is the seq of the last that died, for show.

Examples:
  forebay dead groups
  forebay dead groups --queue mail --order largest --json
  forebay dead replay --group 1f3c9a70b2d4e586 --canary 10 --rate 500 --watch`
}

func (c *deadGroupsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	var all api.DeadGroupList
	for after := ""; ; {
		page, err := client.DeadGroups(ctx, api.DeadGroupFilter{Queue: c.Queue, Kind: c.Kind, Code: c.Code, Order: c.Order}, after, min(max(c.Limit-len(all.Items), 1), 1000))
		if err != nil {
			return err
		}
		all.Items, all.Partial, all.Next = append(all.Items, page.Items...), page.Partial, page.Next
		if after == "" {
			all.Elsewhere = page.Elsewhere
		}
		if after = page.Next; after == "" || len(all.Items) >= c.Limit {
			break
		}
	}
	return p.print(all, func(w io.Writer) { showGroups(w, &all) })
}

func showGroups(w io.Writer, all *api.DeadGroupList) {
	if len(all.Items) == 0 {
		fmt.Fprintln(w, "no dead letters")
	} else {
		fmt.Fprintln(w, "group\tcount\tfirst\tlast\tnewest\tqueue\tkind\tcode\tcause")
	}
	for _, g := range all.Items {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", g.Fingerprint, g.Count, when(g.FirstAt), when(g.LastAt), g.Sample, g.Queue, dash(g.Kind), g.Code, oneLine(g.Text))
	}
	if all.Next != "" {
		fmt.Fprintf(w, "there are more: --limit %d\n", len(all.Items)*10)
	}
	if all.Partial {
		fmt.Fprintln(w, "only the newest dead letters were looked at")
	}
	for _, e := range all.Elsewhere {
		fmt.Fprintf(w, "queue %s: about %d %s (forebay dead redrive %s)", e.Queue, e.Count, e.Where, e.Queue)
		if e.Error != "" {
			fmt.Fprintf(w, ", which cannot be asked just now: %s", oneLine(e.Error))
		}
		fmt.Fprintln(w)
	}
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
		fmt.Fprintf(w, "group\t%s\n", d.Fingerprint)
		if d.ReplayOf != "" {
			fmt.Fprintf(w, "replays\t%s, for the time %d\n", d.ReplayOf, d.Replays)
		}
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
