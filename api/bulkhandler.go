package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/filter"
	"github.com/forebayhq/forebay/worker"
)

// BulkOutcome is the result of the job that acted on many, over all its runs.
type BulkOutcome struct {
	Action  string        `json:"action"`
	Matched int           `json:"matched"`
	Done    int           `json:"done"`
	Failed  int           `json:"failed"`
	Errors  []BulkFailure `json:"errors,omitempty"` // the first ones
}

// BulkFailure is why it was not done for one job.
type BulkFailure struct {
	JobID   string       `json:"jobId"`
	Code    forebay.Code `json:"code"`
	Message string       `json:"message"`
}

const maxBulkErrors = 100

// BulkHandler does what POST /api/jobs/actions started. A run that is interrupted goes
// on where it was: before each page it stores what the page is about.
func BulkHandler(b *broker.Broker) worker.JobHandler {
	return worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
		var data bulkData
		if err := json.Unmarshal(j.Payload, &data); err != nil {
			return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "bad_data"}, err))
		}
		f, err := filter.Parse(data.Q, j.SentAt)
		if err != nil {
			return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "bad_data"}, err))
		}
		run := &bulkRun{b: b, job: j, data: data, filter: f}
		if err := run.load(ctx); err != nil {
			return nil, err
		}
		if err := run.run(ctx); err != nil {
			return nil, err
		}
		j.Progress("done", 100, run.text())
		return json.Marshal(run.s.Out)
	})
}

// bulkRun is one run of an action.
type bulkRun struct {
	b      *broker.Broker
	job    *worker.Job
	data   bulkData
	filter engine.JobFilter
	s      bulkState
}

func (r *bulkRun) run(ctx context.Context) error {
	if !r.s.Begun {
		if err := r.count(ctx); err != nil {
			return err
		}
		r.s.Begun = true
	}
	if len(r.s.Pending) > 0 {
		if err := r.takeUp(ctx); err != nil {
			return err
		}
	}
	for !r.s.Last {
		page, err := r.b.Jobs(ctx, engine.JobQuery{Filter: r.filter, After: r.s.After, Limit: engine.MaxJobs})
		if err != nil {
			return err
		}
		r.s.After, r.s.Last = page.Next, page.Next == ""
		if err := r.page(ctx, page.Jobs); err != nil {
			return err
		}
	}
	return r.save(ctx)
}

func (r *bulkRun) count(ctx context.Context) error {
	r.job.Progress("counting", 0, "")
	return eachPage(ctx, r.b, r.filter, func(jobs []forebay.Job) (bool, error) {
		r.s.Total += len(jobs)
		return r.s.Total < maxCounted, nil
	})
}

// page does one page: it stores what it is about to do, and does it.
func (r *bulkRun) page(ctx context.Context, jobs []forebay.Job) error {
	r.s.Pending = nil
	for i := range jobs {
		if jobs[i].ID != r.job.ID { // itself
			r.s.Pending = append(r.s.Pending, jobs[i].ID)
		}
	}
	if len(r.s.Pending) == 0 {
		return nil
	}
	r.s.Page++
	if err := r.save(ctx); err != nil {
		return err
	}
	return r.do(ctx, r.s.Pending)
}

func (r *bulkRun) do(ctx context.Context, ids []string) error {
	if len(ids) > 0 {
		errs, err := r.act(ctx, ids)
		if err != nil {
			return err
		}
		for i, err := range errs {
			r.s.Out.add(ids[i], err)
		}
	}
	r.s.Pending = nil
	r.job.Progress(r.data.Action, 100*float64(r.s.Out.Matched)/float64(max(r.s.Total, r.s.Out.Matched, 1)), r.text())
	return nil
}

// takeUp goes on with a page that was interrupted: what the filter does not mean any
// more was done.
func (r *bulkRun) takeUp(ctx context.Context) error {
	if r.data.Action == "retry" { // which remembers the page by itself
		known, err := r.b.Remembered(ctx, r.effectKey())
		if err != nil {
			return err
		}
		if known {
			return r.do(ctx, r.s.Pending)
		}
	}
	var left []string
	for _, id := range r.s.Pending {
		j, err := r.b.Job(ctx, id)
		switch {
		case err != nil && forebay.CodeOf(err) != forebay.CodeNotFound:
			return err
		case err == nil && r.filter.Match(&j):
			left = append(left, id)
		default:
			r.s.Out.add(id, nil)
		}
	}
	r.s.Pending = left
	return r.do(ctx, left)
}

func (r *bulkRun) text() string {
	return fmt.Sprintf("%d done, %d not, of %d", r.s.Out.Done, r.s.Out.Failed, max(r.s.Total, r.s.Out.Matched))
}

// add counts one, and keeps why it was not done.
func (o *BulkOutcome) add(id string, err error) {
	o.Matched++
	if err == nil {
		o.Done++
		return
	}
	o.Failed++
	if len(o.Errors) < maxBulkErrors {
		o.Errors = append(o.Errors, BulkFailure{id, forebay.CodeOf(err), forebay.TextOf(err)})
	}
}

func (r *bulkRun) act(ctx context.Context, ids []string) ([]error, error) {
	errs := make([]error, len(ids))
	switch r.data.Action {
	case "cancel":
		results, err := r.b.Cancel(ctx, ids, r.data.Reason)
		for i := range results {
			errs[i] = results[i].Err
		}
		return errs, err
	case "retry":
		return r.retry(ctx, ids)
	case "promote":
		changes := make([]engine.JobChange, len(ids))
		now := time.Now()
		for i, id := range ids {
			changes[i] = engine.JobChange{ID: id, Due: &now}
		}
		return r.b.Change(ctx, changes)
	case "remove":
		return r.b.Remove(ctx, ids)
	}
	return nil, forebay.Permanent(errors.New("there is no action " + r.data.Action))
}

// eachPage goes through all jobs of a filter until do says that it is enough.
func eachPage(ctx context.Context, b *broker.Broker, f engine.JobFilter, do func([]forebay.Job) (bool, error)) error {
	q := engine.JobQuery{Filter: f, Limit: engine.MaxJobs}
	for {
		page, err := b.Jobs(ctx, q)
		if err != nil {
			return err
		}
		if len(page.Jobs) > 0 {
			if on, err := do(page.Jobs); err != nil || !on {
				return err
			}
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}
