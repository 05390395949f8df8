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
			w.setErr(err)
			pause(ctx, min(watchFirst<<min(failures-1, 10), watchMost))
			continue
		}
		if failures > 0 {
			w.setErr(nil)
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
