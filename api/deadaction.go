package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// What is done to many dead letters is done by a job, so that it can be watched, paused,
// cancelled and continued, and goes on after a restart. DeadHandler runs it; whoever
// wires the program gives it the kind DeadKind in the queue BulkQueue.
const DeadKind = "dead"

// DeadAction says what to do with which dead letters.
type DeadAction struct {
	Action string `json:"action" enum:"replay,discard"`
	DeadFilter
	All    bool    `json:"all,omitempty" doc:"Needed where there is no filter: all dead letters are meant."`
	Reason string  `json:"reason,omitempty" maxLength:"1024" doc:"Of a discard, for the history. Needed there."`
	Canary *Canary `json:"canary,omitempty" doc:"Of a replay: first some of them, and the others if these end well."`
	Rate   float64 `json:"rate,omitempty" minimum:"0" maximum:"100000" doc:"A second at most; 0: as fast as it goes."`
	DryRun bool    `json:"dryRun,omitempty" doc:"Only count, and show some."`
}

// Canary are the first of a replay. One is lost at its first failed attempt: then the
// cause is not mended.
type Canary struct {
	Count     int      `json:"count" minimum:"1" maximum:"1000"`
	MaxFailed int      `json:"maxFailed,omitempty" minimum:"0" doc:"With more than so many lost, the replay stops."`
	Timeout   Duration `json:"timeout,omitzero" doc:"With some of them without a verdict by then, the replay stops. Absent: 10m."`
}

// DeadActionState is how far it is.
type DeadActionState string

// How an action stands.
const (
	DeadRunning     DeadActionState = "running"
	DeadPaused      DeadActionState = "paused"
	DeadCancelled   DeadActionState = "cancelled"
	DeadStopped     DeadActionState = "stopped"     // the canary was lost
	DeadInterrupted DeadActionState = "interrupted" // its job ended before it was done
	DeadCompleted   DeadActionState = "completed"
)

// DeadWork is an action, over all its runs.
type DeadWork struct {
	ID     string          `json:"id"`
	Action string          `json:"action"`
	Filter DeadFilter      `json:"filter"`
	Reason string          `json:"reason,omitempty"`
	Rate   float64         `json:"rate,omitempty"`
	State  DeadActionState `json:"state" enum:"running,paused,cancelled,stopped,interrupted,completed"`

	Total  int          `json:"total" doc:"How many are meant, counted when it began."`
	More   bool         `json:"more,omitempty" doc:"There are more than were counted."`
	Done   int          `json:"done"`
	Failed int          `json:"failed"`
	Errors []Failure    `json:"errors,omitempty" doc:"The first 100."`
	Canary *CanaryState `json:"canary,omitempty"`

	By        string    `json:"by,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Runs      int       `json:"runs" doc:"How often it was begun or taken up again."`
	JobID     string    `json:"jobId" doc:"The job that does it, or did it last."`
	StreamURL string    `json:"streamUrl"`

	Matched *int         `json:"matched,omitempty" doc:"Dry run: how many are meant; nothing was begun."`
	Sample  []DeadLetter `json:"sample,omitempty" doc:"Dry run: the newest of them."`
}

// CanaryState is what became of the canary.
type CanaryState struct {
	Canary
	Sent     int         `json:"sent"`
	Passed   int         `json:"passed"`
	Lost     int         `json:"lost"`
	Verdict  string      `json:"verdict,omitempty" enum:"passed,lost,timeout"`
	Failures []CanaryEnd `json:"failures,omitempty" doc:"Of those that are lost, or without a verdict."`
}

// CanaryEnd is how one of a canary ended.
type CanaryEnd struct {
	JobID   string `json:"jobId"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// DeadWorkList are actions, the last begun first.
type DeadWorkList struct {
	Items []DeadWork `json:"items" nullable:"false"`
}

const (
	deadActionPath = "/api/dead/actions"
	canaryTimeout  = 10 * time.Minute
)

type oneDeadAction struct {
	ID string `path:"id"`
}

func (a *API) deadActionRoutes(h huma.API) {
	start := operation(http.MethodPost, deadActionPath, "act-on-dead", "Do something with all dead letters that a filter means, as a job")
	start.DefaultStatus = http.StatusAccepted
	huma.Register(h, start, func(ctx context.Context, in *answer[DeadAction]) (*answer[DeadWork], error) {
		return reply(a.startDead(ctx, in.Body))
	})
	huma.Register(h, operation(http.MethodGet, deadActionPath, "list-dead-actions", "List such actions of the last 30 days, the newest first"),
		func(ctx context.Context, _ *struct{}) (*answer[DeadWorkList], error) {
			return reply(a.deadWorks(ctx))
		})
	huma.Register(h, operation(http.MethodGet, deadActionPath+"/{id}", "get-dead-action", "Show how far one is, over all its runs"),
		func(ctx context.Context, in *oneDeadAction) (*answer[DeadWork], error) {
			s, err := loadDead(ctx, a.cfg.Broker, in.ID)
			if err != nil {
				return nil, problemOf(err)
			}
			return reply(a.deadWorkOf(ctx, s), nil)
		})
	for verb, act := range map[string]struct {
		summary string
		do      func(context.Context, *deadState) error
	}{
		"pause":  {"Stop one for now", func(ctx context.Context, s *deadState) error { return a.haltDead(ctx, s, DeadPaused) }},
		"cancel": {"End one; it can still be continued", func(ctx context.Context, s *deadState) error { return a.haltDead(ctx, s, DeadCancelled) }},
		"resume": {"Continue one where it stopped", a.resumeDead},
	} {
		huma.Register(h, operation(http.MethodPost, deadActionPath+"/{id}/"+verb, verb+"-dead-action", act.summary),
			func(ctx context.Context, in *oneDeadAction) (*answer[DeadWork], error) {
				return reply(a.changeDead(ctx, in.ID, verb, act.do))
			})
	}
}

// startDead begins an action. What dies from now on is not meant, or a replay of what
// fails again would never end.
func (a *API) startDead(ctx context.Context, in DeadAction) (DeadWork, error) {
	q, err := in.check()
	if err != nil {
		return DeadWork{}, err
	}
	newest, err := a.cfg.Broker.Dead(ctx, engine.DeadQuery{Limit: 1})
	if err != nil {
		return DeadWork{}, err
	}
	if len(newest) > 0 {
		q.Before = newest[0].Seq + 1
	}
	s := &deadState{DeadWork: DeadWork{
		Action: in.Action, Filter: in.DeadFilter, Reason: in.Reason, Rate: in.Rate, State: DeadRunning, By: caller(ctx), StartedAt: a.cfg.Now(),
	}, Before: q.Before}
	if len(newest) > 0 {
		if s.Total, s.More, err = a.countDead(ctx, q); err != nil {
			return DeadWork{}, err
		}
	}
	if in.DryRun {
		return a.dryDead(ctx, s, q)
	}
	if in.Canary != nil {
		s.Canary = &CanaryState{Canary: *in.Canary}
		if s.Canary.Timeout == 0 {
			s.Canary.Timeout = Duration(canaryTimeout)
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return DeadWork{}, forebay.Errorf(forebay.CodeInternal, "api: make an id", "%w", err)
	}
	s.ID = id.String()
	if err := a.beginDead(ctx, s); err != nil {
		return DeadWork{}, err
	}
	a.cfg.Logger.Info("api: dead letters: "+in.Action, "action", s.ID, "filter", in.DeadFilter, "meant", s.Total, "reason", in.Reason, "by", caller(ctx))
	return s.DeadWork, nil
}

func (in *DeadAction) check() (engine.DeadQuery, error) {
	q, err := in.engine(0, 0)
	switch {
	case err != nil:
		return q, err
	case in.All != (in.DeadFilter == DeadFilter{}):
		return q, wrong("all", "either a filter says which dead letters are meant, or all: true says that all are")
	case in.Action == "discard" && in.Reason == "":
		return q, wrong("reason", "a discard needs a reason; it is in the history")
	case in.Action == "discard" && in.Canary != nil:
		return q, wrong("canary", "a canary is for a replay; what is discarded cannot be had again")
	}
	return q, nil
}

// countDead counts what is meant, up to a bound.
func (a *API) countDead(ctx context.Context, q engine.DeadQuery) (n int, more bool, err error) {
	q.Limit = engine.MaxJobs
	for after := int64(0); n < maxCounted; {
		seqs, err := a.cfg.Broker.DeadSeqs(ctx, q, after)
		if err != nil || len(seqs) == 0 {
			return n, false, err
		}
		n, after = n+len(seqs), seqs[len(seqs)-1]
	}
	return n, true, nil
}

func (a *API) dryDead(ctx context.Context, s *deadState, q engine.DeadQuery) (DeadWork, error) {
	q.Limit = maxSample
	letters, err := a.cfg.Broker.Dead(ctx, q)
	v := s.DeadWork
	v.State, v.Matched = DeadCompleted, &s.Total
	for i := range letters {
		v.Sample = append(v.Sample, deadOf(&letters[i], false))
	}
	return v, err
}

// beginDead stores an action that is to run, and sends the job that does it. A crash
// between the two leaves an action that is interrupted, and can be resumed.
func (a *API) beginDead(ctx context.Context, s *deadState) error {
	id, err := uuid.NewV7()
	if err != nil {
		return forebay.Errorf(forebay.CodeInternal, "api: make an id", "%w", err)
	}
	s.JobID = id.String()
	s.StreamURL = jobPath + url.PathEscape(s.JobID) + streamSuffix
	if err := s.save(ctx, a.cfg.Broker); err != nil {
		return err
	}
	data, err := json.Marshal(deadData{s.ID})
	if err != nil {
		return err
	}
	results, err := a.cfg.Broker.Send(ctx, []forebay.Message{{
		ID: s.JobID, Queue: BulkQueue, Kind: DeadKind, Payload: data, Group: "dead/" + s.ID, Job: &forebay.JobOptions{Tags: []string{"dead", s.Action}},
	}})
	if err == nil {
		err = results[0].Err
	}
	return err
}

// changeDead changes how an action stands.
func (a *API) changeDead(ctx context.Context, id, verb string, do func(context.Context, *deadState) error) (DeadWork, error) {
	for range deadTries {
		s, err := loadDead(ctx, a.cfg.Broker, id)
		if err != nil {
			return DeadWork{}, err
		}
		s.State = a.deadWorkOf(ctx, s).State
		switch err := do(ctx, s); forebay.CodeOf(err) {
		case "":
			a.cfg.Logger.Info("api: dead letters: "+verb, "action", id, "by", caller(ctx))
			return s.DeadWork, nil
		case codeMoved: // its job has saved it meanwhile
		default:
			return DeadWork{}, err
		}
	}
	return DeadWork{}, forebay.Errorf(forebay.CodeUnavailable, "", "the action %s changes too fast just now; try again", id)
}

func (a *API) haltDead(ctx context.Context, s *deadState, to DeadActionState) error {
	if s.State == to || s.State == DeadCompleted || to == DeadPaused && s.State != DeadRunning {
		return forebay.Errorf(forebay.CodeConflict, "", "the action is %s already", s.State)
	}
	was := s.State
	s.State = to
	if err := s.save(ctx, a.cfg.Broker); err != nil || was != DeadRunning {
		return err
	}
	results, err := a.cfg.Broker.Cancel(ctx, []string{s.JobID}, string(to))
	if err == nil && results[0].Err != nil {
		switch forebay.CodeOf(results[0].Err) {
		case forebay.CodeConflict, forebay.CodeNotFound: // it has just ended
		default:
			err = results[0].Err
		}
	}
	return err
}

func (a *API) resumeDead(ctx context.Context, s *deadState) error {
	if s.State == DeadRunning || s.State == DeadCompleted {
		return forebay.Errorf(forebay.CodeConflict, "", "the action is %s", s.State)
	}
	if s.State == DeadStopped { // somebody has mended it: another canary, of what is left
		s.Canary = &CanaryState{Canary: s.Canary.Canary}
	}
	s.State, s.EndedAt = DeadRunning, time.Time{}
	return a.beginDead(ctx, s)
}
