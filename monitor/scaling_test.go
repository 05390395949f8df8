package monitor_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/worker"
)

// clock is the time of an engine, its broker and their monitor.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC).Add(time.Duration(c.passed.Load()))
}

func (c *clock) pass(d time.Duration) { c.passed.Add(int64(d)) }

func watched(t *testing.T, cfg monitor.Config) (*monitor.Monitor, *broker.Broker, *clock) {
	t.Helper()
	c := &clock{}
	e, err := sqlite.Open(sqlite.Config{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	cfg.Broker, cfg.Now = b, c.now
	m, err := monitor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, b, c
}

func sendSome(t *testing.T, b *broker.Broker, queue string, n int) {
	t.Helper()
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		msgs[i] = forebay.Message{Queue: queue, Kind: "k"}
	}
	if _, err := b.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, b *broker.Broker, queue string, n int) []forebay.Delivery {
	t.Helper()
	ds, err := b.Receive(t.Context(), engine.Receive{Queue: queue, Max: n, Lease: time.Hour})
	if err != nil || len(ds) != n {
		t.Fatalf("%d deliveries, %v; want %d", len(ds), err, n)
	}
	return ds
}

type slots struct{ busy, all int }

func (s slots) Slots() (busy, all int) { return s.busy, s.all }

func TestDesiredWorkersFollowBacklogAndUse(t *testing.T) {
	t.Parallel()
	m, b, c := watched(t, monitor.Config{Targets: func(queue string) monitor.Target {
		return monitor.Target{Latency: 10 * time.Second, Concurrency: 4}
	}})
	want := func(when string, desired int, acceptable float64) {
		t.Helper()
		all, err := m.Scaling(t.Context(), "mail")
		if err != nil || len(all) != 1 || all[0].DesiredWorkers != desired || all[0].AcceptableBacklog != acceptable {
			t.Errorf("%s: %+v, %v; want %d workers, and %v acceptable for each", when, all, err, desired, acceptable)
		}
	}
	want("a queue that never was", 0, 0)
	sendSome(t, b, "mail", 100)
	want("nothing measured yet", 1, 0)
	run := func(run time.Duration, batch int) {
		m.Worker().Settled(worker.Outcome{
			Delivery: forebay.Delivery{Message: forebay.Message{Queue: "mail"}}, Verdict: forebay.Ack, Started: true, Run: run, Batch: batch,
		})
	}
	run(time.Second, 1)
	want("100 of 1 s in 10 s take 10 slots", 3, 40)
	take(t, b, "mail", 40)
	want("40 run, which is 0.8 of 50 slots", 13, 40)
	m.Watch("mail", slots{2, 5})
	m.Watch("mail", slots{1, 5})
	want("ten slots in this process", 5, 100)
	c.pass(time.Hour)
	run(100*time.Second, 1000)
	want("batches: 60 of 0.1 s take 0.6 slots, and three are in use", 1, 1000)
	c.pass(time.Hour)
	want("what was measured last holds", 1, 1000)
	wantLines(t, scrape(t, m), `forebay_desired_workers{queue="mail"} 1`, `forebay_acceptable_backlog_per_worker{queue="mail"} 1000`,
		`forebay_worker_slots{queue="mail"} 10`, `forebay_worker_slots_used{queue="mail"} 3`)
}

func TestGradesHaveReasons(t *testing.T) {
	t.Parallel()
	m, b, c := watched(t, monitor.Config{})
	grade := func(want string) {
		t.Helper()
		all, err := m.Health(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		var got strings.Builder
		fmt.Fprint(&got, all[0].Grade)
		for _, r := range all[0].Reasons {
			fmt.Fprintf(&got, " %s(%s) %v>%v", r.Code, r.Grade, r.Value, r.Limit)
		}
		if got.String() != want {
			t.Errorf("got  %s\nwant %s\n%+v", got.String(), want, all[0])
		}
	}
	settle := func(v forebay.Verdict, ds ...forebay.Delivery) {
		t.Helper()
		s := make([]forebay.Settlement, len(ds))
		for i, d := range ds {
			s[i] = forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: v, Cause: forebay.Cause{Code: "x", At: c.now()}}
		}
		if _, err := b.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	sendSome(t, b, "mail", 1000)
	grade("healthy")
	sendSome(t, b, "mail", 1)
	grade("warning waiting(warning) 1001>1000")
	settle(forebay.Dead, take(t, b, "mail", 100)...)
	grade("healthy")
	settle(forebay.Dead, take(t, b, "mail", 1)...)
	grade("critical dead(critical) 101>100")
	c.pass(61 * time.Second)
	grade("critical dead(critical) 101>100 no_worker(critical) 61>60")
	one := take(t, b, "mail", 2)
	grade("critical dead(critical) 101>100")
	settle(forebay.Ack, one[0])
	c.pass(9 * time.Second)
	grade("critical dead(critical) 101>100 drain(warning) 8082>3600")
	if err := b.SetLimits(t.Context(), "mail", engine.QueueLimits{Paused: true}); err != nil {
		t.Fatal(err)
	}
	grade("critical dead(critical) 101>100 paused(warning) 898>0")
	m.Worker().Settled(worker.Outcome{Delivery: one[1], Verdict: forebay.Retry, Cause: forebay.Cause{Code: "no_handler"}})
	grade("critical dead(critical) 101>100 paused(warning) 898>0 no_handler(critical) 0>600")
	c.pass(10 * time.Minute)
	grade("critical dead(critical) 101>100 age(warning) 670>600 paused(warning) 898>0")
}

func TestLimitsOfHealthCanBeSet(t *testing.T) {
	t.Parallel()
	m, b, _ := watched(t, monitor.Config{Limits: monitor.Limits{Waiting: 0, Dead: -1, Age: -1, Drain: -1, Idle: -1}})
	sendSome(t, b, "mail", 1)
	all, err := m.Health(t.Context())
	if err != nil || all[0].Grade != monitor.Warning || all[0].Reasons[0].Code != monitor.ReasonWaiting {
		t.Errorf("%+v, %v", all, err)
	}
}
