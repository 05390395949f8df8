package engine

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/forebayhq/forebay"
)

// traceparent is a W3C trace context of version 00, or one that begins like it.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$`)

// checkJob looks at what makes a message a job.
func checkJob(m *forebay.Message, now time.Time) error {
	o := m.Job
	if o == nil {
		return nil
	}
	for _, check := range []func(m *forebay.Message, o *forebay.JobOptions, now time.Time) error{
		checkTimes, checkDedup, checkJobNames, checkTags,
	} {
		if err := check(m, o, now); err != nil {
			return err
		}
	}
	if err := CheckBackoff("job.backoff", o.Backoff); err != nil {
		return err
	}
	return CheckRetention("job.keep", o.Keep)
}

func checkTimes(m *forebay.Message, o *forebay.JobOptions, now time.Time) error {
	if o.Timeout < 0 || o.Timeout > forebay.MaxDelay {
		return invalid("job.timeout", "the timeout is %s; 0 (none) to %s are allowed", o.Timeout, days(forebay.MaxDelay))
	}
	latest := now.Add(forebay.MaxDelay)
	for _, c := range []struct {
		field string
		at    time.Time
	}{{"job.deadline", o.Deadline}, {"job.expires", o.Expires}} {
		switch {
		case c.at.IsZero():
		case c.at.After(latest):
			return invalid(c.field, "the time %s is too late; at most %s from now is allowed", c.at.UTC().Format(time.RFC3339), days(forebay.MaxDelay))
		case !c.at.After(m.NotBefore):
			return invalid(c.field, "the time %s is not after the job's not-before, %s; it could never run",
				c.at.UTC().Format(time.RFC3339), m.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	if !o.Deadline.IsZero() && o.Expires.After(o.Deadline) {
		return invalid("job.expires", "the job expires at %s, after its deadline at %s; it must not be later",
			o.Expires.UTC().Format(time.RFC3339), o.Deadline.UTC().Format(time.RFC3339))
	}
	return nil
}

func checkDedup(m *forebay.Message, o *forebay.JobOptions, _ time.Time) error {
	switch o.Dedup {
	case forebay.DedupWindowed:
		return nil
	case forebay.DedupUntilFinished, forebay.DedupThrottle, forebay.DedupDebounce, forebay.DedupKeepLast:
	default:
		return invalid("job.dedup", "the dedup mode %q is not known; %s, %s, %s, %s or none are allowed", o.Dedup,
			forebay.DedupUntilFinished, forebay.DedupThrottle, forebay.DedupDebounce, forebay.DedupKeepLast)
	}
	if m.DedupKey == "" {
		return invalid("job.dedup", "the dedup mode %s needs a dedup key", o.Dedup)
	}
	return nil
}

func checkJobNames(_ *forebay.Message, o *forebay.JobOptions, _ time.Time) error {
	for _, c := range []struct{ field, value string }{
		{"job.tenant", o.Tenant}, {"job.owner", o.Owner}, {"job.parent", o.Parent},
	} {
		if err := checkName(c.field, c.value, forebay.MaxIDBytes); err != nil {
			return err
		}
	}
	if t := o.Trace; t != "" && !SoundTrace(t) {
		return invalid("job.trace", "the trace context %q is not a W3C traceparent; 00-<32 hex>-<16 hex>-<2 hex> is allowed", cutTo(t, 100))
	}
	return nil
}

// SoundTrace tells a W3C traceparent that a job may have.
func SoundTrace(t string) bool {
	const zeros = "00000000000000000000000000000000"
	return len(t) <= forebay.MaxIDBytes && traceparent.MatchString(t) && plain(t, false) &&
		t[:2] != "ff" && (t[:2] != "00" || len(t) == 55) && t[3:35] != zeros && t[36:52] != zeros[:16]
}

func checkTags(_ *forebay.Message, o *forebay.JobOptions, _ time.Time) error {
	if len(o.Tags) > forebay.MaxTags {
		return invalid("job.tags", "there are %d tags; at most %d are allowed", len(o.Tags), forebay.MaxTags)
	}
	for _, tag := range o.Tags {
		if tag == "" {
			return invalid("job.tags", "a tag is empty; 1 to %d bytes are allowed", forebay.MaxTagBytes)
		}
		if err := checkName("job.tags", tag, forebay.MaxTagBytes); err != nil {
			return err
		}
	}
	return nil
}

// CheckBackoff looks at the backoff of a job, or of a queue.
func CheckBackoff(field string, b forebay.Backoff) error {
	switch b.Kind {
	case "", forebay.BackoffFixed, forebay.BackoffExponential:
	default:
		return invalid(field+".kind", "the backoff %q is not known; %s or %s are allowed", b.Kind, forebay.BackoffFixed, forebay.BackoffExponential)
	}
	if b.Base < 0 || b.Base > forebay.MaxDelay {
		return invalid(field+".base", "the wait is %s; 0 (the default) to %s are allowed", b.Base, days(forebay.MaxDelay))
	}
	if b.Cap < 0 || b.Cap > forebay.MaxDelay {
		return invalid(field+".cap", "the longest wait is %s; 0 (the default) to %s are allowed", b.Cap, days(forebay.MaxDelay))
	}
	if b.Cap > 0 && b.Base > b.Cap {
		return invalid(field+".base", "the wait is %s; up to the longest one (%s) is allowed", b.Base, b.Cap)
	}
	if !(b.Jitter >= 0 && b.Jitter <= 1) {
		return invalid(field+".jitter", "the jitter is %v; 0 (the default) to 1 are allowed", b.Jitter)
	}
	return nil
}

// CheckRetention looks at how long finished jobs are to be kept.
func CheckRetention(field string, r forebay.Retention) error {
	for _, c := range []struct {
		field string
		keep  forebay.Keep
	}{{field + ".finished", r.Finished}, {field + ".dead", r.Dead}} {
		if c.keep.Age < 0 {
			return invalid(c.field+".age", "the age is %s; 0 (no bound) or more is allowed", c.keep.Age)
		}
		if c.keep.Count < 0 {
			return invalid(c.field+".count", "the count is %d; 0 (no bound) or more is allowed", c.keep.Count)
		}
	}
	if r.Dead.None {
		return invalid(field+".dead.none", "dead jobs are kept; only their age and count can be bounded")
	}
	return nil
}

// CheckText looks at a text for people: a reason, the message of a progress.
func CheckText(field, s string) error {
	if len(s) > forebay.MaxTextBytes {
		return invalid(field, "the %s has %d bytes; at most %d are allowed", field, len(s), forebay.MaxTextBytes)
	}
	if !plain(s, true) {
		return invalid(field, "the %s is not plain text; UTF-8 without control characters other than tab is allowed", field)
	}
	return nil
}

// CheckProgress looks at what a running job tells.
func CheckProgress(u *forebay.ProgressUpdate) error {
	if p := u.Progress; p != nil {
		if !(p.Percent >= 0 && p.Percent <= 100) {
			return invalid("percent", "the percent is %v; 0 to 100 are allowed", p.Percent)
		}
		if err := checkName("stage", p.Stage, forebay.MaxStageBytes); err != nil {
			return err
		}
		if err := CheckText("message", p.Message); err != nil {
			return err
		}
		if err := checkJSON("data", p.Data, forebay.MaxProgressBytes); err != nil {
			return err
		}
	}
	for _, line := range u.Log {
		if n := len(line.Text); n > forebay.MaxLogBytes {
			return invalid("log", "a line has %d bytes; at most %d are allowed", n, forebay.MaxLogBytes)
		}
	}
	return nil
}

// CheckResult looks at the result of a job.
func CheckResult(result []byte) error { return checkJSON("result", result, forebay.MaxResultBytes) }

func checkJSON(field string, data []byte, most int) error {
	if len(data) > most {
		e := invalid(field, "the %s has %d bytes; at most %d are allowed", field, len(data), most)
		e.Code = forebay.CodeTooLarge
		return e
	}
	if len(data) > 0 && !json.Valid(data) {
		return invalid(field, "the %s is not JSON", field)
	}
	return nil
}

// CheckChange looks at a change of a job that waits.
func CheckChange(c *JobChange, now time.Time) error {
	m := forebay.Message{ID: c.ID, Payload: c.Payload}
	if c.Priority != nil {
		m.Priority = *c.Priority
	}
	if c.Due != nil {
		m.NotBefore = *c.Due
	}
	if m.ID == "" {
		return invalid("id", "the change has no id; each needs one")
	}
	if err := checkName("id", m.ID, forebay.MaxIDBytes); err != nil {
		return err
	}
	if err := checkNumbers(&m, now); err != nil {
		return err
	}
	return checkPayload(m.Payload)
}

func cutTo(s string, most int) string { return s[:min(len(s), most)] }
