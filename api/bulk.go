package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/filter"
	"github.com/forebayhq/forebay/stream"
)

// Actions on all jobs that a filter means are themselves a job: they can be watched
// and cancelled, and go on after a restart. BulkHandler runs them; whoever wires the
// program gives it the kind BulkKind in the queue BulkQueue.
const (
	BulkQueue = "forebay"
	BulkKind  = "bulk"
)

// maxCounted bounds how far a dry run counts, and the count for a progress in percent.
const (
	maxCounted = 100_000
	maxSample  = 20
)

// BulkAction says what to do with which jobs.
type BulkAction struct {
	Action string `json:"action" enum:"cancel,retry,promote,remove"`
	Q      string `json:"q,omitempty" maxLength:"4096" doc:"A filter, as for the list of jobs."`
	All    bool   `json:"all,omitempty" doc:"Needed where q is empty: all jobs are meant."`
	Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Of a cancel, for the history."`
	DryRun bool   `json:"dryRun,omitempty" doc:"Only count, and show some."`
}

// BulkStarted is the job that does it; a dry run starts none.
type BulkStarted struct {
	JobID     string `json:"jobId,omitempty"`
	StreamURL string `json:"streamUrl,omitempty"`
	Matched   *int   `json:"matched,omitempty" doc:"Dry run: how many jobs are meant."`
	More      bool   `json:"more,omitempty" doc:"Dry run: there are more than were counted."`
	Sample    []Job  `json:"sample,omitempty" doc:"Dry run: the first of them."`
}

// bulkData is the data of the job.
type bulkData struct {
	Action string `json:"action"`
	Q      string `json:"q"` // with its times fixed, and the states that the action is for
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// actionStates are those in which an action makes sense; the others are left alone.
// Without a state in the filter a retry means dead jobs only: to run again what was
// completed or cancelled is not what "retry all" says.
var actionStates = map[string]struct{ can, unsaid []forebay.State }{
	"cancel":  {can: []forebay.State{forebay.StateWaiting, forebay.StateDelayed, forebay.StateActive}},
	"retry":   {can: finalStates, unsaid: []forebay.State{forebay.StateDead}},
	"promote": {can: []forebay.State{forebay.StateDelayed}},
	"remove":  {can: finalStates},
}

var finalStates = []forebay.State{forebay.StateCompleted, forebay.StateDead, forebay.StateCancelled, forebay.StateExpired}

func (a *API) bulkRoutes(h huma.API) {
	op := operation(http.MethodPost, "/api/jobs/actions", "act-on-jobs", "Do something with all jobs that a filter means, as a job")
	op.DefaultStatus = http.StatusAccepted
	huma.Register(h, op, func(ctx context.Context, in *answer[BulkAction]) (*answer[BulkStarted], error) {
		return reply(a.startBulk(ctx, in.Body))
	})
}

func (a *API) startBulk(ctx context.Context, in BulkAction) (BulkStarted, error) {
	f, err := a.bulkFilter(ctx, in)
	if err != nil {
		return BulkStarted{}, err
	}
	if in.DryRun {
		return a.dryRun(ctx, f)
	}
	data, err := json.Marshal(bulkData{in.Action, filter.String(f), in.Reason, caller(ctx)})
	if err != nil {
		return BulkStarted{}, err
	}
	m := forebay.Message{Queue: BulkQueue, Kind: BulkKind, Payload: data, Job: &forebay.JobOptions{Tags: []string{in.Action}}}
	deriveID(ctx, &m, 0)
	results, err := a.cfg.Broker.Send(ctx, []forebay.Message{m})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return BulkStarted{}, err
	}
	id := results[0].ID
	a.cfg.Logger.Info("api: jobs: "+in.Action, "filter", toldFilter(filter.String(f), a.cfg.Now()), "job", id, "by", caller(ctx))
	return BulkStarted{JobID: id, StreamURL: jobPath + url.PathEscape(id) + streamSuffix}, nil
}

// bulkFilter narrows the filter to what the action can be done with, and to the jobs
// that are there now, so that the action comes to an end.
func (a *API) bulkFilter(ctx context.Context, in BulkAction) (engine.JobFilter, error) {
	now := a.cfg.Now()
	f, err := a.jobFilter(ctx, in.Q)
	if err != nil {
		return f, err
	}
	if in.All != (filter.String(f) == "") {
		return f, wrong("q", "either a filter says which jobs are meant, or all: true says that all are")
	}
	if f.Queue, err = a.oneQueue(ctx, f.Queue); err != nil {
		return f, err
	}
	s := actionStates[in.Action]
	states := s.can
	if len(f.States) > 0 {
		states = slices.DeleteFunc(slices.Clone(f.States), func(st forebay.State) bool { return !slices.Contains(s.can, st) })
	} else if s.unsaid != nil {
		states = s.unsaid
	}
	if len(states) == 0 {
		return f, wrong("q", "the filter means %v jobs only; %s is for %v", f.States, in.Action, s.can)
	}
	f.States = states
	if f.Until.IsZero() || f.Until.After(now) {
		f.Until = now
	}
	return f, nil
}

func (a *API) dryRun(ctx context.Context, f engine.JobFilter) (BulkStarted, error) {
	var v BulkStarted
	n := 0
	err := eachPage(ctx, a.cfg.Broker, f, func(jobs []forebay.Job) (bool, error) {
		n += len(jobs)
		for i := range jobs[:min(len(jobs), maxSample-len(v.Sample))] {
			v.Sample = append(v.Sample, stream.JobOf(&jobs[i]))
		}
		v.More = n >= maxCounted
		return !v.More, nil
	})
	v.Matched = &n
	return v, err
}
