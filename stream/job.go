package stream

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
)

// Job is a job as it is shown, in streams and by the API. Durations are text, such
// as 30s or 1h30m.
type Job struct {
	JobID string        `json:"jobId"`
	Queue string        `json:"queue"`
	Name  string        `json:"name" doc:"Its kind: which handler it is for."`
	State forebay.State `json:"state" enum:"waiting,delayed,active,completed,dead,cancelled,expired"`

	Progress        Progress        `json:"progress"`
	Result          json.RawMessage `json:"result,omitempty" doc:"Completed: what its handler gave back."`
	FailedReason    string          `json:"failedReason,omitempty" doc:"Of its end, else of its last failed attempt."`
	Cause           *forebay.Cause  `json:"cause,omitempty" doc:"Dead, cancelled, expired: why."`
	Failures        []forebay.Cause `json:"failures,omitempty" doc:"Of failed attempts, oldest first."`
	Attempts        int             `json:"attempts" doc:"Failed so far."`
	Deliveries      int             `json:"deliveries" doc:"How often it was handed out."`
	CancelRequested bool            `json:"cancelRequested,omitempty" doc:"Active, and told to stop."`
	DeadSeq         int64           `json:"deadSeq,omitempty" doc:"Dead: its number as a dead letter."`

	SentAt     time.Time `json:"sentAt"`
	RunAt      time.Time `json:"runAt,omitzero" doc:"Delayed: until when."`
	StartedAt  time.Time `json:"startedAt,omitzero" doc:"Of the last attempt."`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Deadline   time.Time `json:"deadline,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`

	Priority    int               `json:"priority" doc:"0 is the most urgent, 9 the least."`
	MaxAttempts int               `json:"maxAttempts,omitempty" doc:"Absent: as its queue says."`
	Timeout     string            `json:"timeout,omitempty" doc:"Of one attempt."`
	Group       string            `json:"group,omitempty"`
	DedupKey    string            `json:"dedupKey,omitempty"`
	LimitKey    string            `json:"limitKey,omitempty"`
	Tenant      string            `json:"tenant,omitempty"`
	Owner       string            `json:"owner,omitempty"`
	Tags        []string          `json:"tags,omitempty"`
	Parent      string            `json:"parent,omitempty"`
	Trace       string            `json:"trace,omitempty" doc:"W3C traceparent."`
	Headers     map[string]string `json:"headers,omitempty"`

	Data       json.RawMessage `json:"data,omitempty" doc:"Shown for a single job, not in lists and streams."`
	DataBase64 []byte          `json:"dataBase64,omitempty" doc:"The same, where it is not JSON."`
}

// Progress is how far a job is, as it is shown.
type Progress struct {
	Stage   string          `json:"stage,omitempty"`
	Percent float64         `json:"percent" required:"false" doc:"0 to 100; told without it: 0."`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	At      time.Time       `json:"at,omitzero"`
}

// JobEvent is one thing that happened to one job, as it is shown.
type JobEvent struct {
	ID       string              `json:"id" doc:"Its place, as in streams: epoch-seq."`
	At       time.Time           `json:"at"`
	Type     forebay.HistoryType `json:"type" doc:"added, replaced, changed, started, progress, log, retry, released, lease_lost, cancel_requested, completed, dead, cancelled, expired, replayed, discarded"`
	JobID    string              `json:"jobId"`
	Queue    string              `json:"queue"`
	Name     string              `json:"name"`
	Attempt  int                 `json:"attempt,omitempty"`
	State    forebay.State       `json:"state,omitempty" doc:"After it; absent: unchanged."`
	RunAt    time.Time           `json:"runAt,omitzero" doc:"Delayed until."`
	Progress *Progress           `json:"progress,omitempty"`
	Text     string              `json:"text,omitempty" doc:"The line of a log, or a reason."`
	Cause    *forebay.Cause      `json:"cause,omitempty"`
	Result   json.RawMessage     `json:"result,omitempty" doc:"Completed, and at most 16 KiB."`
}

// JobOf shows a job without its data.
func JobOf(j *forebay.Job) Job {
	v := Job{
		JobID: j.ID, Queue: j.Queue, Name: j.Kind, State: j.State,
		Progress: ProgressOf(j.Progress), Result: j.Result, Failures: j.Failures, Attempts: j.Attempts, Deliveries: j.Deliveries,
		CancelRequested: j.CancelRequested, DeadSeq: j.DeadSeq,
		SentAt: j.SentAt, StartedAt: j.StartedAt, FinishedAt: j.FinishedAt,
		Priority: j.Priority.Level(), MaxAttempts: j.Limits.Attempts, Group: j.Group, DedupKey: j.DedupKey, LimitKey: j.LimitKey,
		Headers: j.Headers, FailedReason: FailedReason(j),
	}
	if j.State == forebay.StateDelayed {
		v.RunAt = j.Due
	}
	if j.Cause.Code != "" || j.Cause.Message != "" {
		v.Cause = &j.Cause
	}
	if o := j.Job; o != nil {
		v.Deadline, v.Expires = o.Deadline, o.Expires
		v.Tenant, v.Owner, v.Tags, v.Parent, v.Trace = o.Tenant, o.Owner, o.Tags, o.Parent, o.Trace
		if o.Timeout > 0 {
			v.Timeout = o.Timeout.String()
		}
	}
	return v
}

// FailedReason says in one text why a job ended other than well, or why its last
// attempt failed; empty: neither.
func FailedReason(j *forebay.Job) string {
	switch {
	case j.State == forebay.StateCompleted:
		return ""
	case j.Cause.Message != "":
		return j.Cause.Message
	case j.Cause.Code != "":
		return j.Cause.Code
	case len(j.Failures) > 0:
		return j.Failures[len(j.Failures)-1].Message
	}
	return ""
}

// WithData adds a job's data to how it is shown.
func (v Job) WithData(payload []byte) Job {
	if json.Valid(payload) {
		v.Data = payload
	} else {
		v.DataBase64 = payload
	}
	return v
}

// ProgressOf shows a progress.
func ProgressOf(p forebay.Progress) Progress {
	return Progress{Stage: p.Stage, Percent: p.Percent, Message: p.Message, Data: p.Data, At: p.At}
}

// EventOf shows an event of a store's history.
func EventOf(epoch string, e *forebay.HistoryEvent) JobEvent {
	v := JobEvent{
		ID: place{epoch, e.Seq}.String(), At: e.At, Type: e.Type, JobID: e.Job, Queue: e.Queue, Name: e.Kind, Attempt: e.Attempt, State: e.State,
		RunAt: e.Due, Text: e.Text, Cause: e.Cause, Result: e.Result,
	}
	if e.Progress != nil {
		p := ProgressOf(*e.Progress)
		v.Progress = &p
	}
	return v
}

// place is where a client is in a history.
type place struct {
	epoch string
	seq   int64
}

func (p place) String() string { return p.epoch + "-" + strconv.FormatInt(p.seq, 10) }
