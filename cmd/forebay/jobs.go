package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
)

type jobsCmd struct {
	Ls      jobsLsCmd      `cmd:"" default:"withargs" help:"List and search jobs."`
	Add     jobsAddCmd     `cmd:"" help:"Add a job."`
	Get     jobsGetCmd     `cmd:"" help:"Show a job: state, progress, data, result, failures."`
	Watch   watchCmd       `cmd:"" help:"Follow a job until its end."`
	Cancel  jobsCancelCmd  `cmd:"" help:"Cancel jobs; those that run are asked to stop."`
	Retry   jobsRetryCmd   `cmd:"" help:"Run finished jobs again."`
	Promote jobsPromoteCmd `cmd:"" help:"Let delayed jobs begin now."`
	Rm      jobsRmCmd      `cmd:"" help:"Remove finished jobs."`
}

type jobsLsCmd struct {
	serverFlags `embed:""`
	Filter      []string `arg:"" optional:"" help:"Terms that must all hold, such as state:dead queue:mail."`
	Limit       int      `default:"50" help:"At most so many."`
}

const filterHelp = `A filter has terms that must all hold: state:dead queue:mail kind:email.*
payload.user.id:42 since:1h until:2026-01-31T08:00:00Z error:"timed out" code:timeout
tag:x tenant:t group:g owner:o parent:ID id:ID. A repeated state means any of them.
`

func (jobsLsCmd) Help() string {
	return filterHelp + `
Examples:
  forebay jobs
  forebay jobs ls state:dead since:1h
  forebay jobs ls queue:mail payload.user.id:42 'error:"timed out"' --json`
}

func (c *jobsLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, after := []api.Job{}, ""
	for len(all) <= c.Limit { // one more tells whether there are more
		page, err := client.Jobs(ctx, strings.Join(c.Filter, " "), after, min(c.Limit+1-len(all), 1000))
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			break
		}
	}
	more := len(all) > c.Limit
	if more {
		all = all[:c.Limit]
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no jobs")
			return
		}
		fmt.Fprintln(w, "id\tqueue\tname\tstate\tprogress\tfailed\tsent\treason")
		for _, j := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", j.JobID, j.Queue, j.Name, p.state(j.State), progressCell(&j), j.Attempts, when(j.SentAt), oneLine(j.FailedReason))
		}
		if more {
			fmt.Fprintf(w, "there are more: --limit %d\n", c.Limit*10)
		}
	})
}

func progressCell(j *api.Job) string {
	if j.Progress.At.IsZero() {
		return "-"
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f%% %s", j.Progress.Percent, oneLine(j.Progress.Stage)))
}

// state shows a state in its colour.
func (p *program) state(s forebay.State) string {
	switch s {
	case forebay.StateCompleted:
		return p.paint(green, string(s))
	case forebay.StateDead, forebay.StateExpired:
		return p.paint(red, string(s))
	case forebay.StateActive:
		return p.paint(bold, string(s))
	case forebay.StateCancelled:
		return p.paint(amber, string(s))
	}
	return string(s)
}

type jobsGetCmd struct {
	serverFlags `embed:""`
	ID          string `arg:"" help:"Of the job."`
	Logs        bool   `help:"Also the lines that its handler wrote."`
	History     bool   `help:"Also what happened to it."`
}

func (jobsGetCmd) Help() string {
	return `Examples:
  forebay jobs get 0198f2c4-…
  forebay jobs get 0198f2c4-… --logs --history
  forebay jobs get 0198f2c4-… --json`
}

// shownJob is what get prints as JSON.
type shownJob struct {
	api.Job
	Logs    []api.LogLine `json:"logs,omitempty"`
	History any           `json:"history,omitempty"`
}

func (c *jobsGetCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	const most = 1000
	j, err := client.Job(ctx, c.ID)
	shown := shownJob{Job: j}
	var logs api.LogList
	var history api.EventList
	if err == nil && c.Logs {
		logs, err = client.JobLogs(ctx, c.ID, 0, most)
		shown.Logs = logs.Items
	}
	if err == nil && c.History {
		history, err = client.JobHistory(ctx, c.ID, 0, most)
		shown.History = history.Items
	}
	if err != nil {
		return err
	}
	return p.print(shown, func(w io.Writer) {
		p.showJob(w, &j)
		for _, l := range logs.Items {
			fmt.Fprintf(w, "log\t%s  %s\n", when(l.At), oneLine(l.Text))
		}
		for _, e := range history.Items {
			text := e.Text
			if e.Cause != nil {
				text = e.Cause.Code + ": " + e.Cause.Message
			} else if e.Progress != nil {
				text = fmt.Sprintf("%.0f%% %s %s", e.Progress.Percent, e.Progress.Stage, e.Progress.Message)
			}
			fmt.Fprintf(w, "history\t%s  %s  %s\n", when(e.At), e.Type, oneLine(text))
		}
	})
}

func (p *program) showJob(w io.Writer, j *api.Job) {
	fmt.Fprintf(w, "id\t%s\nqueue\t%s\nname\t%s\nstate\t%s\n", j.JobID, j.Queue, j.Name, p.state(j.State))
	fmt.Fprintf(w, "progress\t%s %s\n", progressCell(j), oneLine(j.Progress.Message))
	fmt.Fprintf(w, "tried\t%d failed attempts, %d deliveries\n", j.Attempts, j.Deliveries)
	fmt.Fprintf(w, "sent\t%s\n", when(j.SentAt))
	if !j.RunAt.IsZero() {
		fmt.Fprintf(w, "runs\t%s\n", when(j.RunAt))
	}
	fmt.Fprintf(w, "started\t%s\nfinished\t%s\n", when(j.StartedAt), when(j.FinishedAt))
	for _, f := range [][2]string{{"group", j.Group}, {"tenant", j.Tenant}, {"owner", j.Owner}, {"parent", j.Parent}, {"tags", strings.Join(j.Tags, " ")}} {
		if f[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
		}
	}
	for _, f := range j.Failures {
		printCause(w, "failed", f)
	}
	if j.Cause != nil {
		printCause(w, "cause", *j.Cause)
	}
	fmt.Fprintf(w, "data\t%s\n", oneLine(string(j.Data)))
	if j.Result != nil {
		fmt.Fprintf(w, "result\t%s\n", oneLine(string(j.Result)))
	}
}

// errNotMeant is for commands that act on many.
var errNotMeant = errors.New("name jobs by their ids, or say --filter or --all")
