package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// Worker is what this process works on.
type Worker struct {
	Queue       string   `json:"queue"`
	Handlers    []string `json:"handlers" nullable:"false" doc:"Names of the jobs that have a handler; * stands for all others."`
	Concurrency int      `json:"concurrency" doc:"Most deliveries, or batches, at once."`
	Auto        bool     `json:"auto,omitempty" doc:"It tunes itself: that is its concurrency now."`
	Batch       bool     `json:"batch,omitempty" doc:"It writes events in batches."`
}

// WorkerList is all workers of this process. Those that pull, and those of other
// processes, are seen by what they have leased only.
type WorkerList struct {
	Items []Worker `json:"items" nullable:"false"`
}

func (a *API) workerRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/workers", "list-workers", "List the workers of this process, with their handlers"),
		func(ctx context.Context, _ *struct{}) (*answer[WorkerList], error) {
			list := WorkerList{Items: []Worker{}}
			for _, w := range a.cfg.Workers {
				if c := a.concurrencyOf(w.Queue); c != nil {
					w.Concurrency, w.Auto = c.Limit, c.Auto
				}
				if holds(ctx, w.Queue) {
					list.Items = append(list.Items, w)
				}
			}
			return reply(list, nil)
		})
}
