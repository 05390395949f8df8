package monitor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
)

// Grade is how well something is.
type Grade string

const (
	Healthy  Grade = "healthy"
	Warning  Grade = "warning"
	Critical Grade = "critical"
)

// Worse is the worse one of two grades.
func (g Grade) Worse(other Grade) Grade {
	order := []Grade{Healthy, Warning, Critical}
	if slices.Index(order, other) > slices.Index(order, g) {
		return other
	}
	return g
}

// Limits are what a queue may have before its grade says so. The zero value means the
// defaults; else each field holds as it is, and a negative one means no such limit.
type Limits struct {
	Dead    int64         // dead letters, critical beyond; default 100
	Waiting int64         // messages that wait, a warning beyond; default 1,000
	Age     time.Duration // of the oldest that waits, a warning beyond; default 10 min
	Drain   time.Duration // until nothing waits, a warning beyond; default 1 h
	Idle    time.Duration // that something waits and nobody takes it, critical beyond; default 1 min
}

func (l Limits) filled() Limits {
	if l == (Limits{}) {
		return Limits{Dead: 100, Waiting: 1000, Age: 10 * time.Minute, Drain: time.Hour, Idle: time.Minute}
	}
	return l
}

// Codes of reasons.
const (
	ReasonDead      = "dead"
	ReasonWaiting   = "waiting"
	ReasonAge       = "age"
	ReasonDrain     = "drain"
	ReasonNoWorker  = "no_worker"
	ReasonNoHandler = noHandler
	ReasonPaused    = "paused"
)

// HealthReason is one thing that makes a grade.
type HealthReason struct {
	Code  string  `json:"code" enum:"dead,waiting,age,drain,no_worker,no_handler,paused"`
	Grade Grade   `json:"grade" enum:"warning,critical"`
	Text  string  `json:"text" doc:"For people."`
	Value float64 `json:"value" doc:"What was found: a count, or seconds."`
	Limit float64 `json:"limit" doc:"What is allowed."`
}

// QueueHealth is how well a queue is.
type QueueHealth struct {
	Queue   string         `json:"queue"`
	Grade   Grade          `json:"grade" enum:"healthy,warning,critical"`
	Reasons []HealthReason `json:"reasons" nullable:"false"`
}

// unhandledFor is how long a message without a handler is told of.
const unhandledFor = 10 * time.Minute

// Health grades all queues.
func (m *Monitor) Health(ctx context.Context) ([]QueueHealth, error) {
	if m.cfg.Broker == nil {
		return nil, nil
	}
	stats, err := m.cfg.Broker.Stats(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]QueueHealth, len(stats))
	for i := range stats {
		limits, err := m.cfg.Broker.QueueLimits(ctx, stats[i].Queue)
		if err != nil && forebay.CodeOf(err) != forebay.CodeUnsupported {
			return nil, err
		}
		all[i] = m.grade(&stats[i], limits.Paused)
	}
	return all, nil
}

func (m *Monitor) grade(q *forebay.QueueStats, paused bool) QueueHealth {
	h := QueueHealth{Queue: q.Queue, Grade: Healthy, Reasons: []HealthReason{}}
	add := func(grade Grade, code string, value, limit float64, format string, args ...any) {
		h.Grade = h.Grade.Worse(grade)
		h.Reasons = append(h.Reasons, HealthReason{code, grade, fmt.Sprintf(format, args...), value, limit})
	}
	l, now := m.cfg.Limits, m.cfg.Now()
	if l.Dead >= 0 && q.Dead > l.Dead {
		add(Critical, ReasonDead, float64(q.Dead), float64(l.Dead), "%d dead letters", q.Dead)
	}
	if l.Waiting >= 0 && q.Waiting > l.Waiting {
		add(Warning, ReasonWaiting, float64(q.Waiting), float64(l.Waiting), "%d messages wait", q.Waiting)
	}
	var age time.Duration
	if q.Waiting > 0 && !q.Oldest.IsZero() {
		age = now.Sub(q.Oldest)
	}
	if l.Age >= 0 && age > l.Age {
		add(Warning, ReasonAge, age.Seconds(), l.Age.Seconds(), "the oldest message has waited for %s", age.Round(time.Second))
	}
	rate := m.cfg.Broker.DrainRate(q.Queue)
	stuck := q.Waiting > 0 && q.Active == 0 && rate == 0
	switch drain := drainSeconds(q, rate); {
	case paused && q.Waiting > 0:
		add(Warning, ReasonPaused, float64(q.Waiting), 0, "the queue is paused, and %d messages wait", q.Waiting)
	case stuck && l.Idle >= 0 && age > l.Idle:
		add(Critical, ReasonNoWorker, age.Seconds(), l.Idle.Seconds(), "messages wait, and nobody takes them; %s", m.workersOf(q.Queue))
	case l.Drain >= 0 && drain > l.Drain.Seconds() && !math.IsInf(drain, 1):
		add(Warning, ReasonDrain, drain, l.Drain.Seconds(), "at this rate it takes %s until nothing waits", time.Duration(drain*float64(time.Second)).Round(time.Second))
	}
	if known, ok := (*m.work.queues.known.Load())[q.Queue]; ok {
		if at := time.Unix(0, known.unhandled.Load()); now.Sub(at) < unhandledFor {
			add(Critical, ReasonNoHandler, now.Sub(at).Seconds(), unhandledFor.Seconds(), "a job came that no handler here is for, %s ago; its dead letter or its failures say of which kind", now.Sub(at).Round(time.Second))
		}
	}
	return h
}

func (m *Monitor) workersOf(queue string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.slots[queue]); n > 0 {
		return fmt.Sprintf("%d workers of this process are there", n)
	}
	return "no worker of this process is for this queue"
}
