package broker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

// A deadline that passes while nobody has the job is told as other deaths are, and
// no death is told twice.
func TestDeathsByTheEngineAlert(t *testing.T) {
	t.Parallel()
	alarmed(t, func(t *testing.T, a *alarm) {
		<-a.Watcher().Ready()
		var msgs []forebay.Message
		for i := range 5 {
			m := job(fmt.Sprint("d", i))
			m.Job.Deadline, m.Job.Owner = time.Now().Add(time.Minute), "ann"
			msgs = append(msgs, m)
		}
		must[[]forebay.SendResult](t)(a.Send(t.Context(), append(msgs, job("broken"))))
		ds := must[[]forebay.Delivery](t)(a.Receive(t.Context(), engine.Receive{Queue: "q", Max: 10, Lease: time.Second}))
		for _, d := range ds {
			if d.ID == "broken" {
				want(t, "settle", a.settle([]forebay.Delivery{d}, broken), nil)
			}
		}
		time.Sleep(2 * time.Second)
		want(t, "by a verdict", a.alerts(), "[dead k handler×1]")
		time.Sleep(62 * time.Second)
		want(t, "by the engine", a.alerts(), "[dead k deadline×5]")
		time.Sleep(time.Hour)
		want(t, "once", a.alerts(), "[]")
	})
}

// What the watcher reads of the real engine: the estimate knows it, also in the next
// process, and a job that takes far too long is told of, once.
func TestEstimatesAndOverdueJobs(t *testing.T) {
	t.Parallel()
	alarmed(t, func(t *testing.T, a *alarm) {
		if r := a.Estimate("q", "k"); r.Samples != 0 {
			t.Errorf("it knows %v before anything ran", r)
		}
		<-a.Watcher().Ready()
		finish := func(after time.Duration, n int) {
			for i := range n {
				m := job(fmt.Sprint("j", time.Now().UnixNano(), i))
				must[[]forebay.SendResult](t)(a.Send(t.Context(), []forebay.Message{m}))
				ds := must[[]forebay.Delivery](t)(a.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Lease: time.Hour}))
				time.Sleep(after)
				want(t, "settle", a.settle(ds, nil), nil)
			}
		}
		finish(time.Second, 30)
		time.Sleep(time.Minute)
		synctest.Wait()
		r := a.Estimate("q", "k")
		if r.Samples != 30 || r.Likely < 900*time.Millisecond || r.Likely > 1100*time.Millisecond || a.Coverage().Jobs == 0 {
			t.Errorf("it says %v, %v", r, a.Coverage())
		}
		next := open(t, a.engine, broker.Config{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- next.Watcher().Run(ctx) }()
		<-next.Watcher().Ready()
		time.Sleep(time.Second)
		want(t, "in the next process", next.Estimate("q", "k").Samples, 30)
		stop()
		want(t, "watch", <-ended, nil)

		late := job("late")
		late.Job.Owner = "ann"
		must[[]forebay.SendResult](t)(a.Send(t.Context(), []forebay.Message{late}))
		ds := must[[]forebay.Delivery](t)(a.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Lease: 10 * time.Hour}))
		time.Sleep(25 * time.Second)
		want(t, "in time", a.alerts(), "[]")
		j := must[forebay.Job](t)(a.Job(t.Context(), "late"))
		if left := a.EstimateJob(t.Context(), j); left.Samples == 0 || left.High > time.Minute {
			t.Errorf("what is left: %v", left)
		}
		time.Sleep(15 * time.Second)
		want(t, "overdue", a.alerts(), "[overdue k overdue×1]")
		time.Sleep(time.Hour)
		want(t, "once", a.alerts(), "[]")
		want(t, "settle", a.settle(ds, nil), nil)
		want(t, "finished", a.EstimateJob(t.Context(), must[forebay.Job](t)(a.Job(t.Context(), "late"))).Samples, 0)
	})
}
