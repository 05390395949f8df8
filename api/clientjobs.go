package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

func jobPathOf(id string) string { return jobPath + url.PathEscape(id) }

// AddJob adds a job. With an idempotency key, a repetition gets the same answer;
// empty: none is shown.
func (c *Client) AddJob(ctx context.Context, n NewJob, idempotencyKey string) (v AddedJob, err error) {
	return v, c.callWith(ctx, http.MethodPost, "/api/jobs", idempotencyKey, n, &v)
}

// AddJobs adds up to 1,000 jobs, each with its own result.
func (c *Client) AddJobs(ctx context.Context, jobs []NewJob, idempotencyKey string) (v BulkAdded, err error) {
	return v, c.callWith(ctx, http.MethodPost, "/api/jobs/bulk", idempotencyKey, BulkAdd{jobs}, &v)
}

// Jobs lists the jobs that a filter means; after is Next of the page before.
func (c *Client) Jobs(ctx context.Context, q, after string, limit int) (v JobList, err error) {
	return v, c.call(ctx, http.MethodGet, "/api/jobs"+query("q", q, "after", after, "limit", number(int64(limit))), nil, &v)
}

// Job shows a job with its data.
func (c *Client) Job(ctx context.Context, id string) (v Job, err error) {
	return v, c.call(ctx, http.MethodGet, jobPathOf(id), nil, &v)
}

// WaitJob shows a job once it has changed or finished, at the latest after wait.
func (c *Client) WaitJob(ctx context.Context, id string, wait time.Duration) (v Job, err error) {
	return v, c.call(ctx, http.MethodGet, jobPathOf(id)+query("wait", wait.String()), nil, &v)
}

// JobProgress tells how far a job is.
func (c *Client) JobProgress(ctx context.Context, id string) (v JobProgress, err error) {
	return v, c.call(ctx, http.MethodGet, jobPathOf(id)+"/progress", nil, &v)
}

// JobResult shows how a job ended; CodeConflict: it has not.
func (c *Client) JobResult(ctx context.Context, id string) (v JobResult, err error) {
	return v, c.call(ctx, http.MethodGet, jobPathOf(id)+"/result", nil, &v)
}

// JobHistory tells what happened to a job after a place, 0 for all.
func (c *Client) JobHistory(ctx context.Context, id string, after int64, limit int) (v EventList, err error) {
	q := query("after", number(after), "limit", number(int64(limit)))
	return v, c.call(ctx, http.MethodGet, jobPathOf(id)+"/history"+q, nil, &v)
}

// JobLogs shows the lines that a job's handler wrote after a place, 0 for all.
func (c *Client) JobLogs(ctx context.Context, id string, after int64, limit int) (v LogList, err error) {
	q := query("after", number(after), "limit", number(int64(limit)))
	return v, c.call(ctx, http.MethodGet, jobPathOf(id)+"/logs"+q, nil, &v)
}

// CancelJob cancels a job; one that runs is asked to stop.
func (c *Client) CancelJob(ctx context.Context, id, reason string) (v Acted, err error) {
	return v, c.call(ctx, http.MethodPost, jobPathOf(id)+"/cancel", Reason{reason}, &v)
}

// RetryJob runs a finished job again.
func (c *Client) RetryJob(ctx context.Context, id string) (v Acted, err error) {
	return v, c.call(ctx, http.MethodPost, jobPathOf(id)+"/retry", nil, &v)
}

// PromoteJob lets a delayed job begin now.
func (c *Client) PromoteJob(ctx context.Context, id string) (v Acted, err error) {
	return v, c.call(ctx, http.MethodPost, jobPathOf(id)+"/promote", nil, &v)
}

// ChangeJob changes a job that waits.
func (c *Client) ChangeJob(ctx context.Context, id string, p JobPatch) (v Acted, err error) {
	return v, c.call(ctx, http.MethodPatch, jobPathOf(id), p, &v)
}

// RemoveJob removes a finished job.
func (c *Client) RemoveJob(ctx context.Context, id string) (v Acted, err error) {
	return v, c.call(ctx, http.MethodDelete, jobPathOf(id), nil, &v)
}

// ActOnJobs does something with all jobs that a filter means, as a job.
func (c *Client) ActOnJobs(ctx context.Context, action BulkAction) (v BulkStarted, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/jobs/actions", action, &v)
}

// LeaseJobs leases jobs of a queue.
func (c *Client) LeaseJobs(ctx context.Context, queue string, r LeaseRequest) ([]Lease, error) {
	var v LeaseList
	return v.Items, c.call(ctx, http.MethodPost, queuePathOf(queue)+"/lease", r, &v)
}

// ExtendLeases makes leases end later; an entry tells what was cancelled or lost.
func (c *Client) ExtendLeases(ctx context.Context, e ExtendLeases) ([]LeaseResult, error) {
	var v LeaseResults
	return v.Items, c.call(ctx, http.MethodPost, "/api/leases/extend", e, &v)
}

// TellProgress tells how far leased jobs are.
func (c *Client) TellProgress(ctx context.Context, p TellProgress) ([]LeaseResult, error) {
	var v LeaseResults
	return v.Items, c.call(ctx, http.MethodPost, "/api/leases/progress", p, &v)
}

// SettleLeases ends leased jobs.
func (c *Client) SettleLeases(ctx context.Context, s SettleLeases) ([]LeaseResult, error) {
	var v LeaseResults
	return v.Items, c.call(ctx, http.MethodPost, "/api/leases/settle", s, &v)
}

// NewTicket gets a ticket that lets one stream begin without a key.
func (c *Client) NewTicket(ctx context.Context, path string) (v Ticket, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/stream-tickets", NewTicket{path}, &v)
}

// JobUpdate is one event of a job's stream.
type JobUpdate struct {
	Event string   `json:"event"` // snapshot, progress, state, log, reset, done
	ID    string   `json:"id,omitempty"`
	Job   *Job     `json:"job,omitempty"`
	Log   *LogLine `json:"log,omitempty"`
}

// read fills it from an event's data.
func (u *JobUpdate) read(data []byte) error {
	switch u.Event {
	case "snapshot", "progress", "state", "done":
		return json.Unmarshal(data, &u.Job)
	case "log":
		return json.Unmarshal(data, &u.Log)
	}
	return nil
}

// retryTime reads the field of a stream that says after how long to come again.
func retryTime(text string, before time.Duration) time.Duration {
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 0 || ms > 60_000 {
		return before
	}
	return time.Duration(ms) * time.Millisecond
}
