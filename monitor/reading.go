package monitor

import (
	"context"
	"math"
	"time"

	"github.com/forebayhq/forebay"
)

// Measure is what a reading is of.
type Measure string

const (
	MeasureFailureRatio Measure = "failure_ratio" // of attempts of the last minutes, 0 to 1
	MeasureDead         Measure = "dead"          // dead letters
	MeasureWaiting      Measure = "waiting"       // messages
	MeasureOldestAge    Measure = "oldest_age"    // seconds
	MeasureDrainTime    Measure = "drain_time"    // seconds
	MeasureDiskFree     Measure = "disk_free"     // bytes
	MeasureOverdue      Measure = "overdue"       // jobs that became overdue in the last minutes
	MeasureQuiet        Measure = "quiet"         // seconds since a producer sent something
)

// Measures are all of them.
var Measures = []Measure{
	MeasureFailureRatio, MeasureDead, MeasureWaiting, MeasureOldestAge, MeasureDrainTime, MeasureDiskFree, MeasureOverdue, MeasureQuiet,
}

// Reading is one value of one subject: a queue, a producer, or this server.
type Reading struct {
	Of      Measure
	Subject string // a queue's name, a producer's; empty: the server
	Value   float64
}

// fewest is how many attempts must have ended for their ratio to mean something.
const fewest = 10

// watcher remembers what readings are compared with. One goroutine at a time uses it.
type watcher struct {
	producers map[string]heard
	late      int64
	overdue   span
}

type heard struct {
	count int64
	at    time.Time // when count last changed
}

// Readings reads everything that alerts are made of. It is for one caller at a time.
// What cannot be read is left out, and the error says why.
func (m *Monitor) Readings(ctx context.Context) ([]Reading, error) {
	if m.cfg.Broker == nil {
		return nil, nil
	}
	stats, err := m.cfg.Broker.Stats(ctx)
	var all []Reading
	for i := range stats {
		all = m.readQueue(all, &stats[i])
	}
	_, free, sizeErr := m.cfg.Broker.Size(ctx)
	switch {
	case sizeErr == nil:
		all = append(all, Reading{MeasureDiskFree, "", float64(free)})
	case forebay.CodeOf(sizeErr) != forebay.CodeUnsupported && err == nil:
		err = sizeErr
	}
	now, w := m.cfg.Now(), &m.watcher
	late := m.cfg.Broker.Overdue()
	w.overdue.add(now, late-w.late)
	w.late = late
	sum, _ := w.overdue.total(now)
	all = append(all, Reading{MeasureOverdue, "", float64(sum)})
	if m.cfg.Producers != nil {
		all = w.quiet(all, m.cfg.Producers(), now)
	}
	return all, err
}

func (m *Monitor) readQueue(all []Reading, q *forebay.QueueStats) []Reading {
	now, age := m.cfg.Now(), 0.0
	if q.Waiting > 0 && !q.Oldest.IsZero() {
		age = max(0, now.Sub(q.Oldest).Seconds())
	}
	all = append(all,
		Reading{MeasureDead, q.Queue, float64(q.Dead)},
		Reading{MeasureWaiting, q.Queue, float64(q.Waiting)},
		Reading{MeasureOldestAge, q.Queue, age},
	)
	// Where nothing leaves, the age tells it: a long job is no endless backlog.
	if drain := drainSeconds(q, m.cfg.Broker.DrainRate(q.Queue)); !math.IsInf(drain, 1) {
		all = append(all, Reading{MeasureDrainTime, q.Queue, drain})
	}
	if known, ok := (*m.work.queues.known.Load())[q.Queue]; ok {
		if failed, attempts := known.failed.total(now); attempts >= fewest {
			all = append(all, Reading{MeasureFailureRatio, q.Queue, float64(failed) / float64(attempts)})
		}
	}
	return all
}

// quiet tells how long producers have sent nothing. One that never sent anything has
// nothing to fall silent from.
func (w *watcher) quiet(all []Reading, counts map[string]int64, now time.Time) []Reading {
	if w.producers == nil {
		w.producers = make(map[string]heard)
	}
	for name := range w.producers {
		if _, there := counts[name]; !there {
			delete(w.producers, name)
		}
	}
	for name, count := range counts {
		h, known := w.producers[name]
		if count != h.count && (count != 0 || !known) { // a count of the day begins anew with it
			h = heard{count, now}
			w.producers[name] = h
		} else if known && count == 0 && h.count != 0 {
			h.count = 0
			w.producers[name] = h
		}
		if known || count > 0 {
			all = append(all, Reading{MeasureQuiet, name, now.Sub(h.at).Seconds()})
		}
	}
	return all
}
