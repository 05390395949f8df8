package broker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
)

// log is a history that a test writes itself, so that it can say exactly when what
// happens and when reading fails. What engines do is tested on them.
type log struct {
	engine.Engine
	mu     sync.Mutex
	epoch  string
	events []forebay.HistoryEvent
	oldest int64
	more   chan struct{}
	fail   error
	calls  int
}

func newLog() *log {
	return &log{Engine: enginetest.NewModel(), epoch: "e1", more: make(chan struct{})}
}

func (l *log) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.more)
	l.more = make(chan struct{})
}

func (l *log) write(events ...forebay.HistoryEvent) {
	l.change(func() {
		for _, e := range events {
			e.Seq, e.At = int64(len(l.events)+1), time.Now()
			l.events = append(l.events, e)
		}
	})
}

func (l *log) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	until := time.After(q.Wait)
	l.mu.Lock()
	l.calls++
	if q.After < 0 {
		q.After = int64(len(l.events))
	}
	l.mu.Unlock()
	for {
		l.mu.Lock()
		fail, more := l.fail, l.more
		page := engine.HistoryPage{Epoch: l.epoch, Oldest: l.oldest, Next: q.After}
		if rest := l.events[min(int(max(q.After, l.oldest-1)), len(l.events)):]; len(rest) > 0 {
			page.Events = append(page.Events, rest[:min(len(rest), q.Limit)]...)
			page.Next = page.Events[len(page.Events)-1].Seq
		}
		l.mu.Unlock()
		if fail != nil || len(page.Events) > 0 || q.Wait == 0 {
			return page, fail
		}
		select {
		case <-more:
		case <-until:
			return page, nil // an empty one: the same place
		case <-ctx.Done():
			return page, ctx.Err()
		}
	}
}

// watching runs f beside the watcher of a broker over a log.
func watching(t *testing.T, f func(t *testing.T, l *log, w *broker.Watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		b := open(t, l, broker.Config{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Watcher().Run(ctx) }()
		<-b.Watcher().Ready()
		f(t, l, b.Watcher())
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func progress(job, stage string, percent float64) forebay.HistoryEvent {
	return forebay.HistoryEvent{Type: forebay.HistoryProgress, Job: job, Queue: "q", Progress: &forebay.Progress{Stage: stage, Percent: percent}}
}

func event(typ forebay.HistoryType, job string, state forebay.State) forebay.HistoryEvent {
	return forebay.HistoryEvent{Type: typ, Job: job, Queue: "q", State: state}
}

// drained reads what is at hand now.
func drained(s *broker.Subscription) (all []string) {
	synctest.Wait()
	for {
		select {
		case e, ok := <-s.C:
			if !ok {
				return append(all, "closed")
			}
			text := fmt.Sprint(e.Seq, " ", e.Job, " ", e.Type)
			if e.Progress != nil {
				text += fmt.Sprint(" ", e.Progress.Percent)
			}
			all = append(all, text)
		default:
			return all
		}
	}
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

func TestWatcherHandsOutByFilter(t *testing.T) {
	t.Parallel()
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		job := w.Subscribe(broker.WatchFilter{Job: "a"})
		queue := w.Subscribe(broker.WatchFilter{Queue: "q"})
		typed := w.Subscribe(broker.WatchFilter{Types: []forebay.HistoryType{forebay.HistoryCancelRequested}})
		both := w.Subscribe(broker.WatchFilter{Job: "a", Queue: "other"})
		elsewhere := event(forebay.HistoryCancelRequested, "c", "")
		elsewhere.Queue = "other"
		l.write(event(forebay.HistoryAdded, "a", forebay.StateWaiting), event(forebay.HistoryStarted, "b", forebay.StateActive), elsewhere)
		want(t, "job", drained(job), "[1 a added]")
		want(t, "queue", drained(queue), "[1 a added 2 b started]")
		want(t, "types", drained(typed), "[3 c cancel_requested]")
		want(t, "both", drained(both), "[]")
		job.Close()
		job.Close()
		l.write(event(forebay.HistoryCompleted, "a", forebay.StateCompleted))
		want(t, "closed", drained(job), "[closed]")
		if job.Lagged() {
			t.Error("who closed did not lag")
		}
		want(t, "epoch", w.Epoch(), "e1")
		events, ok := w.Since(1, "")
		want(t, "since", fmt.Sprint(len(events), ok), "3 true")
		if _, ok := w.Since(-1, ""); ok {
			t.Error("what was before it began is not at hand")
		}
	})
}

// The first ones at once, then the latest, at most four in any second, and in
// order with what else happens to the job.
func TestProgressIsPaced(t *testing.T) {
	t.Parallel()
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		s := w.Subscribe(broker.WatchFilter{Job: "a"})
		var at []time.Time
		var seen []float64
		done := make(chan struct{})
		last := int64(0)
		go func() {
			defer close(done)
			for e := range s.C {
				if e.Seq <= last {
					t.Errorf("%d comes after %d", e.Seq, last)
				}
				last = e.Seq
				if e.Progress != nil {
					at, seen = append(at, time.Now()), append(seen, e.Progress.Percent)
				}
			}
		}()
		for i := range 1000 {
			l.write(progress("a", "resize", float64(i)/10))
			if i%100 == 50 {
				l.write(event(forebay.HistoryLog, "a", ""))
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		s.Close()
		<-done
		if n := len(seen); n < 38 || n > 44 {
			t.Errorf("%d of 1000 in 10 s", n)
		}
		if seen[len(seen)-1] != 99.9 {
			t.Errorf("the latest is %v", seen[len(seen)-1])
		}
		for i := 4; i < len(at); i++ {
			if d := at[i].Sub(at[i-4]); d < time.Second {
				t.Errorf("five progress events within %s", d)
			}
		}
	})
}

// A change of state goes out at once: progress that waits would only be old then.
func TestStateDoesNotWaitForProgress(t *testing.T) {
	t.Parallel()
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		s := w.Subscribe(broker.WatchFilter{Job: "a"})
		for i := range 6 {
			l.write(progress("a", "x", float64(i)))
		}
		want(t, "at once", drained(s), "[1 a progress 0 2 a progress 1 3 a progress 2 4 a progress 3]")
		l.write(event(forebay.HistoryLog, "a", ""))
		want(t, "a line waits", drained(s), "[]")
		l.write(event(forebay.HistoryCompleted, "a", forebay.StateCompleted))
		want(t, "the end", drained(s), "[7 a log 8 a completed]")
		time.Sleep(5 * time.Second)
		want(t, "afterwards", drained(s), "[]")
	})
}

// Each stage is told as it begins, however soon the next one does; a flood of them is
// paced as any progress is.
func TestStagesDoNotWait(t *testing.T) {
	t.Parallel()
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		s := w.Subscribe(broker.WatchFilter{Job: "a"})
		for _, stage := range []string{"a", "b", "c", "d", "e", "f"} {
			l.write(progress("a", stage, 0))
			l.write(progress("a", stage, 50))
			l.write(event(forebay.HistoryLog, "a", ""))
		}
		want(t, "at once", drained(s), "[1 a progress 0 2 a progress 50 3 a log 4 a progress 0 5 a progress 50 6 a log "+
			"7 a progress 0 9 a log 10 a progress 0 12 a log 13 a progress 0 15 a log 16 a progress 0]")
		time.Sleep(2 * time.Second)
		want(t, "later", drained(s), "[17 a progress 50 18 a log]")
		for i := range 60 {
			l.write(progress("a", fmt.Sprint("item ", i), float64(i)))
		}
		if n := len(drained(s)); n != 20 {
			t.Errorf("%d of 60 stages were told at once, want 20", n)
		}
		time.Sleep(2 * time.Second)
		want(t, "the latest", drained(s), "[78 a progress 59]")
	})
}

// Over many jobs, progress that waited does not lead a subscriber back.
func TestSeqNeverGoesBack(t *testing.T) {
	t.Parallel()
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		s := w.Subscribe(broker.WatchFilter{Queue: "q"})
		for i := range 6 {
			l.write(progress("a", "x", float64(i)))
		}
		l.write(event(forebay.HistoryAdded, "b", forebay.StateWaiting))
		drained(s)
		time.Sleep(2 * time.Second)
		want(t, "later", drained(s), "[7 a progress 5]")
	})
}

func TestSlowSubscriberIsDropped(t *testing.T) {
	t.Parallel()
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		slow, quick := w.Subscribe(broker.WatchFilter{Job: "a"}), w.Subscribe(broker.WatchFilter{Job: "a"})
		n := 0
		for range 70 {
			l.write(event(forebay.HistoryLog, "a", ""))
			n += len(drained(quick))
		}
		want(t, "quick", n, 70)
		want(t, "quick lags", quick.Lagged(), false)
		got := drained(slow)
		want(t, "slow", fmt.Sprint(len(got), " ", got[len(got)-1], " ", slow.Lagged()), "65 closed true")
		// Progress alone drops nobody: it waits for room, and the latest wins.
		patient := w.Subscribe(broker.WatchFilter{Queue: "q"})
		for i := range 200 {
			l.write(progress(fmt.Sprint("p", i), "x", 1), progress(fmt.Sprint("p", i), "x", 2))
			synctest.Wait()
		}
		want(t, "patient", fmt.Sprint(len(drained(patient)), patient.Lagged()), "64 false")
		time.Sleep(time.Second)
		if got := drained(patient); len(got) == 0 {
			t.Error("what waited for room does not come")
		}
	})
}

func TestWatcherOutlivesFailures(t *testing.T) {
	t.Parallel()
	watching(t, func(t *testing.T, l *log, w *broker.Watcher) {
		s := w.Subscribe(broker.WatchFilter{Job: "a"})
		l.change(func() { l.fail = forebay.Errorf(forebay.CodeUnavailable, "test", "no answer") })
		time.Sleep(time.Minute)
		want(t, "its error", forebay.CodeOf(w.Err()), forebay.CodeUnavailable)
		var calls int
		l.change(func() { calls = l.calls })
		if calls < 10 || calls > 30 {
			t.Errorf("%d calls in a minute", calls)
		}
		l.change(func() { l.fail = nil })
		l.write(event(forebay.HistoryAdded, "a", forebay.StateWaiting))
		time.Sleep(6 * time.Second)
		want(t, "after an outage", drained(s), "[1 a added]")
		want(t, "its error", w.Err(), nil)

		// What left by retention before it was read is missed, and that is said.
		l.change(func() { l.fail = forebay.Errorf(forebay.CodeUnavailable, "test", "no answer") })
		for range 10 {
			l.write(event(forebay.HistoryLog, "a", ""))
		}
		l.change(func() { l.fail, l.oldest = nil, 9 })
		time.Sleep(6 * time.Second)
		want(t, "a gap", fmt.Sprint(drained(s), " ", s.Lagged()), "[closed] true")
		if _, ok := w.Since(1, ""); ok {
			t.Error("the ring has a gap and does not say so")
		}
		s = w.Subscribe(broker.WatchFilter{Job: "a"})
		l.write(event(forebay.HistoryLog, "a", ""))
		want(t, "after a gap", drained(s), "[12 a log]")
		l.change(func() { l.epoch, l.oldest, l.events = "e2", 0, l.events[:2] })
		l.write(event(forebay.HistoryLog, "a", ""))
		time.Sleep(time.Minute)
		want(t, "another store", fmt.Sprint(drained(s), " ", s.Lagged(), " ", w.Epoch()), "[closed] true e2")
		s = w.Subscribe(broker.WatchFilter{Job: "a"})
		l.write(event(forebay.HistoryLog, "a", ""))
		want(t, "in another store", drained(s), "[4 a log]")
		events, ok := w.Since(3, "")
		want(t, "since, in another store", fmt.Sprint(len(events), ok), "1 true")
	})
}

func TestWatcherEndsWithTheEngineAndClosesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		b := open(t, l, broker.Config{})
		ended := make(chan error, 1)
		go func() { ended <- b.Watcher().Run(t.Context()) }()
		<-b.Watcher().Ready()
		s := b.Watcher().Subscribe(broker.WatchFilter{})
		l.change(func() { l.fail = forebay.Errorf(forebay.CodeClosed, "test", "closed") })
		if err := <-ended; forebay.CodeOf(err) != forebay.CodeClosed {
			t.Errorf("run: %v", err)
		}
		want(t, "open", fmt.Sprint(drained(s), " ", s.Lagged()), "[closed] false")
		want(t, "later", drained(b.Watcher().Subscribe(broker.WatchFilter{Job: "a"})), "[closed]")
	})
}

// Without a history there is nothing to hear, and that is no failure.
func TestWatcherWithoutHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, plain{Engine: enginetest.NewModel()}, broker.Config{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Watcher().Run(ctx) }()
		<-b.Watcher().Ready()
		time.Sleep(time.Hour)
		stop()
		want(t, "run", <-ended, nil)
	})
}
