package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
)

// meantFlags say which jobs a command is for.
type meantFlags struct {
	IDs    []string `arg:"" optional:"" name:"id" help:"Of the jobs."`
	Filter string   `short:"f" placeholder:"FILTER" help:"All that it means, instead of ids; see forebay jobs ls --help."`
	All    bool     `help:"All jobs, instead of ids."`
	DryRun bool     `help:"With a filter: only count, and show some."`
	Yes    bool     `short:"y" help:"Do it to more than one."`
}

type jobsCancelCmd struct {
	serverFlags `embed:""`
	meantFlags  `embed:""`
	Reason      string `help:"For the history."`
}

func (jobsCancelCmd) Help() string {
	return `Examples:
  forebay jobs cancel 0198f2c4-… --reason "wrong list"
  forebay jobs cancel -f 'queue:mail kind:newsletter.*' --dry-run
  forebay jobs cancel -f 'queue:mail kind:newsletter.*' --yes`
}

func (c *jobsCancelCmd) Run(ctx context.Context, p *program) error {
	return p.actOnJobs(ctx, c.serverFlags, c.meantFlags, "cancel", c.Reason, func(client *api.Client, id string) (api.Acted, error) {
		return client.CancelJob(ctx, id, c.Reason)
	})
}

type jobsRetryCmd struct {
	serverFlags `embed:""`
	meantFlags  `embed:""`
}

func (jobsRetryCmd) Help() string {
	return `A dead job runs again as itself. One that was completed, cancelled or expired is added
anew, with the old one as its parent; a filter means those only where it names their
state.

Examples:
  forebay jobs retry 0198f2c4-…
  forebay jobs retry -f 'queue:mail code:timeout since:1h' --yes`
}

func (c *jobsRetryCmd) Run(ctx context.Context, p *program) error {
	return p.actOnJobs(ctx, c.serverFlags, c.meantFlags, "retry", "", func(client *api.Client, id string) (api.Acted, error) {
		return client.RetryJob(ctx, id)
	})
}

type jobsPromoteCmd struct {
	serverFlags `embed:""`
	meantFlags  `embed:""`
}

func (jobsPromoteCmd) Help() string {
	return `Examples:
  forebay jobs promote 0198f2c4-…
  forebay jobs promote -f 'queue:mail' --yes`
}

func (c *jobsPromoteCmd) Run(ctx context.Context, p *program) error {
	return p.actOnJobs(ctx, c.serverFlags, c.meantFlags, "promote", "", func(client *api.Client, id string) (api.Acted, error) {
		return client.PromoteJob(ctx, id)
	})
}

type jobsRmCmd struct {
	serverFlags `embed:""`
	meantFlags  `embed:""`
}

func (jobsRmCmd) Help() string {
	return `What was removed cannot be had again.

Examples:
  forebay jobs rm 0198f2c4-…
  forebay jobs rm -f 'state:completed until:7d' --dry-run`
}

func (c *jobsRmCmd) Run(ctx context.Context, p *program) error {
	return p.actOnJobs(ctx, c.serverFlags, c.meantFlags, "remove", "", func(client *api.Client, id string) (api.Acted, error) {
		return client.RemoveJob(ctx, id)
	})
}

// actOnJobs does something with jobs that are named, or with all that a filter means.
func (p *program) actOnJobs(ctx context.Context, server serverFlags, which meantFlags, action, reason string,
	one func(*api.Client, string) (api.Acted, error)) error {
	filtered := which.Filter != "" || which.All
	switch {
	case filtered == (len(which.IDs) > 0), which.Filter != "" && which.All:
		return usage(errNotMeant)
	case which.DryRun && !filtered:
		return usage(errors.New("--dry-run goes with --filter or --all"))
	case len(which.IDs) > 1 && !which.Yes:
		return usage(fmt.Errorf("%d jobs are named; say --yes", len(which.IDs)))
	}
	client, err := server.client(ctx, p)
	if err != nil {
		return err
	}
	if !filtered {
		return p.actOnEach(client, which.IDs, action, one)
	}
	return p.actOnAll(ctx, client, which, api.BulkAction{Action: action, Q: which.Filter, All: which.All, Reason: reason})
}

// actedJob is what became of one, as JSON.
type actedJob struct {
	api.Acted
	Error string       `json:"error,omitempty"`
	Code  forebay.Code `json:"code,omitempty"`
}

func (p *program) actOnEach(client *api.Client, ids []string, action string, one func(*api.Client, string) (api.Acted, error)) error {
	all, failed := make([]actedJob, len(ids)), 0
	for i, id := range ids {
		v, err := one(client, id)
		if all[i].Acted = v; err == nil {
			continue
		}
		if len(ids) == 1 {
			return err
		}
		all[i] = actedJob{Acted: api.Acted{JobID: id}, Error: err.Error(), Code: forebay.CodeOf(err)}
		failed++
	}
	err := p.print(all, func(w io.Writer) {
		for _, v := range all {
			fmt.Fprintf(w, "%s\t%s%s\n", v.JobID, p.state(v.State), v.Error)
		}
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%s: %d of %d jobs failed", action, failed, len(ids))
	}
	return err
}

// actOnAll starts the job that does it, and follows it.
func (p *program) actOnAll(ctx context.Context, client *api.Client, which meantFlags, action api.BulkAction) error {
	look := action
	look.DryRun = true
	meant, err := client.ActOnJobs(ctx, look)
	if err != nil {
		return err
	}
	if which.DryRun {
		return p.print(meant, func(w io.Writer) {
			fmt.Fprintf(w, "%s jobs are meant\n", meantText(meant))
			for _, j := range meant.Sample {
				fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", j.JobID, j.Queue, j.Name, p.state(j.State))
			}
		})
	}
	if *meant.Matched > 1 && !which.Yes {
		return usage(fmt.Errorf("%s jobs are meant; look with --dry-run, or say --yes", meantText(meant)))
	}
	started, err := client.ActOnJobs(ctx, action)
	if err != nil {
		return err
	}
	end, err := client.WatchJob(ctx, started.JobID, p.follower())
	if err != nil {
		return err
	}
	var out api.BulkOutcome
	if end.State != forebay.StateCompleted || json.Unmarshal(end.Result, &out) != nil {
		return endError(&end)
	}
	err = p.print(out, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d done, %d not\n", out.Action, out.Done, out.Failed)
		for _, f := range out.Errors {
			fmt.Fprintf(w, "  %s\t%s\n", f.JobID, oneLine(f.Message))
		}
	})
	if err == nil && out.Failed > 0 {
		err = fmt.Errorf("%s: %d of %d jobs failed", out.Action, out.Failed, out.Matched)
	}
	return err
}

func meantText(b api.BulkStarted) string {
	if b.More {
		return fmt.Sprintf("more than %d", *b.Matched)
	}
	return fmt.Sprint(*b.Matched)
}
