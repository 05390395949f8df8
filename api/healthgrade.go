package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/monitor"
)

// Health is how well the server and its queues are, with reasons.
type Health struct {
	Grade  monitor.Grade         `json:"grade" enum:"healthy,warning,critical" doc:"The worst of all."`
	At     time.Time             `json:"at"`
	Queues []monitor.QueueHealth `json:"queues" nullable:"false"`
	Parts  []PartHealth          `json:"parts" nullable:"false" doc:"What the server stands on, as /readyz checks it."`
}

// PartHealth is how well one part of the server is.
type PartHealth struct {
	Name  string        `json:"name"`
	Grade monitor.Grade `json:"grade" enum:"healthy,warning,critical"`
	Code  forebay.Code  `json:"code,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// ScalingList is how many workers queues want.
type ScalingList struct {
	Items []monitor.Scaling `json:"items" nullable:"false"`
}

func (a *API) healthRoutes(h huma.API) {
	if a.cfg.Monitor == nil {
		return
	}
	huma.Register(h, operation(http.MethodGet, "/api/health", "health", "Grade the server and its queues, with reasons"),
		func(ctx context.Context, _ *struct{}) (*answer[Health], error) {
			return reply(a.health(ctx))
		})
	huma.Register(h, operation(http.MethodGet, "/api/scaling", "scaling", "Tell how many workers each queue wants"),
		func(ctx context.Context, _ *struct{}) (*answer[ScalingList], error) {
			items, err := a.cfg.Monitor.Scaling(ctx)
			items = slices.DeleteFunc(items, func(s monitor.Scaling) bool { return !holds(ctx, s.Queue) })
			return reply(ScalingList{append([]monitor.Scaling{}, items...)}, err)
		})
	huma.Register(h, operation(http.MethodGet, "/api/scaling/{queue}", "scaling-of-queue", "Tell how many workers a queue wants; one that had no message yet wants none"),
		func(ctx context.Context, in *struct {
			Queue string `path:"queue" maxLength:"80"`
		}) (*answer[monitor.Scaling], error) {
			items, err := a.cfg.Monitor.Scaling(ctx, in.Queue)
			if err != nil {
				return nil, problemOf(err)
			}
			return reply(items[0], nil)
		})
}

func (a *API) health(ctx context.Context) (Health, error) {
	v := Health{Grade: monitor.Healthy, At: a.cfg.Now(), Parts: []PartHealth{}}
	queues, err := a.cfg.Monitor.Health(ctx)
	if err != nil {
		return v, err
	}
	queues = slices.DeleteFunc(queues, func(q monitor.QueueHealth) bool { return !holds(ctx, q.Queue) })
	v.Queues = append([]monitor.QueueHealth{}, queues...)
	for _, q := range queues {
		v.Grade = v.Grade.Worse(q.Grade)
	}
	for _, c := range a.checked() {
		p := PartHealth{Name: c.Name, Grade: monitor.Healthy, Code: c.Code, Text: c.Message}
		switch {
		case c.OK:
		case c.Optional:
			p.Grade = monitor.Warning
		default:
			p.Grade = monitor.Critical
		}
		v.Grade = v.Grade.Worse(p.Grade)
		v.Parts = append(v.Parts, p)
	}
	return v, nil
}
