package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
)

// The exit codes of watch beside 0 (completed) and 1 (dead, or it cannot be told).
const (
	exitCancelled = 4
	exitExpired   = 5
)

type watchCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the job."`
}

func (watchCmd) Help() string {
	return `Shows a bar on a terminal, and a line for each change elsewhere. A connection that
breaks is resumed. The exit code is the job's end: 0 completed, 1 dead, 4 cancelled,
5 expired.

Examples:
  forebay watch 0198f2c4-…
  forebay watch 0198f2c4-… --json | jq -c 'select(.event == "progress") | .job.progress'
  forebay jobs add reports monthly --watch`
}

func (c *watchCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	return p.watch(ctx, client, c.ID)
}

// watch follows a job and ends as it did.
func (p *program) watch(ctx context.Context, client *api.Client, id string) error {
	tell := p.follower()
	if p.json {
		lines := json.NewEncoder(p.out)
		lines.SetEscapeHTML(false)
		tell = func(u api.JobUpdate) error { return lines.Encode(u) }
	}
	end, err := client.WatchJob(ctx, id, tell)
	if err != nil {
		return err
	}
	if !p.json {
		if err := p.print(end, func(w io.Writer) { p.showEnd(w, &end) }); err != nil {
			return err
		}
	}
	return endError(&end)
}

func (p *program) showEnd(w io.Writer, j *api.Job) {
	took := "-"
	if !j.StartedAt.IsZero() && !j.FinishedAt.IsZero() {
		took = j.FinishedAt.Sub(j.StartedAt).Round(time.Millisecond).String()
	}
	fmt.Fprintf(w, "%s\t%s in %s\n", j.JobID, p.state(j.State), took)
	if j.Result != nil {
		fmt.Fprintf(w, "result\t%s\n", oneLine(string(j.Result)))
	}
}

// endError is nil for a job that was completed.
func endError(j *api.Job) error {
	reason := orElse(j.FailedReason, "no reason is known")
	err := fmt.Errorf("job %s is %s: %s", j.JobID, j.State, oneLine(reason))
	switch j.State {
	case forebay.StateCompleted:
		return nil
	case forebay.StateCancelled:
		return coded{err, exitCancelled}
	case forebay.StateExpired:
		return coded{err, exitExpired}
	}
	return err
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// follower shows what happens: a bar on a terminal, else lines.
func (p *program) follower() func(api.JobUpdate) error {
	if p.json {
		return func(api.JobUpdate) error { return nil }
	}
	if !p.terminal {
		return func(u api.JobUpdate) error { return p.line(u) }
	}
	bar := progressbar.NewOptions(100, progressbar.OptionSetWriter(p.out), progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(50*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))
	return func(u api.JobUpdate) error {
		if u.Log != nil {
			return errors.Join(bar.Clear(), p.line(u))
		}
		if u.Job == nil {
			return nil
		}
		bar.Describe(strings.TrimSpace(string(u.Job.State) + " " + oneLine(u.Job.Progress.Stage+" "+u.Job.Progress.Message)))
		if u.Event == "done" {
			return bar.Clear()
		}
		return bar.Set(int(min(max(u.Job.Progress.Percent, 0), 99))) // at 100 it would be gone
	}
}

// line shows one change as a line of text.
func (p *program) line(u api.JobUpdate) error {
	now := time.Now()
	text := u.Event
	switch {
	case u.Event == "done": // told by its own lines
		return nil
	case u.Log != nil:
		now, text = u.Log.At, "log  "+oneLine(u.Log.Text)
	case u.Job != nil && u.Event == "progress":
		at := u.Job.Progress
		now, text = at.At, fmt.Sprintf("%3.0f%%  %s  %s", at.Percent, oneLine(at.Stage), oneLine(at.Message))
	case u.Job != nil:
		text = string(u.Job.State)
		if !u.Job.State.Final() && u.Job.FailedReason != "" {
			text += "  " + oneLine(u.Job.FailedReason)
		}
	}
	_, err := fmt.Fprintf(p.out, "%s  %s\n", now.Local().Format("15:04:05.000"), strings.TrimRight(text, " "))
	return err
}
