package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/monitor"
)

const checkTimeout = 3 * time.Second

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
	v := a.readiness(r.Context())
	if _, refused := a.admit(r); refused != nil {
		for i := range v.Checks {
			v.Checks[i].Message = ""
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !v.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

func (a *API) readiness(ctx context.Context) Readiness {
	v := Readiness{Draining: a.draining.Load(), Checks: make([]Checked, len(a.cfg.Checks))}
	v.Ready = !v.Draining
	for i, c := range a.cfg.Checks {
		err := run(ctx, c)
		v.Checks[i] = Checked{Name: c.Name, OK: err == nil, Optional: c.Optional}
		if err != nil {
			v.Checks[i].Code, v.Checks[i].Message = forebay.CodeOf(err), err.Error()
			v.Ready = v.Ready && c.Optional
		}
	}
	return v
}

func run(ctx context.Context, c Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return c.Run(ctx)
}

func (a *API) overviewRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/overview", "overview", "Show everything at a glance"),
		func(ctx context.Context, _ *struct{}) (*answer[Overview], error) {
			return reply(a.overview(ctx))
		})
}

func (a *API) overview(ctx context.Context) (Overview, error) {
	v := Overview{Version: a.cfg.Version, StartedAt: a.started, Now: a.cfg.Now(), Readiness: a.readiness(ctx)}
	queues, err := a.queues(ctx)
	if err != nil {
		return v, err
	}
	v.Queues = queues.Items
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
