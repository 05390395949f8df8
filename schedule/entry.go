package schedule

import (
	"container/heap"
	"time"

	"github.com/forebayhq/forebay/engine"
)

// entry is what this process knows of a schedule.
type entry struct {
	name    string
	rev     int64
	plan    *plan // nil: it cannot be understood, see trouble
	state   State
	trouble string
	mine    bool // what is pending is to be sent by this process, at once
	retry   time.Duration
	next    time.Time // when there is something to do; zero: never
	changed uint64    // the number of its last change through this process
	place   int       // in the queue; -1: it is not there
}

// took notes a document that was read when there had been so many changes.
func (s *Scheduler) took(d engine.Document, began uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[d.Key]; e != nil && (e.rev == d.Rev || e.changed > began) {
		return // nothing new, or older than what is known
	}
	st, err := decode(d)
	s.put(d.Key, d.Rev, st, err)
}

// store notes a document that this process has written, or was told instead.
func (s *Scheduler) store(d engine.Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if e := s.entries[d.Key]; e != nil && e.rev > d.Rev {
		return
	}
	st, err := decode(d)
	s.put(d.Key, d.Rev, st, err).changed = s.changes
}

// gone notes that a schedule was deleted.
func (s *Scheduler) gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if e := s.entries[name]; e != nil {
		s.drop(e)
	}
}

// put replaces an entry; err says why the schedule cannot be understood.
func (s *Scheduler) put(name string, rev int64, st stored, err error) *entry {
	e := s.entries[name]
	if e == nil {
		e = &entry{name: name, place: -1}
		s.entries[name] = e
		e.mine = !s.loaded // after a start there is nobody else who would send it soon
	}
	e.rev, e.state, e.trouble = rev, st.State, ""
	if err == nil {
		e.plan, err = s.zones.plan(st.Definition, st.State.Since)
	}
	if err != nil {
		e.plan, e.trouble = nil, err.Error()
		s.log.Error("schedule: a schedule cannot be understood, and stands still", "schedule", name, "error", err)
	}
	if len(e.state.Pending) == 0 {
		e.mine, e.retry = false, 0
	}
	s.plan(e)
	return e
}

// plan sets when there is something to do.
func (s *Scheduler) plan(e *entry) {
	switch {
	case e.plan == nil:
		e.next = time.Time{}
	case len(e.state.Pending) > 0:
		e.next = e.state.Pending[0].At
		if !e.mine {
			e.next = e.next.Add(takeOver)
		}
		if now := s.now(); e.state.Pending[0].At.After(now) { // the clock was ahead
			e.next = now
		}
	default:
		e.next = e.plan.tickAfter(&e.state)
	}
	s.queue.fix(e)
}

// drop forgets a schedule that is gone.
func (s *Scheduler) drop(e *entry) {
	e.next = time.Time{}
	s.queue.fix(e)
	delete(s.entries, e.name)
}

func (s *Scheduler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it will wake up anyway
	}
}

// queue has the entries by their next.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, k int) bool { return q[i].next.Before(q[k].next) }
func (q queue) Swap(i, k int) {
	q[i], q[k] = q[k], q[i]
	q[i].place, q[k].place = i, k
}

func (q *queue) Push(v any) {
	e := v.(*entry)
	e.place = len(*q)
	*q = append(*q, e)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q, e.place = (*q)[:last], -1
	return e
}

// fix puts an entry where its next says.
func (q *queue) fix(e *entry) {
	switch {
	case e.next.IsZero() && e.place >= 0:
		heap.Remove(q, e.place)
	case e.next.IsZero():
	case e.place >= 0:
		heap.Fix(q, e.place)
	default:
		heap.Push(q, e)
	}
}
