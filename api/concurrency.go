package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// Tuned is a worker whose concurrency people see and set (worker.Worker).
type Tuned interface {
	Slots() (busy, all int)
	Concurrency() worker.Concurrency
	Tune(worker.Concurrency) error
}

// Concurrency is how many deliveries, or batches, of a queue this server works on at once.
type Concurrency struct {
	Auto    bool `json:"auto" doc:"It follows what stands behind the handlers, within min and max."`
	Limit   int  `json:"limit" doc:"At most so many now."`
	Running int  `json:"running"`
	Min     int  `json:"min,omitempty"`
	Max     int  `json:"max,omitempty"`
}

// SetConcurrency says how many: a number, or what is found out within bounds.
type SetConcurrency struct {
	Auto  bool `json:"auto,omitempty"`
	Limit int  `json:"limit,omitempty" minimum:"1" maximum:"10000" doc:"Without auto: so many."`
	Min   int  `json:"min,omitempty" minimum:"1" maximum:"10000" doc:"With auto; absent: 1."`
	Max   int  `json:"max,omitempty" minimum:"1" maximum:"10000" doc:"With auto; absent: 100."`
}

func (a *API) concurrencyRoutes(h huma.API) {
	op := operation(http.MethodPut, "/api/queues/{name}/concurrency", "set-concurrency", "Set how many deliveries of a queue this server works on at once")
	op.Description = "At once, and until it is set again or the server ends; what lasts is queues.<name>.concurrency in the settings. It is of this server only: limits hold for all."
	huma.Register(h, op, func(ctx context.Context, in *struct {
		Name string `path:"name" maxLength:"80"`
		Body SetConcurrency
	}) (*answer[Concurrency], error) {
		return reply(a.setConcurrency(ctx, in.Name, in.Body))
	})
}

func (a *API) setConcurrency(ctx context.Context, queue string, in SetConcurrency) (Concurrency, error) {
	w := a.cfg.Tuned[queue]
	switch {
	case w == nil:
		return Concurrency{}, forebay.Errorf(forebay.CodeNotFound, "", "no worker of this server works on the queue %q", queue)
	case in.Auto == (in.Limit > 0):
		return Concurrency{}, wrong("limit", "either auto: true, with min and max, or a limit says how many")
	case !in.Auto && (in.Min > 0 || in.Max > 0):
		return Concurrency{}, wrong("min", "min and max go with auto: true")
	}
	if err := w.Tune(worker.Concurrency{Fixed: in.Limit, Min: in.Min, Max: in.Max}); err != nil {
		return Concurrency{}, err
	}
	a.cfg.Logger.Info("api: concurrency set", "queue", queue, "auto", in.Auto, "limit", in.Limit, "min", in.Min, "max", in.Max, "by", caller(ctx))
	return *a.concurrencyOf(queue), nil
}

// concurrencyOf is nil where this server does not work on a queue.
func (a *API) concurrencyOf(queue string) *Concurrency {
	w := a.cfg.Tuned[queue]
	if w == nil {
		return nil
	}
	c := w.Concurrency()
	v := &Concurrency{Auto: c.Fixed == 0, Limit: c.Fixed, Min: c.Min, Max: c.Max}
	v.Running, _ = w.Slots()
	if v.Auto {
		_, v.Limit = w.Slots()
	}
	return v
}
