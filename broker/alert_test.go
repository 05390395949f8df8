package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// failing refuses to settle while it is told to, as a whole or item by item.
type failing struct {
	*sqlite.Engine
	whole, items error
}

func (f *failing) Settle(ctx context.Context, s []forebay.Settlement) ([]error, error) {
	if f.whole != nil {
		return nil, f.whole
	}
	if f.items != nil {
		return slices.Repeat([]error{f.items}, len(s)), nil
	}
	return f.Engine.Settle(ctx, s)
}

// alarm is a broker that alerts, over the embedded engine in memory, in a bubble.
type alarm struct {
	*broker.Broker
	t      *testing.T
	engine *failing
	n      int
}

func alarmed(t *testing.T, f func(t *testing.T, a *alarm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &failing{Engine: must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))}
		a := &alarm{t: t, engine: e, Broker: open(t, e, broker.Config{Alerts: broker.Alerts{Queue: broker.AlertQueue}})}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Watcher().Run(ctx) }()
		f(t, a)
		stop()
		want(t, "watch", <-ended, nil)
		want(t, "close", a.Close(), nil)
	})
}

// fail sends messages of a kind and fails them with err. It gives back what Settle said.
func (a *alarm) fail(kind string, n int, err error) error {
	a.t.Helper()
	var msgs []forebay.Message
	for range n {
		a.n++
		m := message(fmt.Sprint("m", a.n))
		m.Kind = kind
		msgs = append(msgs, m)
	}
	must[[]forebay.SendResult](a.t)(a.Send(a.t.Context(), msgs))
	ds := must[[]forebay.Delivery](a.t)(a.Receive(a.t.Context(), engine.Receive{Queue: "q", Max: n}))
	want(a.t, "received", len(ds), n)
	return a.settle(ds, err)
}

func (a *alarm) settle(ds []forebay.Delivery, err error) error {
	var ss []forebay.Settlement
	for _, d := range ds {
		ss = append(ss, a.Decide(d, err))
	}
	errs, failed := a.Settle(a.t.Context(), ss)
	return errors.Join(append(errs, failed)...)
}

// alerts gives and settles the alerts that wait, in short.
func (a *alarm) alerts() (all []string) {
	a.t.Helper()
	ds := must[[]forebay.Delivery](a.t)(a.Receive(a.t.Context(), engine.Receive{Queue: broker.AlertQueue, Max: 1000}))
	for _, d := range ds {
		var al broker.Alert
		if err := json.Unmarshal(d.Payload, &al); err != nil || d.Kind != broker.AlertKind {
			a.t.Errorf("%s %s: %v", d.Kind, d.Payload, err)
		}
		all = append(all, fmt.Sprintf("%s %s %s×%d", al.Reason, al.Name, al.Code, al.Count))
		if al.ID == "" || al.Queue != "q" || al.Error == "" || al.At.IsZero() {
			a.t.Errorf("not whole: %+v", al)
		}
	}
	slices.Sort(all)
	must[[]error](a.t)(nil, a.settle(ds, nil))
	return all
}

var broken = forebay.Permanent(errors.New("no such table"))

func TestAlertsAreNoFlood(t *testing.T) {
	t.Parallel()
	alarmed(t, func(t *testing.T, a *alarm) {
		want(t, "settle", a.fail("mail", 500, broken), nil)
		want(t, "settle", a.fail("sms", 1, broken), nil)
		want(t, "at once", a.alerts(), "[dead mail handler×1 dead sms handler×1]")
		for range 20 {
			time.Sleep(time.Second)
			want(t, "settle", a.fail("mail", 10, broken), nil)
		}
		want(t, "within the minute", a.alerts(), "[]")
		time.Sleep(43 * time.Second)
		want(t, "after a minute", a.alerts(), "[dead mail handler×699]")
		want(t, "settle", a.fail("mail", 1, broken), nil)
		want(t, "soon after that", a.alerts(), "[]")
		time.Sleep(62 * time.Second)
		want(t, "a minute later", a.alerts(), "[dead mail handler×1]")
		time.Sleep(time.Hour)
		want(t, "nothing more", a.alerts(), "[]")
		want(t, "settle", a.fail("mail", 1, broken), nil)
		want(t, "after a quiet hour", a.alerts(), "[dead mail handler×1]")
	})
}

func TestWhatAlerts(t *testing.T) {
	t.Parallel()
	alarmed(t, func(t *testing.T, a *alarm) {
		for _, err := range []error{nil, forebay.RetryAfter(time.Hour, errors.New("once")), forebay.Snooze(time.Hour), forebay.Cancel("not wanted")} {
			want(t, "settle", a.fail("harmless", 1, err), nil)
		}
		want(t, "harmless", a.alerts(), "[]")
		want(t, "settle", a.fail("late", 1, forebay.ErrTimeout), nil)
		want(t, "settle", a.fail("late", 1, forebay.ErrDeadline), nil)
		want(t, "settle", a.fail("state", 1, forebay.Permanent(forebay.Because(forebay.Cause{Code: "23514"}, errors.New("check")))), nil)
		want(t, "alerts", a.alerts(), "[dead late deadline×1 dead state 23514×1 timeout late timeout×1]")

		m := message("poison")
		m.Limits.Deliveries = 1
		must[[]forebay.SendResult](t)(a.Send(t.Context(), []forebay.Message{m}))
		for range 2 {
			must[[]forebay.Delivery](t)(a.Receive(t.Context(), engine.Receive{Queue: "q", Max: 10, Lease: time.Second}))
			time.Sleep(2 * time.Second)
		}
		want(t, "poison", a.alerts(), "[dead k poison×1]")

		// An alert that fails alerts nobody.
		want(t, "settle", a.fail("more", 1, broken), nil)
		ds := must[[]forebay.Delivery](t)(a.Receive(t.Context(), engine.Receive{Queue: broker.AlertQueue, Max: 10}))
		want(t, "settle", a.settle(ds, broken), nil)
		time.Sleep(time.Hour)
		want(t, "of alerts", a.alerts(), "[]")
	})
}

// Only alerts themselves raise none: a mail of their queue that cannot be sent does,
// also where the engine decided its death.
func TestOtherJobsOfTheAlertQueueAlert(t *testing.T) {
	t.Parallel()
	alarmed(t, func(t *testing.T, a *alarm) {
		mail, late := message("mail-1"), message("mail-2")
		mail.Queue, mail.Kind = broker.AlertQueue, "mail"
		late.Queue, late.Kind = broker.AlertQueue, "news"
		late.NotBefore, late.Job = time.Now().Add(time.Hour), &forebay.JobOptions{Deadline: time.Now().Add(90 * time.Minute)}
		must[[]forebay.SendResult](t)(a.Send(t.Context(), []forebay.Message{mail, late}))
		next := func() (d forebay.Delivery, al broker.Alert) {
			t.Helper()
			ds := must[[]forebay.Delivery](t)(a.Receive(t.Context(), engine.Receive{Queue: broker.AlertQueue, Max: 1}))
			want(t, "received", len(ds), 1)
			if err := json.Unmarshal(ds[0].Payload, &al); err != nil && ds[0].Kind == broker.AlertKind {
				t.Error(err)
			}
			return ds[0], al
		}
		d, _ := next()
		want(t, "settle", a.settle([]forebay.Delivery{d}, broken), nil)
		d, al := next()
		want(t, "alert", fmt.Sprint(d.Kind, " ", al.Queue, " ", al.Name, " ", al.ID), "alert notifications mail mail-1")
		want(t, "settle", a.settle([]forebay.Delivery{d}, broken), nil) // and that alerts nobody
		time.Sleep(2 * time.Hour)
		d, al = next()
		want(t, "alert of the engine's", fmt.Sprint(d.Kind, " ", al.Code, " ", al.ID), "alert deadline mail-2")
	})
}

// An alert appears with its verdict or not at all: what was not stored is neither
// told nor counted, and its turn is not used up.
func TestAlertsFollowTheirVerdicts(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(f *failing, err error){
		"a whole call": func(f *failing, err error) { f.whole = err },
		"items":        func(f *failing, err error) { f.items = err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alarmed(t, func(t *testing.T, a *alarm) {
				full := forebay.Errorf(forebay.CodeFull, "test", "no room")
				must[[]forebay.SendResult](t)(a.Send(t.Context(), []forebay.Message{message("a"), message("b"), message("c")}))
				ds := must[[]forebay.Delivery](t)(a.Receive(t.Context(), engine.Receive{Queue: "q", Max: 3}))
				for range 5 {
					bend(a.engine, full)
					want(t, "settle", forebay.CodeOf(a.settle(ds, broken)), forebay.CodeFull)
					bend(a.engine, nil)
					want(t, "alerts", a.alerts(), "[]")
				}
				want(t, "settle", a.settle(ds[:1], broken), nil)
				want(t, "at once", a.alerts(), "[dead k handler×1]")
				bend(a.engine, full)
				want(t, "settle", forebay.CodeOf(a.settle(ds[1:], broken)), forebay.CodeFull)
				bend(a.engine, nil)
				want(t, "settle", a.settle(ds[1:], broken), nil)
				time.Sleep(62 * time.Second)
				want(t, "later", a.alerts(), "[dead k handler×2]")
			})
		})
	}
}

// Who puts anything into kinds makes no flood either.
func TestManyKindsShareAnAlert(t *testing.T) {
	t.Parallel()
	alarmed(t, func(t *testing.T, a *alarm) {
		for i := range 300 {
			want(t, "settle", a.fail(fmt.Sprint("k", i), 1, broken), nil)
		}
		if n := len(a.alerts()); n > 110 || n < 90 {
			t.Errorf("%d alerts at once", n)
		}
		time.Sleep(62 * time.Second)
		all := a.alerts()
		want(t, "later", len(all), 1)
		time.Sleep(time.Hour)
		want(t, "settle", a.fail("k1", 1, broken), nil)
		want(t, "afterwards", a.alerts(), "[dead k1 handler×1]")
	})
}

// Another process, or this one started again, does not alert again within the
// minute; what it holds back it tells later.
func TestAlertsOverProcesses(t *testing.T) {
	t.Parallel()
	alarmed(t, func(t *testing.T, a *alarm) {
		want(t, "settle", a.fail("mail", 1, broken), nil)
		again := &alarm{t: t, engine: a.engine, n: 1000, Broker: open(t, a.engine, broker.Config{Alerts: broker.Alerts{Queue: broker.AlertQueue}})}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- again.Watcher().Run(ctx) }()
		want(t, "settle", again.fail("mail", 5, broken), nil)
		time.Sleep(63 * time.Second) // also where nobody has read the first one yet
		want(t, "both", a.alerts(), "[dead mail handler×1 dead mail handler×4]")
		stop()
		want(t, "watch", <-ended, nil)
	})
}

func TestNoAlertsUnlessWanted(t *testing.T) {
	t.Parallel()
	b := open(t, memory(t), broker.Config{})
	s := b.Decide(forebay.Delivery{Message: message("a"), Attempt: 1}, broken)
	want(t, "next", len(s.Next), 0)
	if _, err := broker.New(memory(t), broker.Config{Alerts: broker.Alerts{Queue: "a b"}}); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("a bad name: %v", err)
	}
}
