package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/forebayhq/forebay/api"
)

type schedulesCmd struct {
	Ls      schedulesLsCmd      `cmd:"" default:"withargs" help:"List schedules, their next ticks and what the last ones did."`
	Show    schedulesShowCmd    `cmd:"" help:"Show a schedule."`
	Add     schedulesAddCmd     `cmd:"" help:"Add a schedule."`
	Set     schedulesSetCmd     `cmd:"" help:"Change a schedule; what is not named stays."`
	Rm      schedulesRmCmd      `cmd:"" help:"Delete schedules; their jobs stay."`
	Pause   schedulesPauseCmd   `cmd:"" help:"Let no tick happen until it is resumed."`
	Resume  schedulesResumeCmd  `cmd:"" help:"Let ticks happen again, from now on."`
	Run     schedulesRunCmd     `cmd:"" help:"Add a job of a schedule at once."`
	Preview schedulesPreviewCmd `cmd:"" help:"Tell the next ticks of a schedule, or of a cron text."`
}

type schedulesLsCmd struct {
	serverFlags `embed:""`
	Limit       int `default:"1000" help:"At most so many."`
}

func (schedulesLsCmd) Help() string {
	return `Examples:
  forebay schedules
  forebay schedules ls --json`
}

func (c *schedulesLsCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	all, after := []api.Schedule{}, ""
	for len(all) <= c.Limit { // one more tells whether there are more
		page, err := client.Schedules(ctx, after, min(c.Limit+1-len(all), 200))
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
			fmt.Fprintln(w, "no schedules; forebay schedules add --help tells how to add one")
			return
		}
		fmt.Fprintln(w, "name\twhen\tqueue\tjob\tnext\tjobs\tskipped\tlast\t")
		for _, s := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", s.Name, scheduleTimes(&s), s.Job.Queue, s.Job.Name,
				p.nextTick(&s), s.Count, s.Skipped, outcomeCell(&s), p.paint(red, oneLine(s.Trouble)))
		}
		if more {
			fmt.Fprintf(w, "there are more: --limit %d\n", c.Limit*10)
		}
	})
}

// scheduleTimes is when a schedule has ticks.
func scheduleTimes(s *api.Schedule) string {
	if s.Cron == "" {
		return "every " + time.Duration(s.Every).String()
	}
	return strings.TrimSpace(s.Cron + "  " + s.Timezone)
}

func (p *program) nextTick(s *api.Schedule) string {
	switch {
	case s.Paused != nil && *s.Paused:
		return p.paint(amber, "paused")
	case s.Next.IsZero():
		return "none"
	}
	return when(s.Next)
}

// outcomeCell is what the last tick did, and what its job is now.
func outcomeCell(s *api.Schedule) string {
	switch {
	case s.Last == nil:
		return "-"
	case s.Last.JobID == "":
		return "skipped: " + s.Last.Code
	case s.LastJob != nil && s.LastJob.JobID == s.Last.JobID && s.LastJob.State != "":
		return string(s.LastJob.State)
	}
	return "added"
}

type schedulesShowCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the schedule."`
}

func (schedulesShowCmd) Help() string {
	return `Examples:
  forebay schedules show nightly
  forebay schedules show nightly --json`
}

func (c *schedulesShowCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	s, err := client.Schedule(ctx, c.Name)
	if err != nil {
		return err
	}
	return p.print(s, func(w io.Writer) { p.showSchedule(w, &s) })
}

func (p *program) showSchedule(w io.Writer, s *api.Schedule) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	line("name", s.Name)
	line("when", scheduleTimes(s))
	line("next", p.nextTick(s))
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"start", s.Start}, {"end", s.End}} {
		if !t.at.IsZero() {
			line(t.name, when(t.at))
		}
	}
	if s.Limit > 0 {
		line("limit", fmt.Sprintf("%d jobs", s.Limit))
	}
	if s.Jitter > 0 {
		line("jitter", time.Duration(s.Jitter).String())
	}
	line("missed", string(s.Missed))
	line("overlap", string(s.Overlap))
	job, err := json.Marshal(s.Job)
	if err == nil {
		line("job", string(job))
	}
	line("done", fmt.Sprintf("%d jobs added, %d ticks skipped", s.Count, s.Skipped))
	line("last tick", outcomeLine(s.Last))
	if s.LastSkip != nil && s.LastSkip != s.Last {
		line("last skipped", outcomeLine(s.LastSkip))
	}
	if s.LastJob != nil {
		line("last job", s.LastJob.JobID+"  "+string(s.LastJob.State))
	}
	line("trouble", p.paint(red, s.Trouble))
}

func outcomeLine(o *api.ScheduleOutcome) string {
	switch {
	case o == nil:
		return ""
	case o.JobID != "":
		return when(o.Tick) + "  added " + o.JobID
	}
	return when(o.Tick) + "  skipped, " + o.Code + ": " + oneLine(o.Reason)
}

type schedulesPreviewCmd struct {
	serverFlags `embed:""`
	Name        string    `arg:"" optional:"" help:"Name of a schedule; else --cron or --every."`
	Cron        string    `placeholder:"TEXT" help:"A cron text."`
	Every       duration  `placeholder:"TIME" help:"How often."`
	Timezone    string    `placeholder:"ZONE" help:"Of the cron text; UTC where none is named."`
	Start       time.Time `placeholder:"TIME" help:"No tick before, as RFC 3339."`
	End         time.Time `placeholder:"TIME" help:"No tick after."`
	N           int       `short:"n" default:"10" help:"How many."`
}

func (schedulesPreviewCmd) Help() string {
	return `Examples:
  forebay schedules preview nightly
  forebay schedules preview --cron "30 2 * * *" --timezone Europe/Berlin -n 20`
}

func (c *schedulesPreviewCmd) Run(ctx context.Context, p *program) error {
	client, err := c.client(ctx, p)
	if err != nil {
		return err
	}
	var ticks []time.Time
	if c.Name != "" {
		ticks, err = client.PreviewSchedule(ctx, c.Name, c.N)
	} else {
		ticks, err = client.PreviewDefinition(ctx, api.PreviewSchedule{
			Cron: c.Cron, Every: api.Duration(c.Every), Timezone: c.Timezone, Start: c.Start, End: c.End, N: c.N,
		})
	}
	if err != nil {
		return err
	}
	return p.print(ticks, func(w io.Writer) {
		if len(ticks) == 0 {
			fmt.Fprintln(w, "none")
		}
		for _, t := range ticks {
			fmt.Fprintln(w, t.Format("Mon 2006-01-02 15:04:05 -0700"))
		}
	})
}
