package schedule

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func wrong(field, format string, args ...any) *forebay.Error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}

// CheckName looks at the name of a schedule.
func CheckName(name string) error {
	const allowed = "allowed are 1 to %d of A-Z a-z 0-9 - _ ."
	if name == "" {
		return wrong("name", "the schedule has no name; "+allowed, MaxNameBytes)
	}
	if len(name) > MaxNameBytes {
		return wrong("name", "the name has %d bytes; "+allowed, len(name), MaxNameBytes)
	}
	for i, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.') {
			return wrong("name", "the name has %q at position %d; "+allowed, r, i+1, MaxNameBytes)
		}
	}
	if strings.Trim(name, ".") == "" { // a path would lose it
		return wrong("name", "the name %q is only dots; a letter or digit is needed", name)
	}
	return nil
}

// check finds the first thing that is wrong with a definition.
func (d *Definition) check(now time.Time) error {
	if err := CheckName(d.Name); err != nil {
		return err
	}
	if err := d.checkTimes(); err != nil {
		return err
	}
	switch d.Missed {
	case "", MissedSkip, MissedOnce, MissedAll:
	default:
		return wrong("missed", "%q is not known; %s, %s or %s are allowed", d.Missed, MissedSkip, MissedOnce, MissedAll)
	}
	switch d.Overlap {
	case "", OverlapAllow, OverlapSkip, OverlapWait, OverlapCancel:
	default:
		return wrong("overlap", "%q is not known; %s, %s, %s or %s are allowed", d.Overlap, OverlapAllow, OverlapSkip, OverlapWait, OverlapCancel)
	}
	return d.checkJob(now)
}

func (d *Definition) checkTimes() error {
	switch {
	case d.Cron == "" && d.Every == 0:
		return wrong("cron", "neither cron nor every says when; one of them is needed")
	case d.Cron != "" && d.Every != 0:
		return wrong("every", "cron and every both say when; only one of them is allowed")
	case d.Cron == "" && (d.Every < MinEvery || d.Every > MaxEvery || d.Every%time.Second != 0):
		return wrong("every", "every is %s; whole seconds from %s to 365 days are allowed", d.Every, MinEvery)
	case d.Cron == "" && d.Timezone != "":
		return wrong("timezone", "the zone %q is for cron; every counts time that passes, and has none", d.Timezone)
	case d.Limit < 0:
		return wrong("limit", "the limit is %d; 0 (none) or more is allowed", d.Limit)
	case d.Jitter < 0 || d.Jitter > MaxJitter:
		return wrong("jitter", "the jitter is %s; 0 (none) to %s are allowed", d.Jitter, MaxJitter)
	}
	for _, c := range []struct {
		field string
		at    time.Time
	}{{"start", d.Start}, {"end", d.End}} {
		if y := c.at.UTC().Year(); !c.at.IsZero() && (y < 1970 || y > 2200) {
			return wrong(c.field, "the year is %d; 1970 to 2200 are allowed", y)
		}
	}
	if d.Start.Nanosecond() != 0 {
		return wrong("start", "the start %s has a fraction of a second; ticks are at whole seconds", d.Start.Format(time.RFC3339Nano))
	}
	if !d.End.IsZero() && !d.End.After(d.Start) {
		return wrong("end", "the end %s is not after the start, %s", d.End.Format(time.RFC3339), d.Start.Format(time.RFC3339))
	}
	return nil
}

// checkJob looks at the job as it would be sent now, by the rules of all jobs.
func (d *Definition) checkJob(now time.Time) error {
	t := &d.Job
	if t.Kind == "" {
		return wrong("job.name", "the job has no name; it says which handler it is for")
	}
	if len(t.Data) > 0 && !json.Valid(t.Data) {
		return wrong("job.data", "the data is not JSON")
	}
	if len(t.Tags) >= forebay.MaxTags {
		return wrong("job.tags", "there are %d tags; at most %d are allowed beside that of the schedule", len(t.Tags), forebay.MaxTags-1)
	}
	if t.Group != "" && d.grouped() {
		return wrong("job.group", "the job has a group, and so has overlap %s one; leave one of them out", d.Overlap)
	}
	for _, c := range []struct {
		field string
		d     time.Duration
	}{{"job.timeout", t.Timeout}, {"job.deadline", t.Deadline}, {"job.expires", t.Expires}} {
		if c.d < 0 || c.d > forebay.MaxDelay-MaxJitter {
			return wrong(c.field, "the duration is %s; 0 (none) to 364 days are allowed", c.d)
		}
	}
	m := d.message(tickID(d.Name, now), now, now)
	err := engine.CheckMessage(&m, now)
	if err == nil {
		return nil
	}
	e := *err.(*forebay.Error) // all of its errors are
	switch e.Field {
	case "kind":
		e.Field = "name"
	case "payload":
		e.Field = "data"
	case "limits.attempts", "limits.deliveries":
		e.Field = strings.TrimPrefix(e.Field, "limits.")
	}
	e.Field = "job." + strings.TrimPrefix(e.Field, "job.")
	return &e
}

// grouped tells whether the jobs run one after the other.
func (d *Definition) grouped() bool { return d.Overlap == OverlapWait || d.Overlap == OverlapCancel }

// Headers with which a job tells its handler what it is of.
const (
	HeaderSchedule = "schedule"
	HeaderTick     = "tick" // as RFC 3339, in UTC; absent for one that was run by hand
)

// message makes the job of a tick, or of one that is run by hand now.
func (d *Definition) message(id string, tick, now time.Time) forebay.Message {
	t := &d.Job
	m := forebay.Message{
		ID: id, Queue: t.Queue, Kind: t.Kind, Payload: t.Data, Priority: t.Priority,
		DedupWindow: idWindow, Group: t.Group, LimitKey: t.LimitKey, Limits: t.Limits,
		Headers: map[string]string{HeaderSchedule: d.Name},
	}
	for name, value := range t.Headers {
		m.Headers[name] = value
	}
	if len(m.Payload) == 0 {
		m.Payload = []byte("null")
	}
	if d.grouped() {
		m.Group = Tag(d.Name)
	}
	begin := now
	if !tick.IsZero() {
		m.Headers[HeaderTick] = tick.UTC().Format(time.RFC3339)
		if due := tick.Add(d.jitterOf(id)); due.After(now) {
			m.NotBefore, begin = due, due
		}
	}
	m.Job = &forebay.JobOptions{
		Timeout: t.Timeout, Backoff: t.Backoff, Tenant: t.Tenant, Owner: t.Owner, Keep: t.Keep,
		Tags: append([]string{Tag(d.Name)}, t.Tags...),
	}
	if t.Deadline > 0 {
		m.Job.Deadline = begin.Add(t.Deadline)
	}
	if t.Expires > 0 {
		m.Job.Expires = begin.Add(t.Expires)
	}
	return m
}
