package monitor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/forebayhq/forebay/sink"
)

// sinks is what is counted of package sink.
type sinks struct {
	rows    *counters[string]
	batch   prometheus.Histogram
	seconds prometheus.Histogram
	latency prometheus.Histogram
	paused  prometheus.Gauge
}

func newSinks() sinks {
	return sinks{
		rows: newCounters("forebay_sink_rows_total", "Rows that a sink was given: written, duplicate, refused, or left to a later batch.",
			[]string{"result"}, func(r string) []string { return []string{r} }, other),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_sink_batch_rows", Help: "Rows of a batch.", Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_sink_batch_seconds", Help: "Time to write a batch, pauses included.", Buckets: buckets(),
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_event_latency_seconds", Help: "Time from the receipt of an event to its row in the database.", Buckets: buckets(),
		}),
		paused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "forebay_sink_paused", Help: "1 while the sink waits for its database.",
		}),
	}
}

func (s *sinks) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.rows.vec, s.batch, s.seconds, s.latency, s.paused}
}

// Batch is told each batch that a sink has handled (sink.Config.Observe).
func (m *Monitor) Batch(b sink.Batch) {
	s, now := &m.sink, m.cfg.Now()
	s.batch.Observe(float64(b.Rows))
	s.seconds.Observe(b.Took.Seconds())
	for result, n := range map[string]int{"written": b.Written, "duplicate": b.Duplicates, "refused": b.Refused, "left": b.Left} {
		s.rows.add(result, float64(n))
	}
	for _, d := range b.Latency {
		s.latency.Observe(d.Seconds())
		m.landed.add(now, d)
	}
}

// SinkState is told when a sink pauses and goes on (sink.Config.OnState).
func (m *Monitor) SinkState(s sink.State) {
	m.sink.paused.Set(map[bool]float64{true: 1}[s.Paused])
}
