package monitor

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// maxSeries bounds the series of one counter.
const maxSeries = 200

const other = "other"

// counters is a family of counters with a bounded number of members. Finding one
// that has series of its own takes no lock and no memory.
type counters[K comparable] struct {
	vec    *prometheus.CounterVec
	labels func(K) []string
	rest   K // counts what is too many

	known atomic.Pointer[map[K]prometheus.Counter]
	mu    sync.Mutex // serialises additions to known
}

func newCounters[K comparable](name, help string, names []string, labels func(K) []string, rest K) *counters[K] {
	c := &counters[K]{
		vec:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, names),
		labels: labels, rest: rest,
	}
	c.known.Store(&map[K]prometheus.Counter{})
	return c
}

func (c *counters[K]) add(k K, n float64) {
	counter, ok := (*c.known.Load())[k]
	if !ok {
		counter = c.learn(k)
	}
	counter.Add(n)
}

func (c *counters[K]) learn(k K) prometheus.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := *c.known.Load()
	if counter, ok := known[k]; ok {
		return counter
	}
	if len(known) >= maxSeries {
		k = c.rest
		if counter, ok := known[k]; ok {
			return counter
		}
	}
	labels := c.labels(k)
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\ufffd") // a handler's code may be anything
	}
	counter := c.vec.WithLabelValues(labels...)
	more := maps.Clone(known)
	more[k] = counter
	c.known.Store(&more)
	return counter
}
