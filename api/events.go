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

// State is where an event is, in one word.
type State string

const (
	StateWritten  State = "written"  // in the sink
	StateWaiting  State = "waiting"  // on its queue
	StateDelayed  State = "delayed"  // on its queue, for a time or its next attempt
	StateActive   State = "active"   // with a worker just now
	StateDead     State = "dead"     // a dead letter
	StateDone     State = "done"     // its queue is done with it, and no sink that was looked at has it
	StateRejected State = "rejected" // a bad row
	StateUnknown  State = "unknown"  // nowhere
)

// EventPlace tells where an event is, and all places that were looked at.
type EventPlace struct {
	ID     string  `json:"id"`
	State  State   `json:"state" enum:"written,waiting,delayed,active,dead,done,rejected,unknown"`
	Places []Place `json:"places" nullable:"false"`
	Event  *Event  `json:"event,omitempty" doc:"As the sink has it."`
}

// Event is an event as it is shown.
type Event struct {
	Type       string          `json:"eventType"`
	UserID     string          `json:"userId,omitempty"`
	Payload    json.RawMessage `json:"payload"`
	ReceivedAt time.Time       `json:"receivedAt"`
	OccurredAt time.Time       `json:"occurredAt,omitzero" doc:"Corrected for the client's clock."`
	SentAt     time.Time       `json:"sentAt,omitzero" doc:"By the client's clock."`
	Source     string          `json:"source,omitempty"`
}

// Place is one place that was looked at, or could not be.
type Place struct {
	Name   string    `json:"name" enum:"queue,dead letters,sink,bad rows"`
	Found  bool      `json:"found"`
	Says   string    `json:"says" doc:"For people."`
	At     time.Time `json:"at,omitzero" doc:"When it came there, where that is known."`
	Seq    int64     `json:"seq,omitempty" doc:"Of the dead letter or bad row."`
	Failed bool      `json:"failed,omitempty" doc:"It could not be looked at; the event may be there."`
}

func (a *API) eventRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/events/{id}", "find-event", "Tell where an event is"),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"128"`
		}) (*answer[EventPlace], error) {
			return reply(a.where(ctx, in.ID), nil)
		})
}

// where looks at every place, in the order in which an event goes through them.
// The last place that has it says where it is now.
func (a *API) where(ctx context.Context, id string) EventPlace {
	v := EventPlace{ID: id, State: StateUnknown}
	bad, err := a.cfg.Bad.ByEvent(ctx, id)
	place := Place{Name: "bad rows", Found: err == nil, Says: "not refused, or no longer kept", Seq: bad.Seq, At: bad.At}
	if place.Found {
		place.Says = "refused: " + bad.Reason
		v.State = StateRejected
	}
	v.add(place, err)

	l, err := a.cfg.Broker.Locate(ctx, id)
	if l.Queue != "" && !holds(ctx, l.Queue) {
		l = engine.Location{}
	}
	v.lookAtQueue(l, err)

	if a.cfg.Sink == nil {
		v.Places = append(v.Places, Place{Name: "sink", Says: "this server has no sink", Failed: true})
		return v
	}
	e, found, err := a.cfg.Sink.Find(ctx, id)
	place = Place{Name: "sink", Found: found, Says: "not written"}
	if found {
		v.State = StateWritten
		v.Event = &Event{e.Type, e.UserID, json.RawMessage(e.Payload), e.ReceivedAt, e.OccurredAt, e.SentAt, e.Source}
		place.Says = "written"
	}
	v.add(place, err)
	return v
}

// lookAtQueue adds what the engine said: the queue and the dead letters.
func (v *EventPlace) lookAtQueue(l engine.Location, err error) {
	queue := Place{Name: "queue", Says: "never seen, or forgotten"}
	dead := Place{Name: "dead letters", Says: "not there"}
	switch l.Where {
	case engine.WhereWaiting, engine.WhereDelayed, engine.WhereActive:
		v.State = State(l.Where)
		queue.Found, queue.At = true, l.SentAt
		queue.Says = string(l.Where) + " on " + l.Queue
		if !l.NotBefore.IsZero() && l.Where == engine.WhereDelayed {
			queue.Says += " until " + l.NotBefore.UTC().Format(time.RFC3339)
		}
		if l.Last != nil {
			queue.Says += "; it failed last with " + l.Last.Code + ": " + l.Last.Message
		}
	case engine.WhereDone:
		v.State = StateDone
		queue.Found, queue.At = true, l.SentAt
		queue.Says = "done on " + l.Queue
	case engine.WhereDead:
		v.State = StateDead
		queue.Says = "left " + l.Queue + " as a dead letter"
		dead.Found, dead.Seq = true, l.DeadSeq
		dead.Says = "died"
		if l.Last != nil {
			dead.At = l.Last.At
			dead.Says = "died of " + l.Last.Code + ": " + l.Last.Message
		}
	}
	v.add(queue, err)
	v.add(dead, err)
}

func (v *EventPlace) add(p Place, err error) {
	if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
		p.Failed, p.Says = true, err.Error()
	}
	v.Places = append(v.Places, p)
}
