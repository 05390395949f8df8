package schedule

import (
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
)

// Definition says when which job is added. Cron or Every is needed, and of Job the
// queue and the kind.
type Definition struct {
	Name     string        `json:"name"`
	Cron     string        `json:"cron,omitempty"` // five fields, or six with seconds first, or @daily and the like
	Every    time.Duration `json:"every,omitempty"`
	Timezone string        `json:"timezone,omitempty"` // of Cron, an IANA name; empty: UTC
	Start    time.Time     `json:"start,omitzero"`     // no tick before; what Every counts from. Zero: when it was made
	End      time.Time     `json:"end,omitzero"`       // no tick after; zero: none
	Limit    int64         `json:"limit,omitempty"`    // jobs that are added in all; 0: no limit
	Jitter   time.Duration `json:"jitter,omitempty"`   // each job begins up to so much after its tick
	Missed   Missed        `json:"missed,omitempty"`   // empty: MissedOnce
	Overlap  Overlap       `json:"overlap,omitempty"`  // empty: OverlapAllow
	Paused   bool          `json:"paused,omitempty"`   // ticks that pass meanwhile are none
	Job      Template      `json:"job"`
}

// Template is the job that is added.
type Template struct {
	Queue    string            `json:"queue"`
	Kind     string            `json:"name"`
	Data     json.RawMessage   `json:"data,omitempty"` // absent: null
	Headers  map[string]string `json:"headers,omitempty"`
	Priority forebay.Priority  `json:"priority,omitempty"`
	Limits   forebay.Limits    `json:"limits,omitzero"`
	Group    string            `json:"group,omitempty"` // not with OverlapWait and OverlapCancel, which need it
	LimitKey string            `json:"limitKey,omitempty"`

	Timeout  time.Duration     `json:"timeout,omitempty"`  // of one attempt
	Deadline time.Duration     `json:"deadline,omitempty"` // of the whole, from when it may begin
	Expires  time.Duration     `json:"expires,omitempty"`  // not begun by then, from when it may
	Backoff  forebay.Backoff   `json:"backoff,omitzero"`
	Tenant   string            `json:"tenant,omitempty"`
	Owner    string            `json:"owner,omitempty"`
	Tags     []string          `json:"tags,omitempty"` // beside schedule:NAME, which each has
	Keep     forebay.Retention `json:"keep,omitzero"`
}

// Missed says what becomes of ticks that came due while nobody was there to see to
// them, or that are late by more than OnTime for another reason.
type Missed string

const (
	MissedSkip Missed = "skip" // nothing
	MissedOnce Missed = "once" // one job for all that are due, the newest
	MissedAll  Missed = "all"  // a job each, oldest first, for the newest MaxCatchUp of them
)

// Overlap says what a tick does when the former job has not finished. One that is
// dead has.
type Overlap string

const (
	OverlapAllow  Overlap = "allow"  // adds its job all the same
	OverlapSkip   Overlap = "skip"   // nothing
	OverlapWait   Overlap = "wait"   // adds its job, which waits for the former ones
	OverlapCancel Overlap = "cancel" // cancels the former job, and adds one that waits until that has stopped
)

// Bounds of schedules.
const (
	MaxNameBytes = 50
	MaxCronBytes = 256
	MinEvery     = time.Second
	MaxEvery     = forebay.MaxDelay
	MaxJitter    = 24 * time.Hour
	MaxCatchUp   = 100 // jobs that are added at once by one schedule
	MaxPreview   = 1000
	MaxSchedules = 50_000
	OnTime       = 10 * time.Second // a tick that is not older is not missed
)

// tagPrefix makes the tag of a schedule's jobs, and the beginning of their ids.
const tagPrefix = "schedule:"

// Tag is what the jobs of a schedule are found by.
func Tag(name string) string { return tagPrefix + name }

// tickID is the id of the job of a tick, the same for whoever makes it.
func tickID(name string, tick time.Time) string {
	return tagPrefix + name + ":" + tick.UTC().Format("20060102T150405Z")
}

func runID(name, id string) string { return tagPrefix + name + ":run:" + id }

// sameTimes tells whether two definitions have the same ticks, but for their end.
func (d *Definition) sameTimes(o *Definition) bool {
	return d.Cron == o.Cron && d.Every == o.Every && d.Timezone == o.Timezone && d.Start.Equal(o.Start)
}
