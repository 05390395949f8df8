package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
)

// DeadEdit changes a dead letter on its way back. Absent fields stay.
type DeadEdit struct {
	Data     json.RawMessage   `json:"data,omitempty" doc:"Any JSON, at most 1 MiB."`
	Queue    string            `json:"queue,omitempty"`
	Priority *int              `json:"priority,omitempty" minimum:"0" maximum:"9"`
	Delay    Duration          `json:"delay,omitzero" doc:"Not before this has passed."`
	Attempts int               `json:"attempts,omitempty" minimum:"0" doc:"Failed ones before it is dead."`
	Timeout  Duration          `json:"timeout,omitzero" doc:"Of one attempt of a job."`
	Headers  map[string]string `json:"headers,omitempty" doc:"Set; with an empty value: taken out."`
}

// DeadEdited is the message that is sent now.
type DeadEdited struct {
	JobID    string `json:"jobId"`
	ReplayOf string `json:"replayOf" doc:"The id of the dead letter."`
}

func (a *API) deadEditRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodPost, "/api/dead/{seq}/replay", "edit-dead", "Send a dead letter again with changes"),
		func(ctx context.Context, in *struct {
			Seq  int64 `path:"seq" minimum:"1"`
			Body DeadEdit
		}) (*answer[DeadEdited], error) {
			return reply(a.replayEdited(ctx, in.Seq, &in.Body))
		})
}

func (a *API) replayEdited(ctx context.Context, seq int64, e *DeadEdit) (DeadEdited, error) {
	if e.Data != nil && !json.Valid(e.Data) {
		return DeadEdited{}, wrong("data", "data is not JSON")
	}
	d, err := a.cfg.Broker.DeadLetter(ctx, seq)
	if err == nil && e.Queue != "" {
		err = mustHold(ctx, e.Queue)
	}
	if err == nil {
		err = mustClaim(ctx, e.Headers)
	}
	if err != nil {
		return DeadEdited{}, err
	}
	edit := broker.ReplayEdit{
		Queue: e.Queue, Payload: e.Data, Headers: e.Headers, Delay: time.Duration(e.Delay), Attempts: e.Attempts, Timeout: time.Duration(e.Timeout),
	}
	if e.Priority != nil {
		edit.Priority = ptr(forebay.At(*e.Priority))
	}
	id, err := a.cfg.Broker.ReplayEdited(ctx, seq, edit)
	if err == nil {
		a.cfg.Logger.Info("api: dead letter replayed with changes", "seq", seq, "of", d.Message.ID, "as", id, "by", caller(ctx))
	}
	return DeadEdited{JobID: id, ReplayOf: d.Message.ID}, err
}
