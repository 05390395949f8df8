package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/forebayhq/forebay/api"
)

type historyCmd struct {
	Ls     historyLsCmd     `cmd:"" default:"withargs" help:"List what happened to jobs, or what was sent."`
	Export historyExportCmd `cmd:"" help:"Write all of it to a file, or to standard output."`
}

// historyFlags say which part is meant.
type historyFlags struct {
	Of    string   `enum:"jobs,messages" default:"jobs" help:"jobs: what happened to them; messages: what was sent, such as events, also what was settled long ago."`
	Queue string   `placeholder:"NAME" help:"Only of this queue; of messages the default is events."`
	Type  []string `placeholder:"TYPE" help:"Only these: completed, dead, … of jobs; types of events."`
	Kind  []string `placeholder:"KIND" help:"Only jobs or messages of these kinds."`
	Job   string   `placeholder:"ID" help:"Only of the job or message with this id."`
	By    string   `name:"key-of" placeholder:"KEY" help:"Of messages: only of this user of an event, group or limit key."`
	From  string   `placeholder:"TIME" help:"A time as RFC 3339, or how long ago: -1h, 7d."`
	To    string   `placeholder:"TIME" help:"Likewise; before it."`
}

func (f *historyFlags) query() api.HistoryQuery {
	return api.HistoryQuery{Of: f.Of, Queue: f.Queue, Types: f.Type, Kinds: f.Kind, Job: f.Job, Key: f.By, From: f.From, To: f.To}
}

type historyLsCmd struct {
	serverFlags  `embed:""`
	historyFlags `embed:""`
	Limit        int   `default:"50" help:"At most so many."`
	After        int64 `help:"Only what has a larger number."`
}

func (historyLsCmd) Help() string {
	return `Examples:
  forebay history ls --type dead --from -1h
  forebay history ls --of messages --key-of user-42 --from 7d
  forebay history ls --job 0198f2c4-… --json`
}

func (c *historyLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	q, all := c.query(), []api.HistoryItem{}
	for q.After = c.After; len(all) < c.Limit; {
		q.Limit = min(c.Limit-len(all), 1000)
		page, err := client.History(ctx, q)
		if err != nil {
			return err
		}
		if all = append(all, page.Items...); !page.More {
			break
		}
		q.After = page.Next
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "nothing")
			return
		}
		fmt.Fprintln(w, "seq\tat\ttype\tqueue\tkind\tid\t")
		for _, h := range all {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Seq, when(h.At), h.Type, h.Queue, h.Kind, h.ID, oneLine(historyNote(&h)))
		}
	})
}

// historyNote is what there is to say of an item in a few words.
func historyNote(h *api.HistoryItem) string {
	switch {
	case h.Cause != nil:
		return h.Cause.Code + ": " + h.Cause.Message
	case h.Progress != nil:
		return fmt.Sprintf("%.0f %% %s %s", h.Progress.Percent, h.Progress.Stage, h.Progress.Message)
	case h.Text != "":
		return h.Text
	case h.Payload != nil:
		return string(h.Payload.Bytes())
	}
	return string(h.Result)
}

type historyExportCmd struct {
	serverFlags  `embed:""`
	historyFlags `embed:""`
	Format       string `enum:"ndjson,parquet" default:"ndjson" help:"ndjson: an item a line; parquet: a table for DuckDB, Spark, pandas, …"`
	Out          string `short:"o" type:"path" placeholder:"FILE" help:"Where to; default: standard output."`
}

func (historyExportCmd) Help() string {
	return `It reads all that is meant and ends with the newest.

Examples:
  forebay history export --of messages --from -24h -o day.ndjson
  forebay history export --of messages --type purchase --format parquet -o purchases.parquet`
}

func (c *historyExportCmd) Run(ctx context.Context, p *program) (err error) {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	out := p.out
	if c.Out != "" {
		f, err := os.OpenFile(c.Out, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return usage(err)
		}
		defer func() {
			if closed := f.Close(); err == nil {
				err = closed
			}
		}()
		out = f
	}
	items := 0
	write, end := ndjsonWriter(out)
	if c.Format == "parquet" {
		write, end = parquetWriter(out)
	}
	err = client.AllHistory(ctx, c.query(), func(h *api.HistoryItem) error {
		items++
		return write(h)
	})
	if err == nil {
		err = end()
	}
	if err == nil && c.Out != "" {
		fmt.Fprintf(p.err, "%d items written to %s\n", items, c.Out)
	}
	return err
}

// ndjsonWriter writes an item a line.
func ndjsonWriter(w io.Writer) (write func(*api.HistoryItem) error, end func() error) {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return func(h *api.HistoryItem) error { return lines.Encode(h) }, func() error { return nil }
}
