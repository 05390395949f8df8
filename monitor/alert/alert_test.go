package alert_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/monitor/alert"
)

// world is what rules look at, and who is told.
type world struct {
	mu     sync.Mutex
	values map[string]float64 // "measure subject"
	broken error              // of reading
	deaf   error              // of sending
	told   []string
}

func (w *world) set(of monitor.Measure, subject string, v float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[string(of)+" "+subject] = v
}

func (w *world) fail(broken, deaf error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken, w.deaf = broken, deaf
}

func (w *world) read(context.Context) ([]monitor.Reading, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return nil, w.broken
	}
	var all []monitor.Reading
	for name, v := range w.values {
		of, subject, _ := strings.Cut(name, " ")
		all = append(all, monitor.Reading{Of: monitor.Measure(of), Subject: subject, Value: v})
	}
	return all, nil
}

func (w *world) send(_ context.Context, n alert.Notice) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf != nil {
		return w.deaf
	}
	text := n.Rule.Name
	if n.Resolved {
		text += " over"
	}
	for _, s := range n.Subjects {
		text += fmt.Sprintf(" %s=%v", s.Name, s.Value)
	}
	w.told = append(w.told, text)
	return nil
}

// heard gives what was told since it was asked last.
func (w *world) heard() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.told, "; ")
	w.told = nil
	return text
}

var rules = []alert.Rule{
	{Name: "age", Of: monitor.MeasureOldestAge, Limit: 60, For: 5 * time.Minute, Every: time.Hour},
	{Name: "disk", Of: monitor.MeasureDiskFree, Limit: 1000, Under: true},
	{Name: "mail", Of: monitor.MeasureFailureRatio, Subject: "mail", Limit: 0.5},
}

// start runs alerts until the returned function is called.
func start(t *testing.T, w *world, documents alert.Documents) (*alert.Alerts, func()) {
	t.Helper()
	a, err := alert.New(alert.Config{Rules: rules, Read: w.read, Send: w.send, Documents: documents, Every: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return a, func() { cancel(); running.Wait() }
}

func TestALifeOfAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{values: map[string]float64{}}
		a, stop := start(t, w, nil)
		defer stop()
		after := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			if got := w.heard(); got != want {
				t.Errorf("told %q; want %q", got, want)
			}
		}
		w.set(monitor.MeasureOldestAge, "mail", 61)
		w.set(monitor.MeasureOldestAge, "images", 10)
		w.set(monitor.MeasureFailureRatio, "images", 1) // of no rule
		after(5*time.Minute, "")
		w.set(monitor.MeasureOldestAge, "mail", 59) // before it has stood for five minutes
		after(time.Minute, "")
		w.set(monitor.MeasureOldestAge, "mail", 100)
		w.set(monitor.MeasureOldestAge, "images", 200)
		after(6*time.Minute, "age images=200 mail=100") // together, once
		w.set(monitor.MeasureOldestAge, "reports", 300)
		after(30*time.Minute, "") // within the cool-down
		after(31*time.Minute, "age images=200 mail=100 reports=300")
		w.set(monitor.MeasureOldestAge, "mail", 0)
		after(time.Minute, "age over mail=0")
		w.set(monitor.MeasureDiskFree, "", 999)
		after(time.Minute, "disk =999")
		w.set(monitor.MeasureDiskFree, "", 1000)
		after(time.Minute, "disk over =1000")

		if err := a.Mute(t.Context(), "mail", time.Hour, "we know"); err != nil {
			t.Fatal(err)
		}
		w.set(monitor.MeasureFailureRatio, "mail", 0.6)
		after(30*time.Minute, "")
		s := a.Status()[2]
		if len(s.Firing) != 1 || s.Reason != "we know" || s.Muted.IsZero() {
			t.Errorf("%+v", s)
		}
		after(31*time.Minute, "age images=200 reports=300; mail mail=0.6") // a cool-down and the mute have ended

		w.fail(errors.New("no store"), nil)
		after(10*time.Minute, "") // nothing is over because nothing can be read
		w.fail(nil, errors.New("no queue"))
		w.set(monitor.MeasureFailureRatio, "mail", 0)
		after(10*time.Minute, "")
		w.fail(nil, nil)
		after(time.Minute, "mail over mail=0") // late, and not lost
	})
}

func TestARestartTellsNothingTwice(t *testing.T) {
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	w := &world{values: map[string]float64{}}
	w.set(monitor.MeasureDiskFree, "", 1)
	a, heard := quick(t, w, b)
	if heard() != "disk =1" {
		t.Error("nothing was told")
	}
	if err := a.Mute(t.Context(), "age", time.Hour, "later"); err != nil {
		t.Fatal(err)
	}
	again, heard := quick(t, w, b)
	if got := heard(); got != "" {
		t.Errorf("told %q once more", got)
	}
	if s := again.Status(); len(s[1].Firing) != 1 || s[0].Reason != "later" {
		t.Errorf("%+v", s)
	}
	// The first one is another server now: it hears of what is muted elsewhere.
	if err := again.Mute(t.Context(), "mail", time.Hour, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := a.Mute(t.Context(), "age", 0, ""); err != nil {
		t.Fatal(err)
	}
	if s := a.Status(); s[2].Reason != "elsewhere" || !s[0].Muted.IsZero() {
		t.Errorf("%+v", s)
	}
}

// quick runs alerts that look very often, for two looks.
func quick(t *testing.T, w *world, documents alert.Documents) (*alert.Alerts, func() string) {
	t.Helper()
	looks := make(chan struct{}, 100)
	read := func(ctx context.Context) ([]monitor.Reading, error) {
		looks <- struct{}{}
		return w.read(ctx)
	}
	a, err := alert.New(alert.Config{Rules: rules, Read: read, Send: w.send, Documents: documents, Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = a.Run(ctx) })
	for range 3 { // the third begins when the first two were saved
		<-looks
	}
	cancel()
	running.Wait()
	return a, w.heard
}

func TestBadRulesAreRefused(t *testing.T) {
	w := &world{}
	_, err := alert.New(alert.Config{Read: w.read, Send: w.send, Rules: []alert.Rule{
		{Name: "a", Of: "mood"}, {Name: "b", Of: monitor.MeasureDead, For: -1}, {Name: "b", Of: monitor.MeasureDead},
	}})
	for _, part := range []string{`"mood" is not measured`, "times are 0 or more", `two rules are named "b"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
	a, err := alert.New(alert.Config{Read: w.read, Send: w.send, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Mute(t.Context(), "nothing", time.Hour, ""); forebay.CodeOf(err) != forebay.CodeNotFound {
		t.Error(err)
	}
	if err := a.Mute(t.Context(), "age", 365*24*time.Hour, ""); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Error(err)
	}
}
