package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
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
	Into   string  `json:"into,omitempty" doc:"Of a replay: another queue than the one in which they died."`
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
	DeadStopped     DeadActionState = "stopped"     // the canary has not passed
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
	Into   string          `json:"into,omitempty" doc:"The queue into which they are replayed."`
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
	Unknown  int         `json:"unknown,omitempty" doc:"Of which nothing is known any more: the replay stops."`
	Until    time.Time   `json:"until,omitzero" doc:"By then all of them must have a verdict, also if it is paused or interrupted meanwhile."`
	Verdict  string      `json:"verdict,omitempty" enum:"passed,lost,timeout,unknown"`
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
