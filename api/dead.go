package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// DeadLetter is a dead letter as it is shown.
type DeadLetter struct {
	Seq        int64           `json:"seq"`
	Message    Message         `json:"message"`
	Cause      forebay.Cause   `json:"cause"`
	Attempts   int             `json:"attempts"`
	Deliveries int             `json:"deliveries"`
	Failures   []forebay.Cause `json:"failures,omitempty" doc:"Of the attempts before, oldest first."`
	SentAt     time.Time       `json:"sentAt"`
	DiedAt     time.Time       `json:"diedAt"`
}

// DeadList is one page of dead letters, newest first.
type DeadList struct {
	Items []DeadLetter `json:"items" nullable:"false"`
	Next  int64        `json:"next,omitempty" doc:"before= of the next page; absent: this is the last."`
}

// DeadFilter selects dead letters.
type DeadFilter struct {
	Queue string `json:"queue,omitempty" query:"queue"`
	ID    string `json:"id,omitempty" query:"id" doc:"Of the message."`
	Code  string `json:"code,omitempty" query:"code" doc:"Of the cause, e.g. a SQLSTATE."`
}

// DeadReplay says which dead letters to send again.
type DeadReplay struct {
	Selection
	DeadFilter
}

// DeadDiscard says which dead letters to remove for good, and why.
type DeadDiscard struct {
	Selection
	DeadFilter
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"For the log."`
}

type deadQuery struct {
	DeadFilter
	Before int64 `query:"before" minimum:"0" doc:"Only with a smaller seq; 0: from the newest."`
	Limit  int   `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

func (a *API) deadRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/dead", "list-dead", "List dead letters, newest first"),
		func(ctx context.Context, in *deadQuery) (*answer[DeadList], error) {
			return reply(a.listDead(ctx, in))
		})
	huma.Register(h, operation(http.MethodGet, "/api/dead/{seq}", "get-dead", "Show a dead letter with its payload"),
		func(ctx context.Context, in *struct {
			Seq int64 `path:"seq" minimum:"1"`
		}) (*answer[DeadLetter], error) {
			return reply(a.getDead(ctx, in.Seq))
		})
	huma.Register(h, operation(http.MethodPost, "/api/dead/replay", "replay-dead", "Send dead letters again, in the order in which they died"),
		func(ctx context.Context, in *answer[DeadReplay]) (*answer[Outcome], error) {
			out, err := a.deadAction(in.Body.DeadFilter, a.cfg.Broker.Replay).run(ctx, in.Body.Selection, in.Body.DeadFilter != DeadFilter{})
			a.told(ctx, "dead letters replayed", out, err, "filter", in.Body.DeadFilter)
			return reply(out, err)
		})
	huma.Register(h, operation(http.MethodPost, "/api/dead/discard", "discard-dead", "Remove dead letters for good"),
		func(ctx context.Context, in *answer[DeadDiscard]) (*answer[Outcome], error) {
			out, err := a.deadAction(in.Body.DeadFilter, a.cfg.Broker.Discard).run(ctx, in.Body.Selection, in.Body.DeadFilter != DeadFilter{})
			a.told(ctx, "dead letters discarded", out, err, "filter", in.Body.DeadFilter, "reason", in.Body.Reason)
			return reply(out, err)
		})
}

// told logs what somebody has changed.
func (a *API) told(ctx context.Context, what string, out Outcome, err error, args ...any) {
	if out.DryRun || err != nil {
		return
	}
	args = append(args, "by", caller(ctx), "done", out.Done, "failed", out.FailedCount)
	a.cfg.Logger.Info("api: "+what, args...)
}

func (a *API) listDead(ctx context.Context, in *deadQuery) (DeadList, error) {
	letters, err := a.cfg.Broker.Dead(ctx, in.engine(in.Before, in.Limit))
	if err != nil {
		return DeadList{}, err
	}
	list := DeadList{Items: make([]DeadLetter, len(letters))}
	for i := range letters {
		list.Items[i] = deadOf(&letters[i], false)
	}
	if len(letters) == in.Limit {
		list.Next = letters[len(letters)-1].Seq
	}
	return list, nil
}

func (a *API) getDead(ctx context.Context, seq int64) (DeadLetter, error) {
	letters, err := a.cfg.Broker.Dead(ctx, engine.DeadQuery{Before: seq + 1, Limit: 1})
	if err != nil {
		return DeadLetter{}, err
	}
	if len(letters) == 0 || letters[0].Seq != seq {
		return DeadLetter{}, forebay.Errorf(forebay.CodeNotFound, "", "there is no dead letter %d", seq)
	}
	return deadOf(&letters[0], true), nil
}

func (a *API) deadAction(f DeadFilter, do func(context.Context, []int64) ([]error, error)) action {
	return action{do: do, list: func(ctx context.Context, before int64, limit int) ([]int64, error) {
		letters, err := a.cfg.Broker.Dead(ctx, f.engine(before, limit))
		seqs := make([]int64, len(letters))
		for i := range letters {
			seqs[i] = letters[i].Seq
		}
		return seqs, err
	}}
}

func (f DeadFilter) engine(before int64, limit int) engine.DeadQuery {
	return engine.DeadQuery{Queue: f.Queue, ID: f.ID, Code: f.Code, Before: before, Limit: limit}
}

func deadOf(d *forebay.DeadLetter, payload bool) DeadLetter {
	return DeadLetter{
		Seq: d.Seq, Message: messageOf(&d.Message, payload), Cause: d.Cause, Attempts: d.Attempts, Deliveries: d.Deliveries,
		Failures: d.Failures, SentAt: d.SentAt, DiedAt: d.DiedAt,
	}
}
