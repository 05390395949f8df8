package main

import (
	"context"
	"fmt"
	"io"

	"github.com/forebayhq/forebay/api"
)

type badCmd struct {
	Ls      badLsCmd      `cmd:"" default:"withargs" help:"List rejected events, newest first."`
	Show    badShowCmd    `cmd:"" help:"Show one with its reason and bytes."`
	Replay  badReplayCmd  `cmd:"" help:"Validate them again, and send those that pass."`
	Discard badDiscardCmd `cmd:"" help:"Remove them for good."`
}

type badFilter struct {
	Code    string `placeholder:"CODE" help:"Only rejected for this."`
	WriteID string `name:"write-key" placeholder:"ID" help:"Only of the write key with this id."`
}

func (f badFilter) api() api.BadFilter { return api.BadFilter{Code: f.Code, KeyID: f.WriteID} }

type badLsCmd struct {
	serverFlags `embed:""`
	badFilter   `embed:""`
	Limit       int `default:"50" help:"At most so many."`
}

func (badLsCmd) Help() string {
	return `Examples:
  forebay bad ls
  forebay bad ls --code schema --json`
}

func (c *badLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, err := pages(c.Limit, func(before int64, limit int) ([]api.BadRow, int64, error) {
		page, err := client.Bad(ctx, c.api(), before, limit)
		return page.Items, page.Next, err
	})
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no bad rows")
			return
		}
		fmt.Fprintln(w, "seq\tcame\tdialect\tid\tcode\tat\treason")
		for _, r := range all {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Seq, when(r.At), r.Dialect, dash(r.EventID), r.Code, dash(r.Pointer), oneLine(r.Reason))
		}
	})
}

type badShowCmd struct {
	serverFlags `embed:""`
	Seq         int64 `arg:"" help:"Its number, as ls shows it."`
}

func (c *badShowCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	r, err := client.BadRow(ctx, c.Seq)
	if err != nil {
		return err
	}
	return p.print(r, func(w io.Writer) {
		fmt.Fprintf(w, "came\t%s\ndialect\t%s\nwrite key\t%s\nplace in batch\t%d\n", when(r.At), r.Dialect, dash(r.KeyID), r.Index)
		fmt.Fprintf(w, "event id\t%s\ncode\t%s\nat\t%s\nreason\t%s\n", dash(r.EventID), r.Code, dash(r.Pointer), oneLine(r.Reason))
		fmt.Fprintf(w, "bytes\t%s\n", r.Content.Bytes())
	})
}

type badReplayCmd struct {
	serverFlags `embed:""`
	badFilter   `embed:""`
	selectFlags `embed:""`
}

func (badReplayCmd) Help() string {
	return `Examples:
  forebay bad replay 3
  forebay bad replay --all --code schema`
}

func (c *badReplayCmd) Run(ctx context.Context, p *program) error {
	return p.act(ctx, c.serverFlags, c.selectFlags, "sent", func(client *api.Client, s api.Selection) (api.Outcome, error) {
		return client.ReplayBad(ctx, api.BadReplay{Selection: s, BadFilter: c.api()})
	})
}

type badDiscardCmd struct {
	serverFlags `embed:""`
	badFilter   `embed:""`
	selectFlags `embed:""`
	Reason      string `required:"" help:"Why, for the log of the server."`
}

func (c *badDiscardCmd) Run(ctx context.Context, p *program) error {
	return p.act(ctx, c.serverFlags, c.selectFlags, "discarded", func(client *api.Client, s api.Selection) (api.Outcome, error) {
		return client.DiscardBad(ctx, api.BadDiscard{Selection: s, BadFilter: c.api(), Reason: c.Reason})
	})
}
