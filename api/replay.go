package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/history"
)

// HistoryReplay says which part of what was sent is to be sent again, and where to.
type HistoryReplay struct {
	Queue  string   `json:"queue,omitempty" doc:"What was sent to it; the default is events."`
	Types  []string `json:"types,omitempty" maxItems:"100" doc:"Only these kinds; of events: their types."`
	Key    string   `json:"key,omitempty" maxLength:"256" doc:"Only of this user of an event, group or limit key."`
	ID     string   `json:"id,omitempty" maxLength:"128" doc:"Only this message."`
	From   string   `json:"from,omitempty" doc:"A time as RFC 3339, or how long ago: -1h, 7d. Absent: from the oldest."`
	To     string   `json:"to,omitempty" doc:"Likewise; before it. Absent: to the newest."`
	Into   string   `json:"into" enum:"queue,sink,projection"`
	Name   string   `json:"name,omitempty" doc:"Of the queue (absent: the one it was sent to), or of the projection."`
	Rate   int      `json:"rate,omitempty" minimum:"0" maximum:"1000000" doc:"At most so many a second; 0: what the target takes beside live work."`
	DryRun bool     `json:"dryRun,omitempty" doc:"Only count what is meant."`
}

// Replaying is a replay that has begun: it is a job.
type Replaying struct {
	JobID     string `json:"jobId"`
	StreamURL string `json:"streamUrl"`
}

func (a *API) replayRoutes(h huma.API) {
	op := operation(http.MethodPost, historyPath+"/replay", "replay-history", "Send again what was sent, into a queue, the sink or a projection, as a job")
	op.Description = "The job tells its progress, goes on after a restart, and its result counts. What a sink has already is not written twice; what goes into a queue has ids of its own."
	op.DefaultStatus = http.StatusAccepted
	huma.Register(h, op, func(ctx context.Context, in *answer[HistoryReplay]) (*answer[Replaying], error) {
		return reply(a.startReplay(ctx, in.Body))
	})
}

func (a *API) startReplay(ctx context.Context, in HistoryReplay) (Replaying, error) {
	if err := a.mayAskKey(ctx, in.Key); err != nil {
		return Replaying{}, err
	}
	now := a.cfg.Now()
	r := history.Request{
		Selection: history.Selection{Queue: in.Queue, Types: in.Types, Key: in.Key, ID: in.ID},
		Into:      in.Into, Name: in.Name, Rate: in.Rate, DryRun: in.DryRun,
	}
	if r.Queue == "" {
		r.Queue = event.Queue
	}
	var err error
	for _, one := range []struct {
		name, text string
		to         *time.Time
	}{{"from", in.From, &r.From}, {"to", in.To, &r.To}} {
		if one.text == "" {
			continue
		}
		if *one.to, err = history.Moment(one.text, now); err != nil {
			return Replaying{}, wrong(one.name, "%v", err)
		}
	}
	if err := r.Check(); err != nil {
		return Replaying{}, err
	}
	if err := mayReplay(ctx, &r); err != nil {
		return Replaying{}, err
	}
	if err := a.replayable(ctx, &r); err != nil {
		return Replaying{}, err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return Replaying{}, err
	}
	m := forebay.Message{Queue: history.Queue, Kind: history.Kind, Payload: data, Job: &forebay.JobOptions{Tags: []string{in.Into}}}
	deriveID(ctx, &m, 0)
	results, err := a.cfg.Broker.Send(ctx, []forebay.Message{m})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return Replaying{}, err
	}
	id := results[0].ID
	a.cfg.Logger.Info("api: history is replayed", "request", string(data), "job", id, "by", caller(ctx))
	return Replaying{JobID: id, StreamURL: jobPath + url.PathEscape(id) + streamSuffix}, nil
}

// mayReplay refuses to whoever does not hold for both ends. A projection is of what it is
// made of: whatever that is.
func mayReplay(ctx context.Context, r *history.Request) error {
	err := mustHold(ctx, r.Queue)
	switch {
	case err != nil || holdsAll(ctx):
	case r.Into == history.IntoQueue && r.Name != "":
		err = mustHold(ctx, r.Name)
	case r.Into == history.IntoSink:
		err = mustHold(ctx, event.Queue)
	case r.Into == history.IntoProjection:
		err = notHeld(ctx, "projections")
	}
	return err
}

// replayable tells at once what would end a replay for good, or leave it without any
// effect: it comes from a queue that is not there or keeps no log, or goes nowhere.
func (a *API) replayable(ctx context.Context, r *history.Request) error {
	stats, err := a.cfg.Broker.Stats(ctx)
	if err != nil {
		return err
	}
	known := slices.Concat(a.cfg.Queues, []string{event.Queue})
	for i := range stats {
		known = append(known, stats[i].Queue)
	}
	absent := func(field, queue string) error {
		e := forebay.Errorf(forebay.CodeNotFound, "", "there is no queue %q; a queue comes to be with its first message, or by being named in the settings", queue)
		e.Field = field
		return e
	}
	switch {
	case !slices.Contains(known, r.Queue):
		return absent("queue", r.Queue)
	case r.Into == history.IntoQueue && r.Name != "" && !slices.Contains(known, r.Name):
		return absent("name", r.Name)
	case a.cfg.Replayable != nil:
		if err := a.cfg.Replayable(*r); err != nil {
			return err
		}
	}
	_, err = history.Read(ctx, a.cfg.Broker, r.Selection, 0, 1) // a queue without a log
	return err
}
