package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
)

type queuesCmd struct {
	Ls     queuesLsCmd     `cmd:"" default:"withargs" help:"List queues and what waits in them."`
	Pause  queuesPauseCmd  `cmd:"" help:"Hand out nothing until it is resumed; sending goes on."`
	Resume queuesResumeCmd `cmd:"" help:"Hand out again."`
	Limit  queuesLimitCmd  `cmd:"" help:"Show or set how much is handed out."`
	Drain  queuesDrainCmd  `cmd:"" help:"Wait until a queue is empty."`
	Peek   queuesPeekCmd   `cmd:"" help:"Look at messages without handing them out."`
}

type queuesLsCmd struct {
	serverFlags `embed:""`
}

func (queuesLsCmd) Help() string {
	return `Examples:
  forebay queues
  forebay queues --json --url http://forebay.internal:8080 --key $KEY`
}

func (c *queuesLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	queues, err := client.Queues(ctx)
	if err != nil {
		return err
	}
	return p.print(queues, func(w io.Writer) {
		if len(queues) == 0 {
			fmt.Fprintln(w, "no queue yet: one comes to be with its first message")
			return
		}
		fmt.Fprintln(w, "queue\twaiting\tactive\tdelayed\tdead\toldest\tdrains\tcompleted\truns\t")
		for _, q := range queues {
			state := ""
			if q.Limits != nil && q.Limits.Paused {
				state = p.paint(amber, "paused")
			}
			oldest := "-"
			if q.Waiting > 0 {
				oldest = (time.Duration(q.OldestAgeSeconds*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.0f/s\t%s\t%s\t%s\n", q.Name, humanize.Comma(q.Waiting), humanize.Comma(q.Active),
				humanize.Comma(q.Delayed), humanize.Comma(q.Dead), oldest, q.DrainRate, humanize.Comma(q.Completed), concurrencyText(q.Concurrency), state)
		}
	})
}

type queuesPauseCmd struct {
	serverFlags `embed:""`
	Queue       string `arg:"" help:"Name of the queue."`
}

func (c *queuesPauseCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	limits, err := client.Pause(ctx, c.Queue)
	if err != nil {
		return err
	}
	return p.print(limits, func(w io.Writer) { fmt.Fprintf(w, "%s is paused\n", c.Queue) })
}

type queuesResumeCmd struct {
	serverFlags `embed:""`
	Queue       string `arg:"" help:"Name of the queue."`
}

func (c *queuesResumeCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	limits, err := client.Resume(ctx, c.Queue)
	if err != nil {
		return err
	}
	return p.print(limits, func(w io.Writer) { fmt.Fprintf(w, "%s is resumed\n", c.Queue) })
}
