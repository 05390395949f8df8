// Package api is the interface over HTTP: jobs from their adding to their end, their
// streams, the leasing of them by workers in other languages; schedules, queues, dead letters,
// bad rows, keys, where an event is, health, readiness and metrics; and a client of it.
//
// It promises an OpenAPI 3.1 document that is made from the code that answers,
// errors as RFC 9457 problems with our codes, bounded answers, and that nobody gets
// in by default who should not: beyond loopback, or as soon as there is a key, a
// caller shows an admin key; without keys only this machine is let in, and no web
// page that happens to run on it.
//
// It refuses to know engines and sinks: it speaks to the broker, and asks whatever
// finds events.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/catalog"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/schedule"
	"github.com/forebayhq/forebay/stream"
)

// callTimeout bounds each call; what a long replay has not done by then it says.
const callTimeout = time.Minute

// Finder finds what a sink has written.
type Finder interface {
	Find(ctx context.Context, eventID string) (event.Event, bool, error)
}

// Replayer validates bad rows again and sends those that pass; it answers per row.
type Replayer interface {
	Replay(ctx context.Context, rows []badrow.Row) ([]ingest.Result, error)
}

// Check is one thing that must work, or should.
type Check struct {
	Name     string
	Run      func(context.Context) error
	Optional bool // told, but no reason to be not ready: a sink may be away for a while
}

// Config of an API. Broker, Ring and Bad are needed.
type Config struct {
	Broker *broker.Broker
	Ring   *keyring.Ring
	Bad    *badrow.Store

	Edge    Replayer         // nil: bad rows cannot be replayed here
	Sink    Finder           // nil: there is none to look at
	Checks  []Check          // for /readyz, in this order; that of Bad is added
	Monitor *monitor.Monitor // for /metrics and the overview; nil: neither has it
	Streams *stream.Streams  // of jobs; nil: they cannot be streamed here

	Schedules  *schedule.Scheduler         // nil: there are none here
	Flows      *runner.Runner              // nil: there are none here
	Known      flow.Known                  // what files of flows are compared with
	Catalog    *catalog.Catalog            // what handlers say of themselves; nil: nothing is known
	Redrivers  map[string]engine.Redriver  // of queues whose dead letters another store keeps; by queue
	AccessKeys AccessKeys                  // of SQS clients; nil: there are none here
	Workers    []Worker                    // of this process
	Tuned      map[string]Tuned            // workers of this process, by queue
	Alerts     Alerts                      // nil: there are no rules here
	Encryption Encryption                  // nil: nothing is sealed here
	Audit      Auditor                     // nil: nobody notes who changes what
	Queues     []string                    // that the settings name; those that have had a message are known anyway
	Replayable func(history.Request) error // tells where history cannot be replayed into here; nil: nothing is refused

	Receipts *Receipts // as others of this process give them out too; nil: its own

	Token    string   // a secret that this start gave to whoever can read the data folder; empty: none
	TLS      bool     // its clients speak TLS, so that cookies are for that only
	Mask     []string // of payloads, what only some may see (mask.go); none: whoever may look sees all
	Loopback bool     // the listener is reachable from this machine only
	Version  string   // of the program
	Logger   *slog.Logger
	Now      func() time.Time // default time.Now
}

// API answers the admin routes. It is safe for concurrent use.
type API struct {
	cfg      Config
	mux      *http.ServeMux // of what is below /api/
	spec     []byte
	started  time.Time
	draining atomic.Bool
	ready    ready
	cross    *http.CrossOriginProtection

	tickets  *issued[ticket]
	sessions *issued[session]
	adder    *adder
	arrived  arrivals // of dead letters

	limits sync.Mutex // one change of a queue's limits at a time
	views  sync.Mutex // one saved view at a time
}

// New makes an API. It is reachable once it is registered.
func New(cfg Config) (*API, error) {
	if cfg.Broker == nil || cfg.Ring == nil || cfg.Bad == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "api: new", "broker, key ring and bad rows are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.AccessKeys == nil {
		cfg.AccessKeys = noAccessKeys{}
	}
	if cfg.Receipts == nil {
		cfg.Receipts = NewReceipts()
	}
	cfg.Checks = append(slices.Clip(cfg.Checks), Check{Name: "bad rows", Run: cfg.Bad.Check})
	a := &API{cfg: cfg, mux: http.NewServeMux(), started: cfg.Now(), cross: http.NewCrossOriginProtection()}
	a.adder = newAdder(a)
	a.sessions = newIssued[session]("sessions", maxSessions, keySessions)
	a.tickets = newIssued[ticket]("tickets", maxTickets, ownTickets)
	var err error
	a.spec, err = a.routes()
	return a, err
}

// Register puts the routes on a mux, but for those of RegisterHealth.
func (a *API) Register(mux *http.ServeMux) {
	mux.Handle("/api/", a.guard(a.Idempotent(a.mux)))
	mux.Handle("POST "+addPath, a.adder)
	mux.Handle("POST "+progressPath, a.withReceipt(a.guard(a.Idempotent(a.mux))))
	a.registerSession(mux)
	let := a.Guard(lookers...)
	held := func(h http.Handler) http.Handler { return wholeOnly(a.within(nil, h)) }
	topics := http.NewServeMux() // behind the guard of the connection that they share
	for path, h := range map[string]http.HandlerFunc{
		"GET /api/jobs/{id}/stream": a.streamJob, "GET /api/jobs/{id}/events": a.streamJob, "GET /api/runs/{id}/stream": a.streamRun, "GET /api/stream": a.streamEvents,
	} {
		topics.Handle(path, held(h))
	}
	for _, path := range []string{"GET /api/jobs/{id}/stream", "GET /api/jobs/{id}/events", "GET /api/runs/{id}/stream"} {
		mux.Handle(path, let(topics)) // streams have no end by time
	}
	mux.Handle("GET /api/stream", let(a.orTopics(topics)))
	mux.Handle("GET "+historyPath, lastingHistory(a.guard(a.Idempotent(a.mux)), let(held(http.HandlerFunc(a.streamHistory)))))
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		w.Write(a.spec) // a client that has gone needs no answer
	})
}

// RegisterHealth puts the routes of those who watch a server on a mux.
func (a *API) RegisterHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	if a.cfg.Monitor != nil {
		mux.Handle("GET /metrics", a.guard(a.cfg.Monitor.Handler()))
	}
}

// Drain makes /readyz answer 503 from now on; everything else goes on.
func (a *API) Drain() { a.draining.Store(true) }

// routes registers the operations and gives the OpenAPI document.
func (a *API) routes() ([]byte, error) {
	cfg := huma.Config{
		OpenAPI: &huma.OpenAPI{
			Info: &huma.Info{
				Title:       "Forebay admin API",
				Version:     a.cfg.Version,
				Description: "Jobs, queues, dead letters, bad rows, keys and health of one Forebay server. A duration in JSON is a text such as 250ms, 30s, 1h30m or 7d; only fields whose names end in Seconds are numbers. Any POST may show an Idempotency-Key: for 24 hours a repetition gets the same answer.",
			},
			Components: &huma.Components{SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "An admin key. Needed beyond loopback, and as soon as there is a key."},
			}},
			Security: []map[string][]string{{"key": {}}, {}},
		},
		Formats:                      formats(),
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{asProblem},
	}
	h := humago.New(a.mux, cfg)
	a.queueRoutes(h)
	a.concurrencyRoutes(h)
	a.deadRoutes(h)
	a.badRoutes(h)
	a.keyRoutes(h)
	a.accessKeyRoutes(h)
	a.eventRoutes(h)
	a.overviewRoutes(h)
	a.addRoutes(h)
	a.jobRoutes(h)
	a.actRoutes(h)
	a.bulkRoutes(h)
	a.leaseRoutes(h)
	a.ticketRoutes(h)
	a.scheduleRoutes(h)
	a.flowRoutes(h)
	a.runRoutes(h)
	a.streamDocs(h)
	a.historyRoutes(h)
	a.sessionDocs(h)
	a.workerRoutes(h)
	a.handlerRoutes(h)
	a.healthRoutes(h)
	a.alertRoutes(h)
	a.auditRoutes(h)
	a.viewRoutes(h)
	a.encryptionRoutes(h)
	a.mux.HandleFunc("/api/", a.noRoute)
	schemas := h.OpenAPI().Components.Schemas
	schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	delete(schemas.Map(), "ErrorModel") // answers are Problems, see asProblem
	delete(schemas.Map(), "ErrorDetail")
	return h.OpenAPI().MarshalJSON()
}

// formats are how bodies are read: as JSON, also where curl -d calls it a form. A
// page of another origin gains nothing by that (see guard).
func formats() map[string]huma.Format {
	f := huma.DefaultJSONFormat
	return map[string]huma.Format{"application/json": f, "json": f, "application/x-www-form-urlencoded": f}
}

// noRoute answers what no operation does, in our form.
func (a *API) noRoute(w http.ResponseWriter, r *http.Request) {
	probe := r.Clone(r.Context())
	for _, probe.Method = range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, pattern := a.mux.Handler(probe); pattern != "/api/" {
			w.Header().Add("Allow", probe.Method)
		}
	}
	if allow := w.Header().Values("Allow"); len(allow) > 0 {
		newProblem(http.StatusMethodNotAllowed, forebay.CodeInvalid, r.Method+" is not for "+r.URL.Path).write(w)
		return
	}
	newProblem(http.StatusNotFound, forebay.CodeNotFound, "there is no "+r.URL.Path+"; see /openapi.json").write(w)
}

// operation fills what all operations have in common.
func operation(method, path, id, summary string) huma.Operation {
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary,
		Responses: map[string]*huma.Response{"default": {
			Description: "What is wrong, as RFC 9457 says",
			Content:     map[string]*huma.MediaType{problemType: {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}},
		}},
	}
}

// answer wraps a body for huma.
type answer[T any] struct{ Body T }

func reply[T any](v T, err error) (*answer[T], error) {
	if err != nil {
		return nil, problemOf(err)
	}
	return &answer[T]{v}, nil
}
