package main

import (
	"context"
	"fmt"
	"io"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/history"
)

type replayCmd struct {
	serverFlags `embed:""`
	Queue       string   `default:"events" placeholder:"NAME" help:"What was sent to it."`
	From        string   `placeholder:"TIME" help:"A time as RFC 3339, or how long ago: -1h, 7d. Default: from the oldest."`
	To          string   `placeholder:"TIME" help:"Likewise; before it. Default: to the newest."`
	Type        []string `placeholder:"TYPE" help:"Only these types of events, or kinds of messages."`
	By          string   `name:"key-of" placeholder:"KEY" help:"Only of this user of an event, group or limit key."`
	ID          string   `placeholder:"ID" help:"Only this message."`
	Into        string   `required:"" enum:"queue,sink,projection" help:"queue, sink or projection."`
	Name        string   `placeholder:"NAME" help:"Of the queue (default: the one it was sent to), or of the projection."`
	Rate        int      `help:"At most so many a second. 0: half of what the target takes, so that live work goes first."`
	DryRun      bool     `help:"Only count."`
	NoWait      bool     `help:"Do not follow it; it goes on in the server."`
}

func (replayCmd) Help() string {
	return `What was sent in a time is sent again, by a job of the server that goes on after a
restart. A sink writes no event twice; messages into a queue get ids of their own, the
same ones whenever a batch is repeated, and are the least urgent there.

Examples:
  forebay replay --from -2h --to -1h --into sink --dry-run
  forebay replay --from 2026-01-31T08:00:00Z --to 2026-01-31T09:00:00Z --type purchase --into queue --name recount --rate 500
  forebay replay --into projection --name orders`
}

func (c *replayCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	started, err := client.ReplayHistory(ctx, api.HistoryReplay{
		Queue: c.Queue, Types: c.Type, Key: c.By, ID: c.ID, From: c.From, To: c.To,
		Into: c.Into, Name: c.Name, Rate: c.Rate, DryRun: c.DryRun,
	})
	if err != nil {
		return err
	}
	if c.NoWait {
		return p.print(started, func(w io.Writer) {
			fmt.Fprintf(w, "%s\treplays; forebay watch %s follows it, forebay jobs cancel %s stops it\n", started.JobID, started.JobID, started.JobID)
		})
	}
	return p.watch(ctx, client, started.JobID)
}

// replayer is the handler of replays.
func (s *server) replayer() *history.Replayer {
	return &history.Replayer{Log: s.broker, Documents: s.broker, Target: s.replayTarget}
}

func (s *server) replayTarget(r history.Request) (history.Target, error) {
	switch {
	case r.Into == history.IntoQueue:
		return history.ToQueue(s.broker, r.Name), nil
	case r.Into == history.IntoSink && s.sink != nil:
		return history.ToBatch(s.sink), nil
	case r.Into == history.IntoSink:
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "this server has no sink")
	}
	return nil, forebay.Errorf(forebay.CodeNotFound, "", "this server has no projection %q", r.Name)
}
