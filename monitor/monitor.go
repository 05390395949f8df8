// Package monitor measures: it is told what edge, worker and sink do, asks the
// broker and the bad rows how they are, and answers Prometheus.
//
// It promises that observing is cheap enough for every event and never blocks; that
// the number of series is bounded, whatever users put into events (what is too many
// is counted as "other"); and that a part which does not answer costs its own
// series and no others.
//
// It refuses to keep history: that is the business of whoever scrapes it. Only the
// quantiles of the last minute are kept in the process, for those who have nobody.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/broker"
)

// Config of a monitor. The zero value works.
type Config struct {
	Broker    *broker.Broker            // nil: no series of queues and disk
	Bad       *badrow.Store             // nil: no series of bad rows
	Version   string                    // of the program
	Targets   func(queue string) Target // for how many workers a queue wants; nil: the zero Target
	Limits    Limits                    // of health
	Producers func() map[string]int64   // how much each has sent, to tell who falls silent; nil: nobody is watched
	Logger    *slog.Logger              // default: nothing is logged
	Now       func() time.Time          // default time.Now
}

// Monitor is safe for concurrent use.
type Monitor struct {
	cfg      Config
	registry *prometheus.Registry

	edge   edge
	work   *work
	sink   sinks
	accept recent // of requests that were answered with success
	landed recent // of events, from received to written

	watcher watcher

	mu    sync.Mutex // guards all below
	slots map[string][]Slots
}

// New makes a monitor with a registry of its own.
func New(cfg Config) (*Monitor, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Targets == nil {
		cfg.Targets = func(string) Target { return Target{} }
	}
	cfg.Limits = cfg.Limits.filled()
	m := &Monitor{
		cfg: cfg, registry: prometheus.NewRegistry(), edge: newEdge(), work: newWork(), sink: newSinks(),
		slots: make(map[string][]Slots),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "forebay_build_info", Help: "1, with the version of the program.", ConstLabels: prometheus.Labels{"version": cfg.Version},
	})
	info.Set(1)
	all := []prometheus.Collector{
		info,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&state{m},
	}
	all = append(all, m.edge.collectors()...)
	all = append(all, m.work.collectors()...)
	all = append(all, m.sink.collectors()...)
	for _, c := range all {
		if err := m.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Handler answers scrapes. A part that fails is left out and logged.
func (m *Monitor) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            scrapeLog{m.cfg.Logger},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	})
}

// scrapeLog takes what goes wrong with a scrape. One that its client has given up, or that
// the end of the process cuts off, fails once for each family, and is no fault of a part.
type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) {
	for _, one := range v {
		if err, ok := one.(error); ok && errors.Is(err, context.Canceled) {
			return
		}
	}
	l.log.Warn(strings.TrimSuffix(fmt.Sprintln(v...), "\n"))
}

// Accepted is how fast requests were answered in the last minute, refused ones
// left out.
func (m *Monitor) Accepted() Latency { return m.accept.latency(m.cfg.Now()) }

// Written is how old events were when they were written, in the last minute.
func (m *Monitor) Written() Latency { return m.landed.latency(m.cfg.Now()) }

// buckets of seconds, from what memory takes to what a deadline allows.
func buckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// Add shows the series of a part that this package does not know: a concrete engine's.
func (m *Monitor) Add(c prometheus.Collector) error { return m.registry.Register(c) }
