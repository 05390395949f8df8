package api

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/monitor"
)

const (
	checkTimeout = 3 * time.Second
	readyFor     = time.Second // a result is used again, so that asking often costs nothing
)

// ready is the last result of the checks. Whoever asks while they run waits.
type ready struct {
	mu     sync.Mutex
	at     time.Time
	checks []Checked
}

// Readiness says whether events can be accepted durably.
type Readiness struct {
	Ready    bool      `json:"ready"`
	Draining bool      `json:"draining,omitempty"`
	Checks   []Checked `json:"checks" nullable:"false"`
}

// Checked is the result of one check.
type Checked struct {
	Name     string       `json:"name"`
	OK       bool         `json:"ok"`
	Optional bool         `json:"optional,omitempty" doc:"No reason to be not ready."`
	Code     forebay.Code `json:"code,omitempty"`
	Message  string       `json:"message,omitempty" doc:"Told to admins only."`
}

// Overview is everything at a glance.
type Overview struct {
	Version   string           `json:"version"`
	StartedAt time.Time        `json:"startedAt"`
	Now       time.Time        `json:"now"`
	Readiness Readiness        `json:"readiness"`
	Queues    []Queue          `json:"queues" nullable:"false"`
	Bad       BadStats         `json:"bad"`
	Disk      *Disk            `json:"disk,omitempty" doc:"Where the engine knows."`
	Accepted  *monitor.Latency `json:"accepted,omitempty" doc:"Time to answer requests with success, in the last minute."`
	Written   *monitor.Latency `json:"written,omitempty" doc:"Age of events when they were written, in the last minute."`
}

// BadStats counts bad rows.
type BadStats struct {
	Rows     int64            `json:"rows"`
	Bytes    int64            `json:"bytes"`
	ByCode   map[string]int64 `json:"byCode"`
	Gone     map[string]int64 `json:"gone" doc:"Rows that left, by why: rows, bytes, age (dropped for that bound) or deleted."`
	Oldest   time.Time        `json:"oldest,omitzero"`
	SetAside string           `json:"setAside,omitempty" doc:"The damaged file that was set aside since the start."`
}

// Disk is the space of the engine.
type Disk struct {
	Used int64 `json:"used"`
	Free int64 `json:"free"`
}

func (a *API) healthz(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte("{\"status\":\"alive\"}\n"))
}

// readyz is open, since load balancers have no key; so it says which check fails,
// and why only to those who may know.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) {
	v := a.readiness()
	if _, refused := a.identify(r, []keyring.Scope{keyring.ScopeAdmin}); refused != nil {
		for i := range v.Checks {
			v.Checks[i].Message = ""
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !v.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	encode(w, v)
}

func (a *API) readiness() Readiness {
	v := Readiness{Draining: a.draining.Load(), Checks: a.checked()}
	v.Ready = !v.Draining
	for _, c := range v.Checks {
		v.Ready = v.Ready && (c.OK || c.Optional)
	}
	return v
}

// checked runs the checks, unless they ran just now. It has no context of a caller,
// since the result is for others too.
func (a *API) checked() []Checked {
	a.ready.mu.Lock()
	defer a.ready.mu.Unlock()
	if age := a.cfg.Now().Sub(a.ready.at); age < 0 || age >= readyFor {
		a.ready.checks = make([]Checked, len(a.cfg.Checks))
		for i, c := range a.cfg.Checks {
			a.ready.checks[i] = c.result()
		}
		a.ready.at = a.cfg.Now()
	}
	return slices.Clone(a.ready.checks)
}

func (c Check) result() Checked {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	v := Checked{Name: c.Name, Optional: c.Optional}
	if err := c.Run(ctx); err != nil {
		v.Code, v.Message = forebay.CodeOf(err), err.Error()
	}
	v.OK = v.Code == ""
	return v
}

func (a *API) overviewRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/overview", "overview", "Show everything at a glance"),
		func(ctx context.Context, _ *struct{}) (*answer[Overview], error) {
			return reply(a.overview(ctx))
		})
}

func (a *API) overview(ctx context.Context) (Overview, error) {
	v := Overview{Version: a.cfg.Version, StartedAt: a.started, Now: a.cfg.Now(), Readiness: a.readiness()}
	queues, err := a.queues(ctx)
	if err != nil {
		return v, err
	}
	v.Queues = queues.Items
	if !holds(ctx, event.Queue) {
		v.Bad = BadStats{ByCode: map[string]int64{}, Gone: map[string]int64{}}
		return v, nil
	}
	bad, err := a.cfg.Bad.Stats(ctx)
	if err != nil {
		return v, err
	}
	v.Bad = BadStats{Rows: bad.Rows, Bytes: bad.Bytes, ByCode: bad.ByCode, Gone: map[string]int64{}, Oldest: bad.Oldest, SetAside: bad.SetAside}
	for why, n := range bad.Gone {
		v.Bad.Gone[string(why)] = n
	}
	used, free, err := a.cfg.Broker.Size(ctx)
	switch {
	case err == nil:
		v.Disk = &Disk{used, free}
	case forebay.CodeOf(err) != forebay.CodeUnsupported:
		return v, err
	}
	if m := a.cfg.Monitor; m != nil {
		accepted, written := m.Accepted(), m.Written()
		v.Accepted, v.Written = &accepted, &written
	}
	return v, nil
}
