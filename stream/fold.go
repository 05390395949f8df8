package stream

import (
	"time"

	"github.com/forebayhq/forebay"
)

// fold is a job as of what a client was told last. It begins with what the store
// knows and follows the events, so that none of them needs another look at the store.
type fold struct {
	job      forebay.Job
	failures []forebay.Cause
	progress forebay.Progress // as stored, for events after it
}

func newFold(j forebay.Job) *fold { return &fold{job: j, failures: j.Failures, progress: j.Progress} }

// rewind takes back what may have happened after the place to which a client has
// come; the events from there on bring it again.
func (f *fold) rewind() {
	j := &f.job
	j.State, j.Result, j.Cause, j.FinishedAt, j.CancelRequested = forebay.StateWaiting, nil, forebay.Cause{}, time.Time{}, false
	j.Progress, j.Failures, j.DeadSeq = forebay.Progress{}, nil, 0
}

// covers tells whether what an event says is in the job already, as it was read
// while the event came.
func (f *fold) covers(e *forebay.HistoryEvent) bool {
	switch e.Type {
	case forebay.HistoryProgress:
		return e.Progress != nil && !e.Progress.At.After(f.job.Progress.At)
	case forebay.HistoryStarted:
		return !e.At.After(f.job.StartedAt)
	case forebay.HistoryRetry:
		n := len(f.job.Failures)
		return e.Cause != nil && n > 0 && !e.Cause.At.After(f.job.Failures[n-1].At)
	}
	return false
}

func (f *fold) apply(e *forebay.HistoryEvent) {
	j := &f.job
	if e.State != "" {
		j.State, j.Due = e.State, e.Due
	}
	if j.Progress.At.IsZero() && !f.progress.At.After(e.At) {
		j.Progress = f.progress
	}
	if e.Cause != nil && e.Type == forebay.HistoryRetry && (len(f.failures) == 0 || e.Cause.At.After(f.failures[len(f.failures)-1].At)) {
		f.failures = append(f.failures[:len(f.failures):len(f.failures)], *e.Cause)
		f.failures = f.failures[max(0, len(f.failures)-forebay.MaxFailures):]
	}
	j.Failures = f.failures
	for n := len(j.Failures); n > 0 && j.Failures[n-1].At.After(e.At); n-- {
		j.Failures = j.Failures[:n-1]
	}
	switch e.Type {
	case forebay.HistoryProgress:
		j.State = forebay.StateActive
		if e.Progress != nil {
			j.Progress = *e.Progress
		}
	case forebay.HistoryStarted:
		j.State, j.StartedAt = forebay.StateActive, e.At
		j.Attempts = max(0, e.Attempt-1)
		j.CancelRequested = false
	case forebay.HistoryRetry:
		j.Attempts = e.Attempt
	case forebay.HistoryReplayed:
		j.Attempts, j.Cause, j.FinishedAt, j.DeadSeq = 0, forebay.Cause{}, time.Time{}, 0
	case forebay.HistoryCancelRequested:
		j.CancelRequested = true
	case forebay.HistoryCompleted, forebay.HistoryDead, forebay.HistoryCancelled, forebay.HistoryExpired:
		j.FinishedAt, j.Result = e.At, e.Result
		if e.Cause != nil {
			j.Cause = *e.Cause
		}
		if e.Type == forebay.HistoryDead { // by a failed attempt, or by a deadline that is none
			j.Attempts = max(j.Attempts, j.Cause.Attempt)
		}
	}
}

// ends tells whether an event may be the last one of a job.
func ends(e *forebay.HistoryEvent) bool {
	return e.State.Final() || e.Type == forebay.HistoryDiscarded
}
