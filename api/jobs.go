package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/stream"
)

// Job is a job as it is shown.
type Job = stream.Job

// JobList is one page of jobs: active ones, then those that wait, newest first, then
// dead ones, then finished ones.
type JobList struct {
	Items []Job  `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"after= of the next page, which may be empty; absent: this is the last."`
}

// JobProgress is how far a job is.
type JobProgress struct {
	JobID            string          `json:"jobId"`
	State            forebay.State   `json:"state" enum:"waiting,delayed,active,completed,dead,cancelled,expired"`
	Progress         stream.Progress `json:"progress"`
	Result           json.RawMessage `json:"result,omitempty"`
	FailedReason     string          `json:"failedReason,omitempty"`
	EstimatedSeconds *Estimate       `json:"estimatedSeconds,omitempty" doc:"Until it is done, where there is something to tell by."`
}

// JobResult is how a job ended.
type JobResult struct {
	JobID        string          `json:"jobId"`
	State        forebay.State   `json:"state" enum:"completed,dead,cancelled,expired"`
	Result       json.RawMessage `json:"result,omitempty" doc:"Completed: what its handler gave back."`
	Cause        *forebay.Cause  `json:"cause,omitempty" doc:"Otherwise: why."`
	FailedReason string          `json:"failedReason,omitempty"`
}

// EventList is a part of a history, oldest first.
type EventList struct {
	Items []stream.JobEvent `json:"items" nullable:"false"`
	Next  int64             `json:"next" doc:"after= of the next page."`
	More  bool              `json:"more" doc:"There is more at once."`
}

// LogList is a part of a job's log, oldest first.
type LogList struct {
	Items []LogLine `json:"items" nullable:"false"`
	Next  int64     `json:"next" doc:"after= of the next page."`
	More  bool      `json:"more" doc:"There is more at once."`
}

// LogLine is a line that a handler wrote.
type LogLine struct {
	At   time.Time `json:"at,omitzero" doc:"Told without it: now."`
	Text string    `json:"text"`
}

// OneJob names a job in a path. It is exported since huma sees no others when they
// are embedded.
type OneJob struct {
	ID string `path:"id" maxLength:"128"`
}

type historyQuery struct {
	OneJob
	After int64 `query:"after" minimum:"0" doc:"Only what came later; 0: from the beginning."`
	Limit int   `query:"limit" minimum:"1" maximum:"1000" default:"200"`
}

func (a *API) jobRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/jobs", "list-jobs", "List and search jobs"),
		func(ctx context.Context, in *struct {
			Q     string `query:"q" maxLength:"4096" doc:"A filter: state:dead queue:mail kind:email.* payload.user.id:42 since:1h error:\"timed out\" tag:x"`
			After string `query:"after" maxLength:"1024" doc:"Next of the page before; absent: from the start."`
			Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
		}) (*answer[JobList], error) {
			return reply(a.listJobs(ctx, in.Q, in.After, in.Limit))
		})
	get := operation(http.MethodGet, "/api/jobs/{id}", "get-job", "Show a job with its data")
	get.Description = "With wait, the answer comes when the job has changed or has finished, at the latest after that time. With If-None-Match too, it comes when the job is not (or no longer) as that ETag says, so that no change between two calls is missed."
	huma.Register(h, get, func(ctx context.Context, in *struct {
		OneJob
		Wait string `query:"wait" doc:"Such as 30s, at most 50s."`
		Seen string `header:"If-None-Match" doc:"The ETag of the answer before."`
	}) (*struct {
		ETag string `header:"ETag"`
		Body Job
	}, error) {
		j, err := a.waitJob(ctx, in.ID, in.Wait, in.Seen)
		if err != nil {
			return nil, problemOf(err)
		}
		return &struct {
			ETag string `header:"ETag"`
			Body Job
		}{etag(&j), stream.JobOf(&j).WithData(j.Payload)}, nil
	})
	huma.Register(h, operation(http.MethodGet, "/api/jobs/{id}/progress", "get-progress", "Tell how far a job is"),
		func(ctx context.Context, in *OneJob) (*answer[JobProgress], error) {
			return reply(a.progress(ctx, in.ID))
		})
	huma.Register(h, operation(http.MethodGet, "/api/jobs/{id}/result", "get-result", "Show how a job ended"),
		func(ctx context.Context, in *OneJob) (*answer[JobResult], error) {
			return reply(a.result(ctx, in.ID))
		})
	huma.Register(h, operation(http.MethodGet, "/api/jobs/{id}/history", "get-history", "Tell what happened to a job"),
		func(ctx context.Context, in *historyQuery) (*answer[EventList], error) {
			return reply(a.history(ctx, in))
		})
	huma.Register(h, operation(http.MethodGet, "/api/jobs/{id}/logs", "get-logs", "Show the lines that a job's handler wrote"),
		func(ctx context.Context, in *historyQuery) (*answer[LogList], error) {
			return reply(a.logs(ctx, in))
		})
}

func (a *API) listJobs(ctx context.Context, q, after string, limit int) (JobList, error) {
	f, err := a.jobFilter(ctx, q)
	if err != nil {
		return JobList{}, err
	}
	page, err := a.jobsPage(ctx, engine.JobQuery{Filter: f, After: after, Limit: limit})
	list := JobList{Items: make([]Job, len(page.Jobs)), Next: page.Next}
	for i := range page.Jobs {
		list.Items[i] = stream.JobOf(&page.Jobs[i])
	}
	return list, err
}

// waitJob reads a job; with a wait, when it has changed, or is not as was seen.
func (a *API) waitJob(ctx context.Context, id, text, seen string) (forebay.Job, error) {
	wait, err := waitOf(text)
	if err != nil || wait == 0 {
		if err == nil {
			return a.cfg.Broker.Job(ctx, id)
		}
		return forebay.Job{}, err
	}
	watcher := a.cfg.Broker.Watcher()
	sub := watcher.Subscribe(broker.WatchFilter{Job: id}) // first, so that nothing falls between
	defer func() { sub.Close() }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	first, err := a.cfg.Broker.Job(ctx, id)
	for {
		if err != nil || first.State.Final() || seen != "" && etag(&first) != seen {
			return first, err
		}
		select {
		case e, ok := <-sub.C:
			if !ok && !sub.Lagged() {
				return first, nil // nobody reads the history any more
			}
			if !ok {
				sub = watcher.Subscribe(broker.WatchFilter{Job: id})
			} else if e.Type == forebay.HistoryLog {
				continue
			}
		case <-timer.C:
			return a.cfg.Broker.Job(ctx, id)
		case <-ctx.Done():
			return first, ctx.Err()
		}
		before := etag(&first)
		first, err = a.cfg.Broker.Job(ctx, id)
		if seen == "" && err == nil && etag(&first) != before {
			return first, nil
		}
	}
}

// etag stands for all of a job that changes.
func etag(j *forebay.Job) string {
	b, _ := json.Marshal([]any{ // plain values, which all can be written
		j.State, j.Attempts, j.Deliveries, j.Progress, j.Progress.Data, j.Due, j.StartedAt, j.Priority, j.CancelRequested, xxhash.Sum64(j.Payload),
	})
	return `"` + strconv.FormatUint(xxhash.Sum64(b), 36) + `"`
}

func (a *API) progress(ctx context.Context, id string) (JobProgress, error) {
	j, err := a.cfg.Broker.Job(ctx, id)
	if err != nil {
		return JobProgress{}, err
	}
	v := JobProgress{
		JobID: j.ID, State: j.State, Progress: stream.ProgressOf(j.Progress), Result: j.Result, FailedReason: stream.FailedReason(&j),
	}
	if e := a.cfg.Broker.EstimateJob(ctx, j); e.Samples > 0 && !j.State.Final() {
		v.EstimatedSeconds = &Estimate{e.Low.Seconds(), e.Likely.Seconds(), e.High.Seconds()}
	}
	return v, nil
}

func (a *API) result(ctx context.Context, id string) (JobResult, error) {
	j, err := a.cfg.Broker.Job(ctx, id)
	if err != nil {
		return JobResult{}, err
	}
	if !j.State.Final() {
		e := forebay.Errorf(forebay.CodeConflict, "", "job %s is %s; it has no result yet", id, j.State)
		e.Hint = "wait for it: GET /api/jobs/{id}?wait=30s, or its stream"
		return JobResult{}, e
	}
	v := stream.JobOf(&j)
	return JobResult{JobID: j.ID, State: j.State, Result: v.Result, Cause: v.Cause, FailedReason: v.FailedReason}, nil
}

func (a *API) history(ctx context.Context, in *historyQuery, types ...forebay.HistoryType) (EventList, error) {
	page, err := a.cfg.Broker.History(ctx, engine.HistoryQuery{After: in.After, Job: in.ID, Types: types, Limit: in.Limit})
	if err != nil {
		return EventList{}, err
	}
	if len(page.Events) == 0 && in.After == 0 { // an unknown job is told so
		if _, err := a.cfg.Broker.Job(ctx, in.ID); err != nil {
			return EventList{}, err
		}
	}
	list := EventList{Items: make([]stream.JobEvent, len(page.Events)), Next: page.Next, More: page.More}
	for i := range page.Events {
		list.Items[i] = stream.EventOf(page.Epoch, &page.Events[i])
	}
	return list, nil
}

func (a *API) logs(ctx context.Context, in *historyQuery) (LogList, error) {
	events, err := a.history(ctx, in, forebay.HistoryLog)
	list := LogList{Items: make([]LogLine, len(events.Items)), Next: events.Next, More: events.More}
	for i, e := range events.Items {
		list.Items[i] = LogLine{e.At, e.Text}
	}
	return list, err
}
