package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
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

	Fingerprint string `json:"fingerprint" doc:"Of its cause: the group that it is in."`
	ReplayOf    string `json:"replayOf,omitempty" doc:"The job that it replayed."`
	Replays     int    `json:"replays,omitempty" doc:"How often it was replayed before, as that job and those before it."`
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
	Group string `json:"group,omitempty" query:"group" pattern:"^[0-9a-f]{16}$" doc:"A fingerprint, as /api/dead/groups shows it."`
}

// DeadReplay says which dead letters to send again.
type DeadReplay struct {
	Selection
	DeadFilter
	Into string `json:"into,omitempty" doc:"Another queue than the one in which they died."`
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
			replay := func(ctx context.Context, seqs []int64) ([]error, error) {
				return replayDead(ctx, a.cfg.Broker, seqs, in.Body.Into)
			}
			return reply(a.actOnDead(ctx, "dead letters replayed", in.Body.Selection, in.Body.DeadFilter, "", in.Body.Into, replay))
		})
	huma.Register(h, operation(http.MethodPost, "/api/dead/discard", "discard-dead", "Remove dead letters for good"),
		func(ctx context.Context, in *answer[DeadDiscard]) (*answer[Outcome], error) {
			discard := func(ctx context.Context, seqs []int64) ([]error, error) {
				return a.cfg.Broker.DiscardDead(ctx, seqs, in.Body.Reason)
			}
			return reply(a.actOnDead(ctx, "dead letters discarded", in.Body.Selection, in.Body.DeadFilter, in.Body.Reason, "", discard))
		})
	a.deadEditRoutes(h)
	a.deadGroupRoutes(h)
	a.deadActionRoutes(h)
}

// actOnDead does something with some dead letters while the caller waits.
func (a *API) actOnDead(ctx context.Context, what string, s Selection, f DeadFilter, reason, into string,
	do func(context.Context, []int64) ([]error, error)) (Outcome, error) {
	q, err := f.engine(0, 0)
	if err == nil {
		err = a.knownQueue(ctx, f.Queue)
	}
	if err == nil && into != "" {
		err = mustHold(ctx, into)
	}
	if err != nil {
		return Outcome{}, err
	}
	out, err := a.deadAction(q, do).run(ctx, s, f != DeadFilter{})
	a.told(ctx, what, out, err, "filter", f, "reason", reason)
	return out, err
}

// namedQueues is how many queues an error names.
const namedQueues = 20

// knownQueue refuses to act on a queue that is not there, which would do nothing and
// say that it is done. Empty: none was named.
func (a *API) knownQueue(ctx context.Context, queue string) error {
	if queue == "" {
		return nil
	}
	names, err := a.heldQueues(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(names, queue) {
		return nil
	}
	e := forebay.Errorf(forebay.CodeNotFound, "", "there is no queue %q", queue)
	e.Field, e.Hint = "queue", "no queue has had a message yet"
	if n := len(names); n > 0 {
		e.Hint = "there are: " + strings.Join(names[:min(n, namedQueues)], ", ")
		if n > namedQueues {
			e.Hint += fmt.Sprintf(" and %d more", n-namedQueues)
		}
	}
	return e
}

func replayDead(ctx context.Context, b *broker.Broker, seqs []int64, into string) ([]error, error) {
	replay := b.ReplayDead
	if into != "" {
		replay = func(ctx context.Context, seqs []int64) ([]broker.ReplayResult, error) {
			return b.ReplayInto(ctx, seqs, into)
		}
	}
	results, err := replay(ctx, seqs)
	errs := make([]error, len(results))
	for i := range results {
		errs[i] = results[i].Err
	}
	return errs, err
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
	q, err := in.engine(in.Before, in.Limit)
	if err != nil {
		return DeadList{}, err
	}
	letters, err := a.deadPage(ctx, q)
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
	d, err := a.cfg.Broker.DeadLetter(ctx, seq)
	if err != nil {
		return DeadLetter{}, err
	}
	return deadOf(&d, true), nil
}

func (a *API) deadAction(q engine.DeadQuery, do func(context.Context, []int64) ([]error, error)) action {
	return action{do: do, list: func(ctx context.Context, before int64, limit int) ([]int64, error) {
		q.Before, q.Limit = before, limit
		letters, err := a.deadPage(ctx, q)
		seqs := make([]int64, len(letters))
		for i := range letters {
			seqs[i] = letters[i].Seq
		}
		return seqs, err
	}}
}

func (f DeadFilter) engine(before int64, limit int) (engine.DeadQuery, error) {
	q := engine.DeadQuery{Queue: f.Queue, ID: f.ID, Code: f.Code, Before: before, Limit: limit}
	group, err := parseFingerprint(f.Group)
	q.Group = group
	return q, err
}

func deadOf(d *forebay.DeadLetter, payload bool) DeadLetter {
	v := DeadLetter{
		Seq: d.Seq, Message: messageOf(&d.Message, payload), Cause: d.Cause, Attempts: d.Attempts, Deliveries: d.Deliveries,
		Failures: d.Failures, SentAt: d.SentAt, DiedAt: d.DiedAt, Fingerprint: fingerprint(d.Fingerprint),
		ReplayOf: d.Message.Headers[broker.HeaderReplayOf],
	}
	v.Replays, _ = strconv.Atoi(d.Message.Headers[broker.HeaderReplays]) // none
	return v
}
