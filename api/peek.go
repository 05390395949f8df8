package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay/engine"
)

// PeekedMessage is a message as it lies in its queue.
type PeekedMessage struct {
	Message    Message      `json:"message"`
	Where      engine.Where `json:"where" enum:"waiting,delayed,active"`
	Deliveries int          `json:"deliveries" doc:"Hand-outs so far; looking counts as none."`
	Attempts   int          `json:"attempts" doc:"Failed so far."`
	SentAt     time.Time    `json:"sentAt"`
	Due        time.Time    `json:"due,omitzero" doc:"Delayed: until when."`
	LeaseUntil time.Time    `json:"leaseUntil,omitzero" doc:"Active: until when."`
}

// PeekList is one page of messages.
type PeekList struct {
	Items []PeekedMessage `json:"items" nullable:"false"`
	Next  string          `json:"next,omitempty" doc:"after= of the next page; absent: this is the last. A page may be short."`
}

func (a *API) peekRoute(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/queues/{name}/messages", "peek-queue", "Look at messages of a queue without handing them out"),
		func(ctx context.Context, in *struct {
			Name  string `path:"name" maxLength:"80"`
			After string `query:"after" maxLength:"200" doc:"next of the page before; empty: from the start."`
			Limit int    `query:"limit" minimum:"1" maximum:"200" default:"20"`
		}) (*answer[PeekList], error) {
			return reply(a.peek(ctx, engine.PeekQuery{Queue: in.Name, After: in.After, Limit: in.Limit}))
		})
}

func (a *API) peek(ctx context.Context, q engine.PeekQuery) (PeekList, error) {
	page, err := a.cfg.Broker.Peek(ctx, q)
	if err != nil {
		return PeekList{}, err
	}
	list := PeekList{Items: make([]PeekedMessage, len(page.Messages)), Next: page.Next}
	for i := range page.Messages {
		m := &page.Messages[i]
		list.Items[i] = PeekedMessage{
			Message: messageOf(&m.Message, true), Where: m.Where, Deliveries: m.Deliveries, Attempts: m.Attempts,
			SentAt: m.SentAt, Due: m.NotBefore, LeaseUntil: m.LeaseUntil,
		}
	}
	return list, nil
}
