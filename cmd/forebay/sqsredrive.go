package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqs"
	"github.com/forebayhq/forebay/event"
)

// sharedQueue is how commands reach the queue on SQS: by the settings, without a server.
type sharedQueue struct {
	settingsFlags `embed:""`
}

func (c sharedQueue) with(p *program, do func(e *sqs.Engine) error) error {
	settings, err := c.load(p)
	if err != nil {
		return err
	}
	if settings.SQS.URL == "" {
		return usage(errors.New("no queue on SQS is set: sqs.url, or AWS_SQS_QUEUE_URL"))
	}
	e, err := openSQS(settings, sqs.Config{})
	if err != nil {
		return err
	}
	return errors.Join(do(e), e.Close())
}

type sqsRedriveCmd struct {
	sharedQueue `embed:""`
	Rate        int  `help:"Messages a second at most, 1 to 500 (0: as fast as SQS likes)."`
	Detach      bool `help:"Do not wait for the end."`
}

func (sqsRedriveCmd) Help() string {
	return `SQS moves the messages of the dead-letter queue back to where they came from. Mend the cause first.
Ctrl-C ends the waiting, not the task; forebay sqs redrives shows it, and forebay sqs cancel ends it.

Examples:
  forebay sqs redrive --rate 50
  AWS_SQS_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/123456789012/events forebay sqs redrive --detach`
}

func (c *sqsRedriveCmd) Run(ctx context.Context, p *program) error {
	return c.with(p, func(e *sqs.Engine) error {
		task, err := e.Redrive(ctx, event.Queue, c.Rate)
		if err != nil {
			return err
		}
		if c.Detach {
			return p.print(map[string]string{"task": task}, func(w io.Writer) { fmt.Fprintln(w, task) })
		}
		return c.follow(ctx, p, e, task)
	})
}

// askEvery is how often a task is asked how far it is.
const askEvery = time.Second

func (c *sqsRedriveCmd) follow(ctx context.Context, p *program, e *sqs.Engine, task string) error {
	bar := p.bar()
	bar.Describe("redriving")
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	for {
		tasks, err := e.Redrives(ctx, event.Queue)
		if err != nil {
			return err
		}
		if len(tasks) == 0 {
			return forebay.Errorf(forebay.CodeNotFound, "", "SQS knows nothing of the task %s", task)
		}
		one := tasks[0]
		showMoved(bar, one)
		if one.State != engine.RedriveRunning && one.State != engine.RedriveCancelling {
			return c.ended(p, bar, one)
		}
		select {
		case <-ask.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func showMoved(bar *progressbar.ProgressBar, t engine.RedriveTask) {
	bar.ChangeMax64(max(t.ToMove, t.Moved, 1))
	_ = bar.Set64(t.Moved) // a bar that cannot be drawn changes nothing
}

func (c *sqsRedriveCmd) ended(p *program, bar *progressbar.ProgressBar, t engine.RedriveTask) error {
	_ = bar.Finish()
	if t.State == engine.RedriveFailed {
		return fmt.Errorf("the task failed after %s messages: %s", humanize.Comma(t.Moved), t.Reason)
	}
	return p.print(t, func(w io.Writer) { fmt.Fprintf(w, "%s, %s messages moved\n", t.State, humanize.Comma(t.Moved)) })
}

type sqsRedrivesCmd struct {
	sharedQueue `embed:""`
}

func (c *sqsRedrivesCmd) Run(ctx context.Context, p *program) error {
	return c.with(p, func(e *sqs.Engine) error {
		tasks, err := e.Redrives(ctx, event.Queue)
		if err != nil {
			return err
		}
		return p.print(tasks, func(w io.Writer) {
			if len(tasks) == 0 {
				fmt.Fprintln(w, "no redrive yet")
				return
			}
			fmt.Fprintln(w, "state\tmoved\tof\trate\tbegun\ttask\tbecause")
			for _, t := range tasks {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.State, humanize.Comma(t.Moved), humanize.Comma(t.ToMove),
					limit(float64(t.Rate), "/s"), when(t.Started), dash(t.Task), dash(t.Reason))
			}
		})
	})
}

type sqsCancelCmd struct {
	sharedQueue `embed:""`
	Task        string `arg:"" help:"The task, as redrives shows it."`
}

func (c *sqsCancelCmd) Run(ctx context.Context, p *program) error {
	return c.with(p, func(e *sqs.Engine) error {
		moved, err := e.CancelRedrive(ctx, event.Queue, c.Task)
		if err != nil {
			return err
		}
		return p.print(map[string]int64{"moved": moved}, func(w io.Writer) {
			fmt.Fprintf(w, "cancelled, %s messages were moved before\n", humanize.Comma(moved))
		})
	})
}
