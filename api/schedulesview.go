package api

import (
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/schedule"
)

// ScheduleDefinition says when which job is added. Cron or every is needed, and of the
// job queue and name.
type ScheduleDefinition struct {
	Cron     string           `json:"cron,omitempty" maxLength:"256" example:"30 8 * * 1-5" doc:"Minute, hour, day of the month, month, day of the week; with six fields the first is the second; or @hourly, @daily, @weekly, @monthly, @yearly."`
	Every    Duration         `json:"every,omitzero" doc:"Instead of cron: whole seconds, counted from start, or from when the schedule was made."`
	Timezone string           `json:"timezone,omitempty" example:"Europe/Berlin" doc:"Of cron; absent: UTC. A local time that does not exist is taken for the next moment that does; of one that exists twice the first counts. With * for the hour a schedule goes on evenly."`
	Start    time.Time        `json:"start,omitzero" doc:"No tick before."`
	End      time.Time        `json:"end,omitzero" doc:"No tick after."`
	Limit    int64            `json:"limit,omitempty" minimum:"0" doc:"How many jobs are added in all; absent: no limit."`
	Jitter   Duration         `json:"jitter,omitzero" doc:"Each job begins up to so much after its tick."`
	Missed   schedule.Missed  `json:"missed,omitempty" enum:"skip,once,all" doc:"What becomes of ticks that came due while no server ran: nothing, one job for all of them (the default), or a job each for the newest 100."`
	Overlap  schedule.Overlap `json:"overlap,omitempty" enum:"allow,skip,wait,cancel" doc:"What a tick does while the former job has not finished: add its job all the same (the default), nothing, add a job that waits for it, or cancel it."`
	Paused   *bool            `json:"paused,omitempty" doc:"Absent: as it is."`
	Job      ScheduledJob     `json:"job"`
}

// ScheduledJob is the job that a schedule adds.
type ScheduledJob struct {
	Queue      string            `json:"queue"`
	Name       string            `json:"name" doc:"Its kind: which handler it is for."`
	Data       json.RawMessage   `json:"data,omitempty" doc:"Any JSON, at most 1 MiB; absent: null."`
	Headers    map[string]string `json:"headers,omitempty" doc:"Beside schedule and tick, which each job has."`
	Priority   *int              `json:"priority,omitempty" minimum:"0" maximum:"9" doc:"0 is the most urgent, 9 the least; absent: 5."`
	Attempts   int               `json:"attempts,omitempty" minimum:"0"`
	Deliveries int               `json:"deliveries,omitempty" minimum:"0"`
	Backoff    *Backoff          `json:"backoff,omitempty"`
	Timeout    Duration          `json:"timeout,omitzero" doc:"Of one attempt."`
	Deadline   Duration          `json:"deadline,omitzero" doc:"Of the whole, from when it may begin."`
	Expires    Duration          `json:"expires,omitzero" doc:"Not begun by then, from when it may, it is expired."`
	Group      string            `json:"group,omitempty" doc:"Not with overlap wait or cancel, which need it."`
	LimitKey   string            `json:"limitKey,omitempty"`
	Tags       []string          `json:"tags,omitempty" doc:"Beside schedule:NAME, which each job has."`
	Tenant     string            `json:"tenant,omitempty"`
	Owner      string            `json:"owner,omitempty"`
	Retention  *Retention        `json:"retention,omitempty"`
}

// PutSchedule is a definition, and perhaps which one it replaces.
type PutSchedule struct {
	ScheduleDefinition
	Rev *int64 `json:"rev,omitempty" minimum:"0" doc:"The revision of the schedule that is replaced; 0: there must be none; absent: whatever there is."`
}

// Schedule is a schedule as it is shown.
type Schedule struct {
	Name string `json:"name"`
	ScheduleDefinition
	Rev      int64            `json:"rev"`
	Since    time.Time        `json:"since" doc:"When it was made."`
	Next     time.Time        `json:"next,omitzero" doc:"Its next tick; absent: there is none, or none while it is paused."`
	Count    int64            `json:"count" doc:"Jobs that its ticks added."`
	Skipped  int64            `json:"skipped" doc:"Ticks that added none."`
	Last     *ScheduleOutcome `json:"last,omitempty" doc:"What became of the latest tick."`
	LastSkip *ScheduleOutcome `json:"lastSkip,omitempty" doc:"Of the latest tick that added no job."`
	LastJob  *LastJob         `json:"lastJob,omitempty"`
	Pending  int              `json:"pending,omitempty" doc:"Jobs that are due and could not be added yet."`
	Trouble  string           `json:"trouble,omitempty" doc:"Why it does not do what it should."`
}

// ScheduleOutcome is what became of a tick.
type ScheduleOutcome struct {
	Tick   time.Time `json:"tick"`
	At     time.Time `json:"at" doc:"When that was so."`
	JobID  string    `json:"jobId,omitempty" doc:"The job that was added."`
	Code   string    `json:"code,omitempty" doc:"Why it was skipped: missed, overlap, exists, uncertain, or the code of an error."`
	Reason string    `json:"reason,omitempty"`
}

// LastJob is the job that was added last, by a tick or by hand.
type LastJob struct {
	JobID string        `json:"jobId"`
	State forebay.State `json:"state,omitempty" doc:"Absent: it has left the ledger, or is not there yet."`
}

func (d *ScheduleDefinition) definition(name string, paused bool) (schedule.Definition, error) {
	if d.Paused != nil {
		paused = *d.Paused
	}
	j := &d.Job
	v := schedule.Definition{
		Name: name, Cron: d.Cron, Every: time.Duration(d.Every), Timezone: d.Timezone, Start: d.Start, End: d.End,
		Limit: d.Limit, Jitter: time.Duration(d.Jitter), Missed: d.Missed, Overlap: d.Overlap, Paused: paused,
		Job: schedule.Template{
			Queue: j.Queue, Kind: j.Name, Data: j.Data, Headers: j.Headers, Group: j.Group, LimitKey: j.LimitKey,
			Limits:  forebay.Limits{Attempts: j.Attempts, Deliveries: j.Deliveries},
			Timeout: time.Duration(j.Timeout), Deadline: time.Duration(j.Deadline), Expires: time.Duration(j.Expires),
			Tenant: j.Tenant, Owner: j.Owner, Tags: j.Tags,
		},
	}
	if p := j.Priority; p != nil {
		if *p < 0 || *p > 9 {
			return v, wrong("job.priority", "the priority is %d; 0 (most urgent) to 9 are allowed", *p)
		}
		v.Job.Priority = forebay.At(*p)
	}
	if b := j.Backoff; b != nil {
		v.Job.Backoff = forebay.Backoff{Kind: b.Kind, Base: time.Duration(b.Base), Cap: time.Duration(b.Cap), Jitter: b.Jitter}
	}
	if r := j.Retention; r != nil {
		v.Job.Keep = forebay.Retention{Finished: r.Finished.keep(), Dead: r.Dead.keep()}
	}
	return v, nil
}

// showSchedule is the way back.
func showSchedule(s schedule.Schedule) Schedule {
	d := &s.Definition
	v := Schedule{
		Name: s.Name, Rev: s.Rev, Since: s.Since, Next: s.Next, Count: s.Count, Skipped: s.Skipped,
		Last: showOutcome(s.Last), LastSkip: showOutcome(s.Skip), Pending: len(s.Pending), Trouble: s.Trouble,
		ScheduleDefinition: ScheduleDefinition{
			Cron: d.Cron, Every: Duration(d.Every), Timezone: d.Timezone, Start: d.Start, End: d.End, Limit: d.Limit,
			Jitter: Duration(d.Jitter), Missed: d.Missed, Overlap: d.Overlap, Job: showScheduledJob(&d.Job),
		},
	}
	if d.Paused {
		v.Paused = &d.Paused
	}
	if s.LastJob != "" {
		v.LastJob = &LastJob{JobID: s.LastJob}
	}
	return v
}

func showScheduledJob(t *schedule.Template) ScheduledJob {
	j := ScheduledJob{
		Queue: t.Queue, Name: t.Kind, Data: t.Data, Headers: t.Headers, Attempts: t.Limits.Attempts, Deliveries: t.Limits.Deliveries,
		Timeout: Duration(t.Timeout), Deadline: Duration(t.Deadline), Expires: Duration(t.Expires),
		Group: t.Group, LimitKey: t.LimitKey, Tags: t.Tags, Tenant: t.Tenant, Owner: t.Owner,
	}
	if t.Priority != 0 {
		j.Priority = ptr(t.Priority.Level())
	}
	if b := t.Backoff; b != (forebay.Backoff{}) {
		j.Backoff = &Backoff{Kind: b.Kind, Base: Duration(b.Base), Cap: Duration(b.Cap), Jitter: b.Jitter}
	}
	if k := t.Keep; k != (forebay.Retention{}) {
		j.Retention = &Retention{Finished: showKeep(k.Finished), Dead: showKeep(k.Dead)}
	}
	return j
}

func showKeep(k forebay.Keep) *Keep {
	if k == (forebay.Keep{}) {
		return nil
	}
	return &Keep{Age: Duration(k.Age), Count: k.Count, None: k.None}
}

func showOutcome(o *schedule.Outcome) *ScheduleOutcome {
	if o == nil {
		return nil
	}
	return &ScheduleOutcome{Tick: o.Tick, At: o.At, JobID: o.Job, Code: o.Code, Reason: o.Reason}
}
