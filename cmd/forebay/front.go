package main

import (
	"context"
	"net"
	"net/http"
	"net/url"

	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/internal/front"
)

// webServer is an http.Server or what carries one.
type webServer interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// oftenPosted are the routes that are called a lot.
var oftenPosted = []string{
	"/ingest/event", "/ingest/batch", "/ingest/cloudevents",
	"/v1/track", "/v1/t", "/v1/page", "/v1/p", "/v1/batch", "/v1/b",
	"/api/jobs",
}

// newFront puts the routes that are called a lot, with little each time, before net/http.
// Their handlers end whether the client waits or not, and keep nothing of a request.
func newFront(server *http.Server, mux *http.ServeMux, wrap func(http.Handler) http.Handler) *front.Front {
	server.ConnContext = ingest.ConnContext
	routes := map[string]http.Handler{}
	for _, path := range oftenPosted {
		h, pattern := mux.Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: path}})
		if pattern == http.MethodPost+" "+path { // not so without the role
			routes[path] = wrap(h)
		}
	}
	return front.New(server, routes, ingest.Listen)
}
