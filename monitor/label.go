package monitor

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of the series of one family. A histogram has one series for each bucket.
const (
	maxSeries     = 200
	maxHistograms = 40
)

const other = "other"

// family is metrics of one name with a bounded number of members. Finding one that
// has series of its own takes no lock and no memory.
type family[K comparable, M any] struct {
	make   func(labels ...string) M
	labels func(K) []string
	rest   K // counts what is too many
	most   int

	known atomic.Pointer[map[K]M]
	mu    sync.Mutex // serialises additions to known
}

func (f *family[K, M]) of(k K) M {
	if m, ok := (*f.known.Load())[k]; ok {
		return m
	}
	return f.learn(k)
}

func (f *family[K, M]) learn(k K) M {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := *f.known.Load()
	if m, ok := known[k]; ok {
		return m
	}
	if len(known) >= f.most {
		k = f.rest
		if m, ok := known[k]; ok {
			return m
		}
	}
	labels := f.labels(k)
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\ufffd") // a handler's code may be anything
	}
	m := f.make(labels...)
	more := maps.Clone(known)
	more[k] = m
	f.known.Store(&more)
	return m
}

// counters is a family of counters.
type counters[K comparable] struct {
	family[K, prometheus.Counter]
	vec *prometheus.CounterVec
}

func newCounters[K comparable](name, help string, names []string, labels func(K) []string, rest K) *counters[K] {
	c := &counters[K]{vec: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, names)}
	c.make = func(l ...string) prometheus.Counter { return c.vec.WithLabelValues(l...) }
	c.labels, c.rest, c.most = labels, rest, maxSeries
	c.known.Store(&map[K]prometheus.Counter{})
	return c
}

func (c *counters[K]) add(k K, n float64) { c.of(k).Add(n) }

// seconds is a family of histograms by queue.
type seconds struct {
	family[string, prometheus.Observer]
	vec *prometheus.HistogramVec
}

func newSeconds(name, help string) *seconds {
	s := &seconds{vec: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets()}, []string{"queue"})}
	s.make = func(l ...string) prometheus.Observer { return s.vec.WithLabelValues(l...) }
	s.labels, s.rest, s.most = byQueue, other, maxHistograms
	s.known.Store(&map[string]prometheus.Observer{})
	return s
}

func byQueue(queue string) []string { return []string{queue} }
