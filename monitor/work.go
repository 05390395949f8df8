package monitor

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forebayhq/forebay"
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

type receipt struct {
	queue  string
	result string // messages, or empty
}

// work is what is counted of package worker.
type work struct {
	endings  *counters[ending]
	failures *counters[failure]
	lost     *counters[string]
	unstored *counters[string]
	behind   *counters[string]
	receives *counters[receipt]
	wait     *seconds
	run      *seconds
	whole    *seconds
	batch    prometheus.Histogram

	queues family[string, *queueWork]
}

// queueWork is what is remembered of one queue beyond its series.
type queueWork struct {
	mean      mean
	failed    span // of the attempts that ended, those that did not end well
	durations minutes
	batched   atomic.Bool  // its messages are handled many at once
	unhandled atomic.Int64 // when a message last met no handler, in Unix nanoseconds; 0: never
}

// noHandler is the code of a message whose kind has no handler (task.CodeNoHandler).
const noHandler = "no_handler"

func newWork() *work {
	queue := byQueue
	w := &work{
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
		receives: newCounters("forebay_worker_receives_total", "Receives answered: with messages, or empty when their wait ran out.",
			[]string{"queue", "result"}, func(r receipt) []string { return []string{r.queue, r.result} }, receipt{other, other}),
		wait:  newSeconds("forebay_worker_wait_seconds", "Time from the sending of a message to its handler."),
		run:   newSeconds("forebay_worker_run_seconds", "Time that a handler took for a message, or for its whole batch."),
		whole: newSeconds("forebay_worker_end_to_end_seconds", "Time from the sending of a message, or from when it was due, to its end: acked or dead."),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_worker_batch_messages", Help: "Messages of a batch.", Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
	}
	w.queues.make = func(...string) *queueWork { return new(queueWork) }
	w.queues.labels, w.queues.rest, w.queues.most = queue, other, maxSeries
	w.queues.known.Store(&map[string]*queueWork{})
	return w
}

func (w *work) collectors() []prometheus.Collector {
	return []prometheus.Collector{w.endings.vec, w.failures.vec, w.lost.vec, w.unstored.vec, w.behind.vec, w.receives.vec, w.wait.vec, w.run.vec, w.whole.vec, w.batch}
}

// Worker is told what workers do, of any queue.
func (m *Monitor) Worker() worker.Observe {
	w := m.work
	return worker.Observe{
		Settled:      m.settled,
		LeaseLost:    func(d forebay.Delivery) { w.lost.add(d.Queue, 1) },
		SettleFailed: func(d forebay.Delivery, _ error) { w.unstored.add(d.Queue, 1) },
		LeftBehind:   func(d forebay.Delivery, _ error) { w.behind.add(d.Queue, 1) },
		Batch:        func(size, _ int, _ time.Duration) { w.batch.Observe(float64(size)) },
		Received: func(queue string, n int) {
			w.receives.add(receipt{queue, map[bool]string{true: "empty", false: "messages"}[n == 0]}, 1)
		},
	}
}

func (m *Monitor) settled(o worker.Outcome) {
	w, queue := m.work, o.Delivery.Queue
	w.endings.add(ending{queue, o.Verdict.String()}, 1)
	q, now, failed := w.queues.of(queue), m.cfg.Now(), o.Verdict == forebay.Retry || o.Verdict == forebay.Dead
	if failed {
		w.failures.add(failure{queue, o.Cause.Code}, 1)
		if o.Cause.Code == noHandler {
			q.unhandled.Store(now.UnixNano())
		}
	}
	switch {
	case failed:
		q.failed.add(now, 1)
	case o.Verdict == forebay.Ack:
		q.failed.add(now, 0)
	}
	if o.Started {
		w.wait.of(queue).Observe(o.Wait.Seconds())
		w.run.of(queue).Observe(o.Run.Seconds())
		q.durations.add(now, o.Run)
		if o.Batch > 1 {
			q.batched.Store(true)
		}
		q.mean.add(now, int64(o.Run)/int64(max(1, o.Batch)))
	}
	if o.Verdict == forebay.Ack || o.Verdict == forebay.Dead {
		from := o.Delivery.SentAt
		if o.Delivery.NotBefore.After(from) {
			from = o.Delivery.NotBefore
		}
		if !from.IsZero() {
			w.whole.of(queue).Observe(max(0, now.Sub(from).Seconds()))
		}
	}
}
