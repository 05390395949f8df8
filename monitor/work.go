package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/worker"
)

type ending struct {
	queue   string
	verdict string
}

type failure struct {
	queue string
	code  string
}

// work is what is counted of package worker.
type work struct {
	endings  *counters[ending]
	failures *counters[failure]
	lost     *counters[string]
	unstored *counters[string]
	behind   *counters[string]
	wait     prometheus.Histogram
	run      prometheus.Histogram
	batch    prometheus.Histogram
}

func newWork() work {
	queue := func(q string) []string { return []string{q} }
	return work{
		endings: newCounters("forebay_worker_deliveries_total", "Deliveries settled, by verdict.",
			[]string{"queue", "verdict"}, func(e ending) []string { return []string{e.queue, e.verdict} }, ending{other, other}),
		failures: newCounters("forebay_worker_failures_total", "Failed attempts, by the code of their cause.",
			[]string{"queue", "code"}, func(f failure) []string { return []string{f.queue, f.code} }, failure{other, other}),
		lost: newCounters("forebay_worker_lease_lost_total", "Deliveries that another consumer may have got, since their lease could not be kept.",
			[]string{"queue"}, queue, other),
		unstored: newCounters("forebay_worker_settle_failures_total", "Deliveries whose verdict could not be stored; they come again.",
			[]string{"queue"}, queue, other),
		behind: newCounters("forebay_worker_left_behind_total", "Handlers that did not return when their job was ended; each holds its slot until it does.",
			[]string{"queue"}, queue, other),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_worker_wait_seconds", Help: "Time from the sending of a message to its handler.", Buckets: buckets(),
		}),
		run: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_worker_run_seconds", Help: "Time that a handler took for a message, or for its whole batch.", Buckets: buckets(),
		}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_worker_batch_messages", Help: "Messages of a batch.", Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
	}
}

func (w *work) collectors() []prometheus.Collector {
	return []prometheus.Collector{w.endings.vec, w.failures.vec, w.lost.vec, w.unstored.vec, w.behind.vec, w.wait, w.run, w.batch}
}

// Worker is told what workers do, of any queue.
func (m *Monitor) Worker() worker.Observe {
	w := &m.work
	return worker.Observe{
		Settled: func(o worker.Outcome) {
			queue := o.Delivery.Queue
			w.endings.add(ending{queue, o.Verdict.String()}, 1)
			if o.Verdict == forebay.Retry || o.Verdict == forebay.Dead {
				w.failures.add(failure{queue, o.Cause.Code}, 1)
			}
			if o.Started {
				w.wait.Observe(o.Wait.Seconds())
				w.run.Observe(o.Run.Seconds())
			}
		},
		LeaseLost:    func(d forebay.Delivery) { w.lost.add(d.Queue, 1) },
		SettleFailed: func(d forebay.Delivery, _ error) { w.unstored.add(d.Queue, 1) },
		LeftBehind:   func(d forebay.Delivery, _ error) { w.behind.add(d.Queue, 1) },
		Batch:        func(size, _ int, _ time.Duration) { w.batch.Observe(float64(size)) },
	}
}

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
