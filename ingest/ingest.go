// Package ingest is the edge: it takes events over HTTP, gives each one a verdict,
// keeps the refused ones with their reason, and puts the others on the queue.
//
// # A request
//
//	admission ─▶ key ─▶ read ─▶ decompress ─▶ cut into items ─▶ rate and quota
//	     503      401    413        413, 400           400               429
//	                                                       │
//	        202 ◀─ send the good ◀─ keep the bad rows ◀─ verdict per item
//	                     503                503
//
// It promises:
//
//   - An event whose answer was 202 with status accepted is on the queue, as durably
//     as the queue promises. A request that was refused left nothing behind; one that
//     got 503 may have, and sending it again is harmless for events that carry an id.
//   - A request that can be read and whose key is good is never refused for its
//     content. One bad event costs its neighbours nothing. Bad ones are in the
//     bad-rows store, with reason and bytes, before the good ones are queued.
//   - The body tells what it is: compression, shape and dialect are sniffed. What
//     headers say is used where the bytes leave it open.
//   - Memory is bounded by what has arrived, not by what was announced.
//   - What it accepts, event.Decode reads and a sink can store.
//
// It refuses to look into payloads beyond what those promises and a JSON Schema
// need: they are passed on as they were written, except for text that no store can
// hold, which becomes U+FFFD.
package ingest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/keyring"
)

// Sender is where good events go: the broker.
type Sender interface {
	Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error)
}

// BadRows is where refused events go. The rows are durable when Put returns.
type BadRows interface {
	Put(ctx context.Context, rows []badrow.Row) error
}

// Observer is told what happened; nil functions are not called. They must be quick
// and safe for concurrent use.
type Observer struct {
	// Request is told each answer.
	Request func(dialect string, status int, took time.Duration)
	// Verdict is told each verdict; code is empty where there is nothing to say.
	Verdict func(dialect string, status Status, code string)
}

// Config of an edge. Sender and Bad are required; the rest works as it is.
type Config struct {
	Sender    Sender
	Bad       BadRows
	Keys      *keyring.Ring // nil: no key is needed
	Queue     string        // default event.Queue
	Limits    Limits
	Load      Load // what admission looks at; nil: it looks at memory only
	Admission Admission
	Schemas   *Schemas         // nil: payloads are not looked into
	Timeout   time.Duration    // of storing one request, default 10 s
	Now       func() time.Time // default time.Now
	Logger    *slog.Logger     // default: nothing is logged
	Observer  Observer
}

// Edge serves the routes. All methods may be called concurrently.
type Edge struct {
	cfg       Config
	budget    budget
	gate      gate
	deadlines Deadlines
	calls     sync.Pool
	inflaters inflaters
	holds     sync.Map // key id → *hold; bounded by the keys that exist
	outage    outage
}

// New makes an edge. It names all problems of the configuration at once.
func New(cfg Config) (*Edge, error) {
	set(&cfg.Queue, event.Queue)
	set(&cfg.Timeout, 10*time.Second)
	cfg.Limits.fill()
	cfg.Admission.fill()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer.Request == nil {
		cfg.Observer.Request = func(string, int, time.Duration) {}
	}
	if cfg.Observer.Verdict == nil {
		cfg.Observer.Verdict = func(string, Status, string) {}
	}
	err := errors.Join(cfg.Limits.check(), cfg.Admission.check())
	if cfg.Sender == nil {
		err = errors.Join(err, errors.New("there is no Sender"))
	}
	if cfg.Bad == nil {
		err = errors.Join(err, errors.New("there is no store for bad rows"))
	}
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "ingest: new", "%w", err)
	}
	e := &Edge{cfg: cfg, budget: budget{most: cfg.Limits.InFlightBytes}}
	e.outage.logger = cfg.Logger
	e.deadlines.After = cfg.Timeout
	e.gate = gate{load: cfg.Load, queue: cfg.Queue, limits: cfg.Admission, logger: cfg.Logger}
	return e, nil
}

// Register adds the edge's routes to a mux.
func (e *Edge) Register(mux *http.ServeMux) {
	post := func(path string, rt route) {
		mux.Handle("POST "+path, &entry{edge: e, route: rt})
		mux.HandleFunc("OPTIONS "+path, e.preflight)
	}
	post("/ingest/event", route{dialect: nativeDialect, own: true, one: true})
	post("/ingest/batch", route{dialect: nativeDialect, own: true, wrapped: true})
	post("/ingest/cloudevents", route{dialect: cloudDialect, own: true, one: true})
	for path, verb := range segmentVerbs {
		post("/v1/"+path, route{dialect: segmentDialect(verb), wrapped: verb == ""})
	}
	post("/beacon/v1/batch", route{dialect: segmentDialect(""), wrapped: true})
	for _, path := range []string{"/v1/projects/{key}/settings", "/sourceConfig/", "/sourceConfig"} {
		mux.HandleFunc("GET "+path, e.settings)
		mux.HandleFunc("OPTIONS "+path, e.preflight)
	}
}
