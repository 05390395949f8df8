package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/worker"
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
	Rate        int      `help:"At most so many a second. 0: what the target takes beside live work, which goes first."`
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
	if p.json {
		return p.watch(ctx, client, started.JobID)
	}
	end, err := client.WatchJob(ctx, started.JobID, p.follower())
	if err != nil {
		return err
	}
	var out history.Outcome
	if end.State != forebay.StateCompleted || json.Unmarshal(end.Result, &out) != nil {
		return endError(&end)
	}
	return p.print(out, func(w io.Writer) { showReplay(w, started.JobID, &out) })
}

// showReplay tells what a replay did, or a dry run would.
func showReplay(w io.Writer, job string, out *history.Outcome) {
	did := "replayed"
	if out.DryRun {
		did = "would be replayed"
	}
	fmt.Fprintf(w, "%s\t%d messages %s\n", job, out.Messages, did)
	if out.Messages > 0 {
		fmt.Fprintf(w, "sent\t%s to %s\n", when(out.First), when(out.Last))
	}
	if out.Refused > 0 {
		fmt.Fprintf(w, "refused\t%d of them\n", out.Refused)
	}
	if out.Reason != "" {
		fmt.Fprintf(w, "because\t%s\n", oneLine(out.Reason))
	}
}

// replayer is the handler of replays.
func (s *server) replayer() *history.Replayer {
	return &history.Replayer{Log: s.broker, Documents: s.broker, Target: s.replayTarget, Live: s.liveEvents}
}

func (s *server) replayTarget(r history.Request) (history.Target, error) {
	switch {
	case r.Into == history.IntoQueue:
		return history.ToQueue(s.broker, r.Name), nil
	case r.Into == history.IntoSink && s.sink != nil:
		return history.ToBatch(worker.BatchFunc(s.sink.Again)), nil
	case r.Into == history.IntoSink:
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "this server has no sink")
	}
	e := forebay.Errorf(forebay.CodeNotFound, "", "this server has no projection %q; programs that embed Forebay have them", r.Name)
	e.Field = "name"
	return nil, e
}

// replayable tells before a replay is a job what would end it at once.
func (s *server) replayable(r history.Request) error {
	_, err := s.replayTarget(r)
	return err
}

// liveWait is how long an event waits for its turn at most where the sink keeps up.
const liveWait = time.Second

// liveEvents tells how events come to the sink beside a replay into it.
func (s *server) liveEvents(ctx context.Context) (history.Live, error) {
	stats, err := s.broker.Stats(ctx, event.Queue)
	if err != nil || len(stats) == 0 {
		return history.Live{}, err
	}
	oldest := stats[0].Oldest
	return history.Live{Done: stats[0].Completed, Behind: !oldest.IsZero() && time.Since(oldest) > liveWait}, nil
}

// namedQueues are those that the settings name.
func (s *server) namedQueues() []string { return slices.Collect(maps.Keys(s.settings.Queues)) }
