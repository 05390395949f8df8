package monitor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forebayhq/forebay"
)

const (
	maxQueues  = 100 // with series of their own; the rest is summed up
	askTimeout = 3 * time.Second
)

// state asks the broker and the bad rows when somebody scrapes. It describes
// nothing beforehand, since its labels are known only then.
type state struct{ m *Monitor }

// Describe makes it an unchecked collector.
func (s *state) Describe(chan<- *prometheus.Desc) {}

// Collect asks. What does not answer has forebay_up 0 and no other series.
func (s *state) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	send := sender(out)
	cfg := &s.m.cfg
	up := func(part string, err error) {
		send.gauge("forebay_up", "1 where the part answers.", map[bool]float64{true: 1}[err == nil], "part", part)
	}
	if b := cfg.Broker; b != nil {
		stats, err := b.Stats(ctx)
		if up("queues", err); err == nil {
			s.queues(send, stats)
		}
		used, free, err := b.Size(ctx)
		if forebay.CodeOf(err) != forebay.CodeUnsupported {
			up("disk", err)
		}
		if err == nil {
			send.gauge("forebay_disk_used_bytes", "Bytes of the engine on disk.", float64(used))
			send.gauge("forebay_disk_free_bytes", "Bytes that are free there.", float64(free))
		}
	}
	if cfg.Bad != nil {
		bad, err := cfg.Bad.Stats(ctx)
		if up("bad rows", err); err == nil {
			send.gauge("forebay_bad_rows", "Refused events that are kept.", float64(bad.Rows))
			send.gauge("forebay_bad_bytes", "Bytes of them.", float64(bad.Bytes))
			for why, n := range bad.Gone {
				send.counter("forebay_bad_rows_gone_total", "Refused events that are no longer kept: dropped for a bound (rows, bytes, age), or deleted.", float64(n), "why", string(why))
			}
		}
	}
}

func (s *state) queues(send sender, stats []forebay.QueueStats) {
	b := s.m.cfg.Broker
	slices.SortFunc(stats, func(a, b forebay.QueueStats) int { return cmp.Compare(a.Queue, b.Queue) })
	var rest forebay.QueueStats
	var restRate float64
	for i, q := range stats {
		if i < maxQueues {
			s.queue(send, q, b.DrainRate(q.Queue))
			s.scale(send, &q)
			continue
		}
		restRate += b.DrainRate(q.Queue)
		add(&rest, &q)
	}
	if len(stats) > maxQueues {
		rest.Queue = "(" + other + ")" // no queue can have this name
		s.queue(send, rest, restRate)
	}
}

func add(sum, q *forebay.QueueStats) {
	sum.Waiting += q.Waiting
	sum.Active += q.Active
	sum.Delayed += q.Delayed
	sum.Dead += q.Dead
	sum.Sent += q.Sent
	sum.Duplicate += q.Duplicate
	sum.Conflict += q.Conflict
	sum.Completed += q.Completed
	sum.Bytes += q.Bytes
	if sum.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(sum.Oldest) {
		sum.Oldest = q.Oldest
	}
}

func (s *state) queue(send sender, q forebay.QueueStats, rate float64) {
	gauge := func(name, help string, v float64) { send.gauge(name, help, v, "queue", q.Queue) }
	counter := func(name, help string, n int64) { send.counter(name, help, float64(n), "queue", q.Queue) }
	age := 0.0
	if !q.Oldest.IsZero() {
		age = max(0, s.m.cfg.Now().Sub(q.Oldest).Seconds())
	}
	gauge("forebay_queue_waiting", "Messages that could be handed out now.", float64(q.Waiting))
	gauge("forebay_queue_active", "Messages that are leased.", float64(q.Active))
	gauge("forebay_queue_delayed", "Messages that wait for a time.", float64(q.Delayed))
	gauge("forebay_queue_dead", "Dead letters.", float64(q.Dead))
	gauge("forebay_queue_oldest_age_seconds", "Age of the oldest waiting message.", age)
	gauge("forebay_queue_bytes", "Bytes of waiting, active and delayed messages, where the engine knows.", float64(q.Bytes))
	gauge("forebay_queue_drain_rate", "Messages per second that left for good, over the last minute.", rate)
	gauge("forebay_queue_drain_seconds", "Time until nothing waits at that rate; +Inf while something waits and nothing leaves.", drainSeconds(&q, rate))
	counter("forebay_queue_sent_total", "Messages sent since the start, without duplicates.", q.Sent)
	counter("forebay_queue_duplicates_total", "Messages since the start that were there already.", q.Duplicate)
	counter("forebay_queue_conflicts_total", "Duplicates since the start with another payload.", q.Conflict)
	counter("forebay_queue_completed_total", "Messages acked since the start.", q.Completed)
	counter("forebay_queue_dead_dropped_total", "Dead letters that left since the start because the queue had more than its deadMost.", s.m.cfg.Broker.DeadDropped(q.Queue))

	// The names under which dashboards of job queues know these.
	gauge("queue_waiting", "As forebay_queue_waiting.", float64(q.Waiting))
	gauge("queue_active", "As forebay_queue_active.", float64(q.Active))
	gauge("queue_delayed", "As forebay_queue_delayed.", float64(q.Delayed))
	gauge("queue_completed", "As forebay_queue_completed_total.", float64(q.Completed))
	gauge("queue_failed", "As forebay_queue_dead.", float64(q.Dead))
}

// drainSeconds is how long what waits will take at a rate.
func drainSeconds(q *forebay.QueueStats, rate float64) float64 {
	if q.Waiting == 0 {
		return 0
	}
	return float64(q.Waiting) / rate // +Inf where nothing leaves
}

func (s *state) scale(send sender, q *forebay.QueueStats) {
	v := s.m.scale(q)
	gauge := func(name, help string, v float64) { send.gauge(name, help, v, "queue", q.Queue) }
	gauge("forebay_desired_workers", "Workers that the queue wants, of all servers together, to keep its target latency.", float64(v.DesiredWorkers))
	if v.AcceptableBacklog > 0 {
		gauge("forebay_acceptable_backlog_per_worker", "Messages that may wait for each worker, so that the last of them begins within the target latency.", v.AcceptableBacklog)
	}
	if v.Slots > 0 {
		gauge("forebay_concurrency_limit", "As forebay_worker_slots: the concurrency that is set, or that has tuned itself.", float64(v.Slots))
		gauge("forebay_worker_slots", "Handlers, or batches, that may run at once in this process.", float64(v.Slots))
		gauge("forebay_worker_slots_used", "Those of them that run.", float64(v.SlotsUsed))
	}
}

// sender writes series whose labels come in pairs of name and value.
type sender chan<- prometheus.Metric

func (s sender) gauge(name, help string, v float64, labels ...string) {
	s.send(prometheus.GaugeValue, name, help, v, labels)
}

func (s sender) counter(name, help string, v float64, labels ...string) {
	s.send(prometheus.CounterValue, name, help, v, labels)
}

func (s sender) send(t prometheus.ValueType, name, help string, v float64, labels []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), t, v, values...)
}
