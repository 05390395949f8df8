package broker

import (
	"runtime"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// Watcher reads the history once for all who want to be told: streams, workers
// that look for cancellations, estimates. It is safe for concurrent use.
//
// Subscribers cannot slow it down: what does not fit is theirs to miss, and they
// are told so. What it hands out is a hint; the store is the truth.
type Watcher struct {
	b     *Broker
	ready chan struct{} // closed when the place is known, or will never be

	mu    sync.Mutex // guards all below, and the subscriptions
	epoch string
	place int64 // what came up to here was handed out
	ring  ring
	jobs  subscribers // by job, of those who named one
	queue subscribers // by queue, of those who named only that
	all   subscribers // under ""
	held  map[*Subscription]struct{}
	notes map[*note]struct{}
	begun bool // a page has come
	ended bool
	fails error // why the history cannot be read just now
	woken int   // subscribers, since the others could run
}

// note is somebody who wants to hear remarks about jobs.
type note struct{ hear func(job, text string) }

// subscribers by what they follow.
type subscribers map[string]map[*Subscription]struct{}

func newWatcher(b *Broker) *Watcher {
	return &Watcher{
		b: b, ready: make(chan struct{}),
		jobs: make(subscribers), queue: make(subscribers), all: make(subscribers),
		held: make(map[*Subscription]struct{}), notes: make(map[*note]struct{}),
	}
}

// Watcher is the one of this broker. It does nothing until its Run.
func (b *Broker) Watcher() *Watcher { return b.watcher }

// Ready is closed when Run has found its place in the history: who subscribes
// after that misses nothing. Also where the engine has no history.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Err is why the history cannot be read at the moment; nil: it can.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fails
}

func (w *Watcher) setErr(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = err
}

// Epoch is that of the store whose events are handed out; empty before Ready.
func (w *Watcher) Epoch() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epoch
}

// Since gives the events after a place, of one job or, with none, of all. ok is
// false where they are no longer at hand: ask the broker's History then.
func (w *Watcher) Since(after int64, job string) (events []forebay.HistoryEvent, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ring.since(after, job)
}

// Subscribe begins to hand events over. The caller reads C until it is closed, and
// calls Close when it has enough.
func (w *Watcher) Subscribe(f WatchFilter) *Subscription {
	c := make(chan forebay.HistoryEvent, subscriptionRoom)
	s := &Subscription{C: c, c: c, w: w, filter: f, paced: make(map[string]*pace)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		s.closed = true
		close(c)
		return s
	}
	index, key := w.index(f)
	if index[key] == nil {
		index[key] = make(map[*Subscription]struct{})
	}
	index[key][s] = struct{}{}
	return s
}

func (w *Watcher) index(f WatchFilter) (subscribers, string) {
	switch {
	case f.Job != "":
		return w.jobs, f.Job
	case f.Queue != "":
		return w.queue, f.Queue
	}
	return w.all, ""
}

// remove needs w.mu.
func (w *Watcher) remove(s *Subscription) {
	index, key := w.index(s.filter)
	delete(index[key], s)
	if len(index[key]) == 0 {
		delete(index, key)
	}
	delete(w.held, s)
}

// publish hands a page over.
func (w *Watcher) publish(events []forebay.HistoryEvent, place int64, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range events {
		e := &events[i] // shared by all who keep it: nobody writes to it
		w.ring.add(*e)
		for s := range w.jobs[e.Job] {
			w.offer(s, e, now)
		}
		for s := range w.queue[e.Queue] {
			w.offer(s, e, now)
		}
		for s := range w.all[""] {
			w.offer(s, e, now)
		}
	}
	w.place = max(w.place, place)
}

func (w *Watcher) offer(s *Subscription, e *forebay.HistoryEvent, now time.Time) {
	if s.filter.holds(e) {
		s.offer(e, now)
		w.breathe()
	}
}

// wakesAtOnce is how many subscribers are woken in a row. All at once they would
// stand in the scheduler's queue before whoever sends or works jobs.
const wakesAtOnce = 8

// breathe lets those run who were woken. It needs w.mu, and gives it away meanwhile:
// who subscribes in between reads the store after that, which has what is handed out.
func (w *Watcher) breathe() {
	if w.woken < wakesAtOnce {
		return
	}
	w.woken = 0
	w.mu.Unlock()
	runtime.Gosched()
	w.mu.Lock()
}

// release sends progress that had to wait, and tells when to look again.
func (w *Watcher) release(now time.Time) (next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.held {
		due := s.release(now)
		if due.IsZero() {
			delete(w.held, s)
		} else if next.IsZero() || due.Before(next) {
			next = due
		}
		w.breathe()
	}
	return next
}

// lose tells all subscribers that they missed something.
func (w *Watcher) lose(epoch string, empty ring) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch, w.place, w.ring = epoch, empty.floor, empty
	w.each((*Subscription).lag)
}

func (w *Watcher) each(do func(*Subscription)) {
	for _, index := range []subscribers{w.jobs, w.queue, w.all} {
		for _, set := range index {
			for s := range set {
				do(s)
			}
		}
	}
}

// Attend has hear called with remarks about jobs that somebody may want to write
// into their logs: that they are overdue. It must be quick. leave ends it.
func (w *Watcher) Attend(hear func(job, text string)) (leave func()) {
	n := &note{hear}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes[n] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.notes, n)
	}
}

func (w *Watcher) note(job, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.notes {
		n.hear(job, text)
	}
}

func (w *Watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.each((*Subscription).end)
}
