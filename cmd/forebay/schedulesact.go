package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/schedule"
)

// scheduleFlags are what a schedule is made of. Those that are not named stay.
type scheduleFlags struct {
	Cron     *string           `placeholder:"TEXT" help:"Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly."`
	Every    *duration         `placeholder:"TIME" help:"Instead of a cron text: 90s, 1h30m, 7d."`
	Timezone *string           `placeholder:"ZONE" help:"Of the cron text, such as Europe/Berlin; UTC where none is named."`
	Start    *time.Time        `placeholder:"TIME" help:"No tick before, as RFC 3339."`
	End      *time.Time        `placeholder:"TIME" help:"No tick after."`
	Limit    *int64            `placeholder:"N" help:"How many jobs are added in all; 0: no limit."`
	Jitter   *duration         `placeholder:"TIME" help:"Each job begins up to so much after its tick."`
	Missed   *schedule.Missed  `placeholder:"WHAT" help:"What ticks do that came due while no server ran: skip, once (the default), all."`
	Overlap  *schedule.Overlap `placeholder:"WHAT" help:"What a tick does while the former job has not finished: allow (the default), skip, wait, cancel."`

	Priority *int              `help:"0 is the most urgent, 9 the least."`
	Attempts *int              `help:"Failed ones before a job is dead."`
	Timeout  *duration         `placeholder:"TIME" help:"Of one attempt."`
	Deadline *duration         `placeholder:"TIME" help:"Of the whole job."`
	Expires  *duration         `placeholder:"TIME" help:"A job that has not begun by then is expired."`
	Group    *string           `placeholder:"KEY" help:"Jobs of one group run in order."`
	LimitKey *string           `placeholder:"KEY" help:"The key of per-key limits."`
	Tenant   *string           `help:"Tenants of a queue take turns."`
	Owner    *string           `help:"Who is told when a job is late or fails."`
	Tag      []string          `help:"To find jobs by; may be repeated."`
	Header   map[string]string `help:"NAME=VALUE; may be repeated."`
}

// over puts what was named over a definition.
func (f *scheduleFlags) over(d *api.ScheduleDefinition) {
	if f.Cron != nil {
		d.Cron, d.Every = *f.Cron, 0
	}
	if f.Every != nil {
		d.Every = api.Duration(*f.Every)
		if f.Cron == nil {
			d.Cron, d.Timezone = "", ""
		}
	}
	named(&d.Timezone, f.Timezone)
	named(&d.Start, f.Start)
	named(&d.End, f.End)
	named(&d.Limit, f.Limit)
	named(&d.Jitter, (*api.Duration)(f.Jitter))
	named(&d.Missed, f.Missed)
	named(&d.Overlap, f.Overlap)
	j := &d.Job
	if f.Priority != nil {
		j.Priority = f.Priority
	}
	named(&j.Attempts, f.Attempts)
	named(&j.Timeout, (*api.Duration)(f.Timeout))
	named(&j.Deadline, (*api.Duration)(f.Deadline))
	named(&j.Expires, (*api.Duration)(f.Expires))
	named(&j.Group, f.Group)
	named(&j.LimitKey, f.LimitKey)
	named(&j.Tenant, f.Tenant)
	named(&j.Owner, f.Owner)
	if len(f.Tag) > 0 {
		j.Tags = f.Tag
	}
	if len(f.Header) > 0 {
		j.Headers = f.Header
	}
}

func named[T any](into *T, v *T) {
	if v != nil {
		*into = *v
	}
}

type schedulesAddCmd struct {
	serverFlags   `embed:""`
	Name          string `arg:"" help:"Name of the schedule."`
	Queue         string `arg:"" help:"Name of the queue."`
	Job           string `arg:"" help:"Name of the job: which handler it is for."`
	Data          string `arg:"" optional:"" help:"Its data, as JSON; @FILE reads a file, - standard input."`
	scheduleFlags `embed:""`
	Paused        bool `help:"Let no tick happen until it is resumed."`
}

const scheduleTimesHelp = `Times of a cron text are local times of its zone. Where clocks are put forward, a time
that does not exist is taken for the next moment that does; where they are put back, the
first of two counts. With * for the hour a schedule goes on evenly.
`

func (schedulesAddCmd) Help() string {
	return scheduleTimesHelp + `
Examples:
  forebay schedules add nightly reports daily '{"kind":"sales"}' --cron "30 2 * * *" --timezone Europe/Berlin
  forebay schedules add poll work fetch --every 90s --overlap skip --missed skip
  forebay schedules add launch mail welcome @mail.json --cron "0 9 * * 1-5" --start 2026-12-01T00:00:00Z --limit 20`
}

func (c *schedulesAddCmd) Run(ctx context.Context, p *program) error {
	data, err := p.jsonArg(c.Data)
	if err != nil {
		return err
	}
	none := int64(0)
	put := api.PutSchedule{Rev: &none}
	put.Job.Queue, put.Job.Name, put.Job.Data = c.Queue, c.Job, data
	put.Paused = &c.Paused
	c.over(&put.ScheduleDefinition)
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	s, err := client.PutSchedule(ctx, c.Name, put)
	if err != nil {
		return err
	}
	return p.print(s, func(w io.Writer) { fmt.Fprintf(w, "%s is added\tnext: %s\n", s.Name, p.nextTick(&s)) })
}

type schedulesSetCmd struct {
	serverFlags   `embed:""`
	Name          string  `arg:"" help:"Name of the schedule."`
	Queue         *string `help:"Name of the queue."`
	Job           *string `help:"Name of the job."`
	JobData       string  `placeholder:"JSON" help:"Its data, as JSON; @FILE reads a file, - standard input."`
	scheduleFlags `embed:""`
}

func (schedulesSetCmd) Help() string {
	return `What the schedule has done stays. Other times hold from now on.

Examples:
  forebay schedules set nightly --cron "0 4 * * *"
  forebay schedules set nightly --job-data '{"kind":"stock"}' --attempts 3`
}

func (c *schedulesSetCmd) Run(ctx context.Context, p *program) error {
	data, err := p.jsonArg(c.JobData)
	if err != nil {
		return err
	}
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	before, err := client.Schedule(ctx, c.Name)
	if err != nil {
		return err
	}
	put := api.PutSchedule{ScheduleDefinition: before.ScheduleDefinition, Rev: &before.Rev}
	named(&put.Job.Queue, c.Queue)
	named(&put.Job.Name, c.Job)
	if data != nil {
		put.Job.Data = data
	}
	c.over(&put.ScheduleDefinition)
	s, err := client.PutSchedule(ctx, c.Name, put)
	if err != nil {
		return err
	}
	return p.print(s, func(w io.Writer) { fmt.Fprintf(w, "%s is changed\tnext: %s\n", s.Name, p.nextTick(&s)) })
}

type schedulesRmCmd struct {
	serverFlags `embed:""`
	Names       []string `arg:"" help:"Names of schedules."`
}

func (schedulesRmCmd) Help() string {
	return `Examples:
  forebay schedules rm nightly`
}

func (c *schedulesRmCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	gone := []api.ScheduleGone{}
	var failed []error
	for _, name := range c.Names {
		g, err := client.DeleteSchedule(ctx, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		gone = append(gone, g)
	}
	err = p.print(gone, func(w io.Writer) {
		for _, g := range gone {
			fmt.Fprintf(w, "%s is deleted\n", g.Name)
		}
	})
	return errors.Join(append(failed, err)...)
}

type schedulesPauseCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the schedule."`
}

func (c *schedulesPauseCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	s, err := client.PauseSchedule(ctx, c.Name)
	if err != nil {
		return err
	}
	return p.print(s, func(w io.Writer) { fmt.Fprintf(w, "%s is paused\n", s.Name) })
}

type schedulesResumeCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the schedule."`
}

func (c *schedulesResumeCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	s, err := client.ResumeSchedule(ctx, c.Name)
	if err != nil {
		return err
	}
	return p.print(s, func(w io.Writer) { fmt.Fprintf(w, "%s is resumed\tnext: %s\n", s.Name, p.nextTick(&s)) })
}

type schedulesRunCmd struct {
	serverFlags    `embed:""`
	Name           string `arg:"" help:"Name of the schedule."`
	IdempotencyKey string `placeholder:"KEY" help:"Running the same command again with it adds nothing."`
	Watch          bool   `help:"Follow the job until its end."`
}

func (schedulesRunCmd) Help() string {
	return `Its ticks go on as before, and its limit does not count the job. Its overlap holds.

Examples:
  forebay schedules run nightly --watch`
}

func (c *schedulesRunCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	run, err := client.RunSchedule(ctx, c.Name, c.IdempotencyKey)
	if err != nil {
		return err
	}
	if c.Watch {
		return p.watch(ctx, client, run.JobID)
	}
	return p.print(run, func(w io.Writer) { fmt.Fprintln(w, run.JobID) })
}
