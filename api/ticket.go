package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
)

// A ticket lets one request in that cannot show a key: a page's EventSource has no
// headers, and a key in an address would stand in logs. It is good once, for one
// path and a minute, on this server.
const (
	ticketLife = time.Minute
	maxTickets = 10_000
	ownTickets = 1_000 // of one caller
)

// NewTicket asks for a ticket.
type NewTicket struct {
	Path string `json:"path" maxLength:"512" pattern:"^/api/" doc:"Of the stream: /api/jobs/{id}/stream"`
}

// Ticket is one, as it is handed out.
type Ticket struct {
	Ticket    string    `json:"ticket"`
	URL       string    `json:"url" doc:"The path with the ticket."`
	ExpiresAt time.Time `json:"expiresAt"`
}

type ticket struct {
	path   string
	who    string
	held   []string                    // the queues that the key of who asked for it holds for; none: all
	masked bool                        // who asked for it may not see payloads whole
	let    func([]keyring.Scope) error // whether who asked for it is, still, let in where one of these is needed
}

type letKey struct{}

// lasts tells whether a request is for a stream: a ticket opens nothing else. The route
// says so, since a path may hold an id that looks like the end of another.
func lasts(r *http.Request) bool {
	switch r.Pattern {
	case "GET " + historyPath:
		return strings.Contains(r.Header.Get("Accept"), ndjson)
	case "GET /api/jobs/{id}/events":
		return true
	}
	return r.Method == http.MethodGet && (strings.HasSuffix(r.Pattern, "/stream") || strings.HasSuffix(r.Pattern, "/socket"))
}

func (a *API) ticketRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodPost, "/api/stream-tickets", "add-ticket", "Get a ticket that lets one stream begin without a key"),
		func(ctx context.Context, in *answer[NewTicket]) (*answer[Ticket], error) {
			now := a.cfg.Now()
			path, err := url.PathUnescape(in.Body.Path) // as requests have it
			if err != nil || strings.Contains(in.Body.Path, "?") {
				return nil, problemOf(wrong("path", "%q is no path: it must be like /api/jobs/ID/stream, without a query", in.Body.Path))
			}
			t := ticket{path: path, who: caller(ctx), held: heldBy(ctx), masked: !seesWhole(ctx)}
			t.let, _ = ctx.Value(letKey{}).(func([]keyring.Scope) error) // the guard has put it there
			expires := now.Add(ticketLife)
			text, err := a.tickets.add(t.who, t, expires, now)
			return reply(Ticket{text, in.Body.Path + "?ticket=" + text, expires}, err)
		})
}

// takeTicket uses a ticket up. It lets nobody in whose key would not.
func (a *API) takeTicket(text, path string, scopes []keyring.Scope) (ticket, error) {
	one, ok := a.tickets.take(text, a.cfg.Now())
	switch {
	case !ok:
		return one, forebay.Errorf(forebay.CodeUnauthorized, "", "the ticket is not known: one is good once, and for %s", ticketLife)
	case one.path != path:
		return one, forebay.Errorf(forebay.CodeUnauthorized, "", "the ticket is for %s, not for %s", one.path, path)
	}
	if err := one.let(scopes); err != nil {
		return one, forebay.Errorf(forebay.CodeUnauthorized, "", "who asked for the ticket is not let in here, or no longer")
	}
	return one, nil
}
