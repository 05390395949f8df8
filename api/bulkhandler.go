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

// BulkOutcome is the result of the job that acted on many.
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

// BulkHandler does what POST /api/jobs/actions started. A run that is interrupted
// begins again: what was done by then is no longer in a state to be done, and a
// retry of jobs that were not dead is remembered page by page.
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
		run := &bulkRun{b: b, job: j, data: data, out: BulkOutcome{Action: data.Action}}
		if err := run.count(ctx, f); err != nil {
			return nil, err
		}
		if err := eachPage(ctx, b, f, func(jobs []forebay.Job) (bool, error) { return true, run.page(ctx, jobs) }); err != nil {
			return nil, err
		}
		j.Progress("done", 100, run.text())
		return json.Marshal(run.out)
	})
}

type bulkRun struct {
	b     *broker.Broker
	job   *worker.Job
	data  bulkData
	total int
	out   BulkOutcome
}

func (r *bulkRun) count(ctx context.Context, f engine.JobFilter) error {
	r.job.Progress("counting", 0, "")
	return eachPage(ctx, r.b, f, func(jobs []forebay.Job) (bool, error) {
		r.total += len(jobs)
		return r.total < maxCounted, nil
	})
}

func (r *bulkRun) page(ctx context.Context, jobs []forebay.Job) error {
	ids := make([]string, 0, len(jobs))
	for i := range jobs {
		if jobs[i].ID != r.job.ID { // itself
			ids = append(ids, jobs[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	errs, err := r.act(ctx, ids)
	if err != nil {
		return err
	}
	for i, err := range errs {
		r.out.Matched++
		if err == nil {
			r.out.Done++
		} else {
			r.out.fail(ids[i], err)
		}
	}
	r.job.Progress(r.data.Action, 100*float64(r.out.Matched)/float64(max(r.total, r.out.Matched)), r.text())
	return nil
}

func (r *bulkRun) text() string {
	return fmt.Sprintf("%d done, %d not, of %d", r.out.Done, r.out.Failed, max(r.total, r.out.Matched))
}

func (o *BulkOutcome) fail(id string, err error) {
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

// retry remembers what became of a page: a job that was not dead is sent anew, which
// a second run would do again.
func (r *bulkRun) retry(ctx context.Context, ids []string) ([]error, error) {
	type failed struct {
		Code forebay.Code
		Text string
	}
	kept, err := r.b.Effect(ctx, "bulk/"+r.job.Key()+"/"+ids[0], func(ctx context.Context) ([]byte, error) {
		results, err := r.b.Retry(ctx, ids)
		if err != nil {
			return nil, err
		}
		all := make(map[string]failed)
		for i := range results {
			if e := results[i].Err; e != nil {
				all[ids[i]] = failed{forebay.CodeOf(e), forebay.TextOf(e)}
			}
		}
		return json.Marshal(all)
	})
	if err != nil {
		return nil, err
	}
	var all map[string]failed
	if err := json.Unmarshal(kept, &all); err != nil {
		return nil, err
	}
	errs := make([]error, len(ids))
	for i, id := range ids {
		if f, bad := all[id]; bad {
			errs[i] = forebay.Errorf(f.Code, "", "%s", f.Text)
		}
	}
	return errs, nil
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
