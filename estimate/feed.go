package estimate

import (
	"time"

	"github.com/forebayhq/forebay"
)

// Feed takes what happened to a job, in the order of the history.
func (e *Estimator) Feed(ev *forebay.HistoryEvent) {
	switch ev.Type {
	case forebay.HistoryProgress, forebay.HistoryLog, forebay.HistoryChanged, forebay.HistoryReplaced,
		forebay.HistoryCancelRequested, forebay.HistoryDiscarded:
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queue(ev.Queue)
	switch ev.Type {
	case forebay.HistoryAdded, forebay.HistoryReplayed:
		e.added(q, ev)
	case forebay.HistoryStarted:
		e.started(q, ev)
	case forebay.HistoryCompleted:
		e.completed(q, ev)
	case forebay.HistoryRetry, forebay.HistoryReleased, forebay.HistoryLeaseLost:
		q.active = max(0, q.active-1)
		if !ev.Due.After(ev.At) {
			q.waiting++
		}
		if j := e.jobs[ev.Job]; j != nil {
			j.started = time.Time{}
		}
	default: // it has ended otherwise
		if j := e.jobs[ev.Job]; j != nil && j.started.IsZero() || ev.Type == forebay.HistoryExpired {
			q.waiting = max(0, q.waiting-1)
		} else {
			q.active = max(0, q.active-1)
		}
		delete(e.jobs, ev.Job)
	}
}

func (e *Estimator) added(q *queue, ev *forebay.HistoryEvent) {
	delayed := ev.Due.After(ev.At)
	if len(e.jobs) < maxJobs {
		j := &job{key: e.key(ev.Queue, ev.Kind), ready: ev.At, ahead: q.waiting, seen: q.started}
		if delayed {
			j.ready = ev.Due
		} else {
			j.stated, j.expected, j.queued = e.estimate(j.key, q.waiting)
		}
		e.jobs[ev.Job] = j
	}
	if !delayed {
		q.waiting++
	}
}

func (e *Estimator) started(q *queue, ev *forebay.HistoryEvent) {
	if !q.last.IsZero() {
		gap := max(0, ev.At.Sub(q.last).Seconds())
		if q.pace == 0 {
			q.pace = gap
		} else {
			q.pace += (gap - q.pace) * paceWeight
		}
	}
	q.waiting = max(0, q.waiting-1)
	q.active++
	q.started++
	q.slots = max(float64(q.active), q.slots-(q.slots-float64(q.active))/200)
	q.last = time.Time{}
	if q.waiting > 0 {
		q.last = ev.At
	}
	j := e.jobs[ev.Job]
	if j == nil && len(e.jobs) < maxJobs {
		j = &job{key: e.key(ev.Queue, ev.Kind)}
		e.jobs[ev.Job] = j
	}
	if j != nil {
		j.started = ev.At
	}
}

func (e *Estimator) completed(q *queue, ev *forebay.HistoryEvent) {
	q.active = max(0, q.active-1)
	j := e.jobs[ev.Job]
	if j == nil {
		return
	}
	delete(e.jobs, ev.Job)
	k := e.kind(j.key)
	if !j.started.IsZero() {
		k.samples++
		k.run.add(max(0, ev.At.Sub(j.started).Seconds()), window)
	}
	if j.expected == 0 {
		return
	}
	took := max(0, ev.At.Sub(j.ready).Seconds())
	ratios := &k.quick
	if j.queued {
		ratios = &k.queued
	}
	ratios.add(took/j.expected, window)
	if j.stated.Samples >= enoughRuns {
		e.cover.Jobs++
		switch d := ev.At.Sub(j.ready); {
		case d < j.stated.Low:
			e.cover.Below++
		case d > j.stated.High:
			e.cover.Above++
		}
	}
}

// Late is a job that outran the high end of its estimate.
type Late struct {
	ID, Queue, Kind string
	Since           time.Time     // it could have begun
	High            time.Duration // it was to take at most, for eight in ten
}

// leastLate is how long a job must take at least to be called late.
const leastLate = 30 * time.Second

// Late gives jobs that are late by now, each one once.
func (e *Estimator) Late(now time.Time) (late []Late) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, j := range e.jobs {
		if j.told || j.stated.Samples < enoughRuns || now.Sub(j.ready) <= max(j.stated.High, leastLate) {
			continue
		}
		j.told = true
		late = append(late, Late{ID: id, Queue: j.queue, Kind: j.kind, Since: j.ready, High: j.stated.High})
	}
	return late
}

// queue of a name; those beyond the bound share one.
func (e *Estimator) queue(name string) *queue {
	q := e.queues[name]
	if q == nil && len(e.queues) >= maxQueues {
		name = ""
		q = e.queues[name]
	}
	if q == nil {
		q = new(queue)
		e.queues[name] = q
	}
	return q
}

// key under which a kind is counted: its own, or beyond the bound that of the rest
// of its queue.
func (e *Estimator) key(queue, kind string) key {
	k := key{queue, kind}
	if e.kinds[k] == nil && len(e.kinds) >= maxKinds {
		return key{}
	}
	return k
}

// kind to count in.
func (e *Estimator) kind(k key) *kind {
	if e.kinds[k] == nil {
		e.kinds[k] = new(kind)
	}
	return e.kinds[k]
}
