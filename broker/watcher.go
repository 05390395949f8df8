package broker

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const (
	watchWait  = 20 * time.Second // how long one read of the history waits
	watchSlack = 10 * time.Second // how much later it must have answered
	watchFirst = 100 * time.Millisecond
	watchMost  = 5 * time.Second // between tries, while reading fails

	releaseGap = 20 * time.Millisecond // between looks at progress that waits
	forever    = time.Hour
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
	for _, e := range events {
		w.ring.add(e)
		for s := range w.jobs[e.Job] {
			w.offer(s, &e, now)
		}
		for s := range w.queue[e.Queue] {
			w.offer(s, &e, now)
		}
		for s := range w.all[""] {
			w.offer(s, &e, now)
		}
	}
	w.place = max(w.place, place)
}

func (w *Watcher) offer(s *Subscription, e *forebay.HistoryEvent, now time.Time) {
	if s.filter.holds(e) {
		s.offer(*e, now)
	}
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

// Run reads the history until ctx ends, and hands it out. It also does what has to
// be done now and then with what it saw: it tells of alerts that were held back, of
// jobs that are overdue, and keeps the estimates. It runs once.
//
// A history that does not answer is asked again until it does. Run returns an error
// only where that cannot help.
func (w *Watcher) Run(ctx context.Context) error {
	pages := make(chan engine.HistoryPage)
	var err error
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer w.end()
	if w.b.able.history != nil {
		running.Go(func() {
			defer stop()
			err = w.read(ctx, pages)
		})
	} else {
		close(w.ready)
	}
	running.Go(func() { w.b.chores(ctx) })
	w.hub(ctx, pages)
	stop()
	running.Wait()
	return err
}

// hub is the one who hands out.
func (w *Watcher) hub(ctx context.Context, pages <-chan engine.HistoryPage) {
	held := time.NewTimer(forever)
	defer held.Stop()
	for {
		select {
		case page := <-pages:
			w.book(page, w.b.now())
			w.b.estimates.feed(page.Events)
			w.b.hearDeaths(page.Events)
		case <-held.C:
		case <-ctx.Done():
			return
		}
		if next := w.release(w.b.now()); !next.IsZero() {
			held.Reset(max(next.Sub(w.b.now()), releaseGap))
		}
	}
}

// read gives pages to the hub.
func (w *Watcher) read(ctx context.Context, pages chan<- engine.HistoryPage) error {
	const newest = -1
	after, wait, failures := int64(newest), time.Duration(0), 0
	epoch := ""
	for ctx.Err() == nil {
		page, err := w.ask(ctx, after, wait)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && hopeless(err):
			return err
		case err != nil:
			failures++
			pause(ctx, min(watchFirst<<min(failures-1, 10), watchMost))
			continue
		}
		failures = 0
		select {
		case pages <- page:
			after, wait = page.Next, watchWait
			if epoch != "" && page.Epoch != epoch { // places of before mean nothing there
				after, wait = newest, 0
			}
			epoch = page.Epoch
		case <-ctx.Done():
		}
	}
	return nil
}

// ask is one call with a watchdog: a history that has not answered well after the
// wait (a half-open connection) is asked again.
func (w *Watcher) ask(ctx context.Context, after int64, wait time.Duration) (engine.HistoryPage, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+watchSlack)
	defer cancel()
	return w.b.able.history.History(ctx, engine.HistoryQuery{After: after, Limit: engine.MaxHistory, Wait: wait})
}

// book takes a page over.
func (w *Watcher) book(page engine.HistoryPage, now time.Time) {
	w.mu.Lock()
	begun, known := w.begun, w.ring.known
	w.begun = true
	other := begun && page.Epoch != w.epoch
	if !known && !other {
		w.epoch, w.place = page.Epoch, page.Next
		if len(page.Events) > 0 {
			w.place = page.Events[0].Seq - 1
		}
		w.ring.reset(w.place)
	}
	gap := page.Oldest > w.place+1
	w.mu.Unlock()
	switch {
	case other: // the place in it comes with the next page
		w.lose(page.Epoch, ring{})
	case gap && known:
		w.lose(page.Epoch, ring{floor: page.Next, known: true})
	default:
		w.publish(page.Events, page.Next, now)
	}
	if !begun {
		close(w.ready)
	}
}

func hopeless(err error) bool {
	switch forebay.CodeOf(err) {
	case forebay.CodeClosed, forebay.CodeInvalid, forebay.CodeUnsupported:
		return true
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
