package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Acted is what became of one action on one job.
type Acted struct {
	JobID string        `json:"jobId" doc:"Of the job that was acted on; after a retry, of the one that runs now."`
	State forebay.State `json:"state,omitempty" doc:"After it. A cancelled job that is still active was asked to stop."`
}

// Reason says why, for the history.
type Reason struct {
	Reason string `json:"reason,omitempty" maxLength:"1024"`
}

// JobPatch changes a job that waits. Absent fields stay.
type JobPatch struct {
	Priority *int            `json:"priority,omitempty" minimum:"0" maximum:"9"`
	Delay    *Duration       `json:"delay,omitempty" doc:"From now; 0s: at once."`
	RunAt    time.Time       `json:"runAt,omitzero" doc:"Instead of delay."`
	Data     json.RawMessage `json:"data,omitempty"`
}

func (a *API) actRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodPost, "/api/jobs/{id}/cancel", "cancel-job", "Cancel a job; one that runs is asked to stop"),
		func(ctx context.Context, in *struct {
			OneJob
			Body *Reason
		}) (*answer[Acted], error) {
			reason := ""
			if in.Body != nil {
				reason = in.Body.Reason
			}
			return reply(a.did(ctx, "cancel", in.ID, func() (Acted, error) { return a.cancel(ctx, in.ID, reason) }))
		})
	huma.Register(h, operation(http.MethodPost, "/api/jobs/{id}/retry", "retry-job", "Run a finished job again"),
		func(ctx context.Context, in *OneJob) (*answer[Acted], error) {
			return reply(a.did(ctx, "retry", in.ID, func() (Acted, error) { return a.retry(ctx, in.ID) }))
		})
	huma.Register(h, operation(http.MethodPost, "/api/jobs/{id}/promote", "promote-job", "Let a delayed job begin now"),
		func(ctx context.Context, in *OneJob) (*answer[Acted], error) {
			return reply(a.did(ctx, "promote", in.ID, func() (Acted, error) {
				return a.change(ctx, engine.JobChange{ID: in.ID, Due: ptr(a.cfg.Now())})
			}))
		})
	huma.Register(h, operation(http.MethodPatch, "/api/jobs/{id}", "change-job", "Change priority, delay or data of a job that waits"),
		func(ctx context.Context, in *struct {
			OneJob
			Body JobPatch
		}) (*answer[Acted], error) {
			return reply(a.did(ctx, "change", in.ID, func() (Acted, error) { return a.patch(ctx, in.ID, in.Body) }))
		})
	huma.Register(h, operation(http.MethodDelete, "/api/jobs/{id}", "remove-job", "Remove a finished job"),
		func(ctx context.Context, in *OneJob) (*answer[Acted], error) {
			return reply(a.did(ctx, "remove", in.ID, func() (Acted, error) {
				return Acted{JobID: in.ID}, first(a.cfg.Broker.Remove(ctx, []string{in.ID}))
			}))
		})
}

// did logs what somebody has done to a job.
func (a *API) did(ctx context.Context, what, id string, do func() (Acted, error)) (Acted, error) {
	v, err := do()
	if err == nil {
		a.cfg.Logger.Info("api: job: "+what, "job", id, "by", caller(ctx))
	}
	return v, err
}

func (a *API) cancel(ctx context.Context, id, reason string) (Acted, error) {
	results, err := a.cfg.Broker.Cancel(ctx, []string{id}, reason)
	if err != nil {
		return Acted{}, err
	}
	return Acted{id, results[0].State}, results[0].Err
}

func (a *API) retry(ctx context.Context, id string) (Acted, error) {
	results, err := a.cfg.Broker.Retry(ctx, []string{id})
	if err != nil {
		return Acted{}, err
	}
	return Acted{results[0].ID, forebay.StateWaiting}, results[0].Err
}

func (a *API) patch(ctx context.Context, id string, p JobPatch) (Acted, error) {
	c := engine.JobChange{ID: id, Payload: p.Data}
	if p.Priority != nil {
		c.Priority = ptr(forebay.At(*p.Priority))
	}
	switch {
	case p.Delay != nil && !p.RunAt.IsZero():
		return Acted{}, wrong("delay", "either delay or runAt says when it may begin, not both")
	case p.Delay != nil:
		c.Due = ptr(a.cfg.Now().Add(time.Duration(*p.Delay)))
	case !p.RunAt.IsZero():
		c.Due = &p.RunAt
	}
	if c.Priority == nil && c.Due == nil && c.Payload == nil {
		return Acted{}, wrong("", "nothing is to be changed; priority, delay, runAt and data can be")
	}
	return a.change(ctx, c)
}

func (a *API) change(ctx context.Context, c engine.JobChange) (Acted, error) {
	if err := first(a.cfg.Broker.Change(ctx, []engine.JobChange{c})); err != nil {
		return Acted{}, err
	}
	j, err := a.cfg.Broker.Job(ctx, c.ID)
	return Acted{c.ID, j.State}, err
}

// first is the error of a plural call for one.
func first(errs []error, err error) error {
	if err != nil {
		return err
	}
	return errs[0]
}

func ptr[T any](v T) *T { return &v }
