package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/monitor"
)

type healthCmd struct {
	serverFlags `embed:""`
	Fail        string `enum:"never,warning,critical" default:"never" help:"Exit with 1 at this grade or worse: never, warning, critical."`
}

func (healthCmd) Help() string {
	return `Examples:
  forebay health
  forebay health --fail critical --url http://forebay.internal:8080 --key $KEY`
}

func (c *healthCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	h, err := client.Health(ctx)
	if err != nil {
		return err
	}
	err = p.print(h, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n", p.grade(h.Grade))
		for _, part := range h.Parts {
			if part.Grade != monitor.Healthy {
				fmt.Fprintf(w, "%s\t%s\t%s\n", part.Name, p.grade(part.Grade), oneLine(part.Text))
			}
		}
		for _, q := range h.Queues {
			for _, r := range q.Reasons {
				fmt.Fprintf(w, "%s\t%s\t%s\n", q.Queue, p.grade(r.Grade), oneLine(r.Text))
			}
		}
	})
	if least := monitor.Grade(c.Fail); err == nil && least != "never" && least.Worse(h.Grade) == h.Grade {
		return fmt.Errorf("the grade is %s", h.Grade)
	}
	return err
}

func (p *program) grade(g monitor.Grade) string {
	return p.paint(map[monitor.Grade]string{monitor.Healthy: green, monitor.Warning: amber, monitor.Critical: red}[g], string(g))
}

type alertsCmd struct {
	Ls   alertsLsCmd   `cmd:"" default:"withargs" help:"List the rules of alerts, with what they fire for now."`
	Mute alertsMuteCmd `cmd:"" help:"Tell nothing of a rule for a while."`
}

type alertsLsCmd struct {
	serverFlags `embed:""`
}

func (c *alertsLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	rules, err := client.AlertRules(ctx)
	if err != nil {
		return err
	}
	return p.print(rules, func(w io.Writer) {
		fmt.Fprintln(w, "rule\tof\tlimit\tfor\tstate\tsubjects")
		for _, r := range rules {
			state, subjects := p.paint(green, "quiet"), append([]string{}, r.Pending...)
			switch {
			case len(r.Firing) > 0:
				state, subjects = p.paint(red, "fires"), nil
				for _, s := range r.Firing {
					subjects = append(subjects, cmp.Or(s.Name, "this server")+"="+strconv.FormatFloat(s.Value, 'g', 6, 64))
				}
			case len(r.Pending) > 0:
				state = p.paint(amber, "pending")
			}
			if !r.MutedUntil.IsZero() {
				state += ", muted until " + when(r.MutedUntil)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Of, thresholdText(&r), time.Duration(r.For), state, dash(strings.Join(subjects, " ")))
		}
	})
}

func thresholdText(r *api.AlertRule) string {
	if r.Under != nil {
		return "under " + strconv.FormatFloat(*r.Under, 'f', -1, 64)
	}
	if r.Over == nil {
		return "-"
	}
	return "over " + strconv.FormatFloat(*r.Over, 'f', -1, 64)
}

type alertsMuteCmd struct {
	serverFlags `embed:""`
	Rule        string        `arg:"" help:"Its name, as ls shows it."`
	For         time.Duration `default:"1h" help:"For how long, up to 720h; 0 ends a mute."`
	Reason      string        `placeholder:"TEXT" help:"Why; it is shown and kept."`
}

func (alertsMuteCmd) Help() string {
	return `Examples:
  forebay alerts mute disk --for 2h --reason "a bigger disk comes"
  forebay alerts mute disk --for 0s`
}

func (c *alertsMuteCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	r, err := client.MuteAlert(ctx, c.Rule, c.For, c.Reason)
	if err != nil {
		return err
	}
	return p.print(r, func(w io.Writer) {
		if r.MutedUntil.IsZero() {
			fmt.Fprintf(w, "%s is told again\n", r.Name)
			return
		}
		fmt.Fprintf(w, "nothing is told of %s until %s\n", r.Name, when(r.MutedUntil))
	})
}
