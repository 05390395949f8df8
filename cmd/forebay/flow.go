package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
)

type flowCmd struct {
	Ls       flowLsCmd       `cmd:"" default:"withargs" help:"List flows."`
	Validate flowValidateCmd `cmd:"" help:"Tell all that is wrong with files, without a server."`
	Fmt      flowFmtCmd      `cmd:"" help:"Write files the usual way, without a server."`
	Diff     flowDiffCmd     `cmd:"" help:"Tell what a file does otherwise than another, or than what the server has."`
	DryRun   flowDryRunCmd   `cmd:"" help:"Tell what a run of a file would do with an input; nothing is sent."`
	Export   flowExportCmd   `cmd:"" help:"Write a flow as an Open Workflow document, without a server."`
	Import   flowImportCmd   `cmd:"" help:"Write an Open Workflow document as a flow, without a server."`
	Put      flowPutCmd      `cmd:"" help:"Store files, each as the next version of its flow."`
	Release  flowReleaseCmd  `cmd:"" help:"Approve a version that somebody else stored."`
	Restore  flowRestoreCmd  `cmd:"" help:"Store what a version says as the next version."`
	Show     flowShowCmd     `cmd:"" help:"Show a flow, or a run and what it waits for."`
	Run      flowRunCmd      `cmd:"" help:"Start a run."`
	Runs     flowRunsCmd     `cmd:"" help:"List runs."`
	Watch    flowWatchCmd    `cmd:"" help:"Follow a run until its end."`
	Cancel   flowCancelCmd   `cmd:"" help:"Cancel a run; what it did is undone by its compensations."`
	Pause    flowPauseCmd    `cmd:"" help:"Let nothing new begin in a run."`
	Resume   flowResumeCmd   `cmd:"" help:"Let a paused run go on."`
	Retry    flowRetryCmd    `cmd:"" help:"Go on from what has failed, or from a step."`
	Skip     flowSkipCmd     `cmd:"" help:"Go on as if a step had completed."`
	Discard  flowDiscardCmd  `cmd:"" help:"Give up the dead letter that a run waits for."`
	Approve  flowApproveCmd  `cmd:"" help:"Answer a step that waits for an approval."`
	Event    flowEventCmd    `cmd:"" help:"Tell all runs that wait for it of an event."`
}

type flowLsCmd struct {
	serverFlags `embed:""`
	Limit       int `default:"1000" help:"At most so many."`
}

func (flowLsCmd) Help() string {
	return `Examples:
  forebay flow ls
  forebay flow ls --json`
}

func (c *flowLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, more, err := listed(c.Limit, 200, func(after string, n int) ([]api.FlowInfo, string, error) {
		page, err := client.Flows(ctx, after, n)
		return page.Items, page.Next, err
	})
	if err != nil {
		return err
	}
	return p.print(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no flows; forebay flow put FILE stores one")
			return
		}
		fmt.Fprintln(w, "name\tversion\tsteps\tdescription")
		for _, f := range all {
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", f.Name, f.Version, f.Steps, dash(oneLine(f.Description)))
		}
		tellMore(w, more, c.Limit)
	})
}

// listed reads a list page by page, up to a limit, and tells whether there is more.
func listed[T any](limit, most int, page func(after string, n int) ([]T, string, error)) (all []T, more bool, err error) {
	all = []T{}
	for after := ""; len(all) <= limit; {
		items, next, err := page(after, min(limit+1-len(all), most))
		if err != nil {
			return nil, false, err
		}
		all = append(all, items...)
		if after = next; after == "" {
			break
		}
	}
	if more = len(all) > limit; more {
		all = all[:limit]
	}
	return all, more, nil
}

func tellMore(w io.Writer, more bool, limit int) {
	if more {
		fmt.Fprintf(w, "there are more: --limit %d\n", limit*10)
	}
}

type flowShowCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the flow, or id of a run."`
	Version     int    `help:"Of the flow; without it, the latest."`
	Source      bool   `help:"The file of the flow, as it was stored."`
	Versions    bool   `help:"The versions of the flow, and what each changed."`
}

func (flowShowCmd) Help() string {
	return `Examples:
  forebay flow show registration
  forebay flow show registration --source > registration.yaml
  forebay flow show registration --versions
  forebay flow show 0198f2c4-…`
}

func (c *flowShowCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	if c.Versions {
		return c.versions(ctx, p, client)
	}
	f, err := client.Flow(ctx, c.Name, c.Version)
	if forebay.CodeOf(err) == forebay.CodeNotFound && c.Version == 0 && !c.Source {
		r, none := client.Run(ctx, c.Name)
		if none == nil {
			return p.print(r, func(w io.Writer) { p.showRun(w, &r) })
		}
		err = fmt.Errorf("there is no flow and no run %q", c.Name)
	}
	if err != nil {
		return err
	}
	if c.Source && !p.json {
		_, err := io.WriteString(p.out, f.Source)
		return err
	}
	return p.print(f, func(w io.Writer) {
		fmt.Fprintf(w, "flow\t%s, version %d of %d\n", f.Name, f.Version, f.Latest)
		if f.Description != "" {
			fmt.Fprintf(w, "what\t%s\n", oneLine(f.Description))
		}
		if f.Timeout > 0 {
			fmt.Fprintf(w, "timeout\t%s\n", time.Duration(f.Timeout))
		}
		for _, s := range f.Steps {
			fmt.Fprintf(w, "step\t%s\t%s\t%s\n", s.ID, strings.Join(s.Needs, " "), stepText(&s))
		}
		for _, one := range f.Problems {
			fmt.Fprintf(w, "%s\t%s\n", p.paint(amber, "warning"), flow.Problem(one))
		}
	})
}

// stepText is what a step does, and what if it fails.
func stepText(s *api.FlowStep) string {
	text := s.Does
	if s.Queue != "" && s.Queue != flow.DefaultQueue {
		text += " on " + s.Queue
	}
	if s.When != "" {
		text += ", when " + s.When
	}
	if s.OnFailure != "" && s.OnFailure != string(flow.Fail) {
		text += "; on failure " + s.OnFailure
	}
	return oneLine(text)
}

func (c *flowShowCmd) versions(ctx context.Context, p *program, client *api.Client) error {
	list, err := client.FlowVersions(ctx, c.Name, 0, 200)
	if err != nil {
		return err
	}
	return p.print(list.Items, func(w io.Writer) {
		for _, v := range list.Items {
			fmt.Fprintf(w, "%d\t\t%s\n", v.Version, p.paint(dim, releaseText(&v.Release)))
			for _, change := range v.Changes {
				fmt.Fprintf(w, "%d\t%s\t%s\n", v.Version, change.Step, oneLine(change.Text))
			}
		}
	})
}

type flowPutCmd struct {
	serverFlags `embed:""`
	Files       []string `arg:"" name:"file" help:"Files of flows."`
}

func (flowPutCmd) Help() string {
	return `A file that says the same as the latest version makes no new one. Runs that go on keep
theirs.

Examples:
  forebay flow put registration.yaml
  forebay flow put flows/*.yaml`
}

func (c *flowPutCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	var all []api.PutFlow
	for _, file := range c.Files {
		v, err := putFile(ctx, client, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, v)
	}
	return p.print(all, func(w io.Writer) {
		for i, v := range all {
			note := ""
			if !v.Created {
				note = ", as it was"
			}
			fmt.Fprintf(w, "%s\tversion %d%s\n", v.Name, v.Version, note)
			for _, one := range v.Problems {
				fmt.Fprintf(w, "%s:%s\n", c.Files[i], flow.Problem(one))
			}
		}
	})
}

// putFile stores a file under the name that stands in it.
func putFile(ctx context.Context, client *api.Client, file string) (api.PutFlow, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return api.PutFlow{}, err
	}
	d, problems := flow.Parse(src)
	if d == nil || d.Name == "" {
		return api.PutFlow{}, problems
	}
	return client.PutFlow(ctx, d.Name, src)
}
