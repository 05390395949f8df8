package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

// where tells of one message: "waiting, 1 deliveries, 0 attempts".
func (s *stand) wantAt(id string, where engine.Where, attempts int) {
	s.t.Helper()
	l, err := s.broker.Locate(context.WithoutCancel(s.t.Context()), id)
	if err != nil {
		s.t.Fatal(err)
	}
	if l.Where != where || l.Attempts != attempts {
		s.t.Errorf("%s is %s with %d attempts; want %s with %d", id, l.Where, l.Attempts, where, attempts)
	}
}

func TestDrainLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.send(append(named("a", 3, "A"), named("m", 1, "")...)...)
		s.run(worker.Config{Handler: pausing(time.Minute), DrainTimeout: 2 * time.Minute})
		pass(time.Second)
		s.stop()
		pass(0)
		// What has not begun is free for others at once; a1 keeps its group.
		s.want("active", s.stats().Active, 2)
		s.wantAt("a2", engine.WhereWaiting, 0)
		s.wantAt("a3", engine.WhereWaiting, 0)
		s.send(named("late", 1, "")...)
		pass(time.Second)
		s.wantAt("late1", engine.WhereWaiting, 0)
		if err := <-s.ended; err != nil {
			t.Fatal(err)
		}
		s.want("time", s.since(), time.Minute)
		s.want("completed", s.stats().Completed, 2)
		s.want("waiting", s.stats().Waiting, 3)
	})
}

func TestDrainOfABatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.run(worker.Config{BatchMax: 3, BatchWait: time.Second, Batch: worker.BatchFunc(func(_ context.Context, ds []forebay.Delivery) []error {
			<-time.After(10 * time.Second)
			return nil
		})})
		s.send(named("m", 3, "")...)
		pass(time.Second)
		s.send(named("n", 2, "")...)
		pass(time.Second)
		s.want("active", s.stats().Active, 5)
		s.stop()
		pass(0)
		s.wantAt("n1", engine.WhereWaiting, 0)
		s.wantAt("n2", engine.WhereWaiting, 0)
		if err := <-s.ended; err != nil {
			t.Fatal(err)
		}
		s.want("completed", s.stats().Completed, 3)
	})
}

func TestHandlersLearnOfADrainAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.run(worker.Config{DrainTimeout: time.Hour, Handler: worker.HandlerFunc(func(ctx context.Context, _ forebay.Delivery) error {
			<-forebay.Draining(ctx)
			return errors.Join(ctx.Err(), forebay.ErrDraining)
		})})
		s.send(named("m", 1, "")...)
		pass(time.Second)
		s.stop()
		if err := <-s.ended; err != nil {
			t.Fatal(err)
		}
		s.want("time", s.since(), time.Second)
		s.wantAt("m1", engine.WhereWaiting, 0)
	})
}

func TestDeadlineAndAbortInterruptHandlers(t *testing.T) {
	t.Parallel()
	plain := func(ctx context.Context) error { return errors.New("pq: query cancelled") }
	for name, c := range map[string]struct {
		answer   func(ctx context.Context) error
		abort    bool
		ends     time.Duration
		where    engine.Where
		attempts int
	}{
		"the cause":          {context.Cause, false, 21 * time.Second, engine.WhereWaiting, 0},
		"the context's":      {context.Context.Err, false, 21 * time.Second, engine.WhereWaiting, 0},
		"a name of its own":  {plain, false, 21 * time.Second, engine.WhereWaiting, 0},
		"done all the same":  {func(context.Context) error { return nil }, false, 21 * time.Second, engine.WhereDone, 0},
		"permanent":          {func(context.Context) error { return forebay.Permanent(errors.New("no")) }, false, 21 * time.Second, engine.WhereDead, 1},
		"retry, expressly":   {func(context.Context) error { return forebay.RetryAfter(time.Hour, errors.New("no")) }, false, 21 * time.Second, engine.WhereDelayed, 1},
		"abort":              {context.Cause, true, time.Second, engine.WhereWaiting, 0},
		"abort without stop": {plain, true, time.Second, engine.WhereWaiting, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				var seen journal
				s.send(named("m", 1, "")...)
				s.run(worker.Config{Handler: worker.HandlerFunc(func(ctx context.Context, _ forebay.Delivery) error {
					<-ctx.Done()
					seen.add("%v", context.Cause(ctx))
					return c.answer(ctx)
				})})
				pass(time.Second)
				if name != "abort without stop" {
					s.stop()
				}
				if c.abort {
					s.worker.Abort()
					s.worker.Abort() // harmless
				}
				if err := <-s.ended; err != nil {
					t.Fatal(err)
				}
				s.want("time", s.since(), c.ends)
				s.want("cause", seen.all(), []string{forebay.ErrDraining.Error()})
				s.wantAt("m1", c.where, c.attempts)
				s.stop()
			})
		})
	}
}

func TestHandlerThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		release := make(chan struct{})
		s.send(named("stubborn", 2, "")...)
		s.run(worker.Config{DrainTimeout: time.Second, Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			if d.ID == "stubborn1" {
				<-release
			}
			return nil
		})})
		pass(time.Second)
		s.stop()
		err := <-s.ended
		if err == nil || !strings.Contains(err.Error(), "stubborn1") || strings.Contains(err.Error(), "stubborn2") {
			t.Errorf("run: %v", err)
		}
		s.want("time", s.since(), 7*time.Second)
		s.wantAt("stubborn1", engine.WhereWaiting, 0)
		close(release)
	})
}

func TestEngineThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		release := make(chan struct{})
		s.hooks.receive = func(context.Context, engine.Receive) ([]forebay.Delivery, error) {
			<-release
			return nil, nil
		}
		s.run(worker.Config{Handler: pausing(0), DrainTimeout: time.Second})
		pass(time.Second)
		s.stop()
		if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "receive") {
			t.Errorf("run: %v", err)
		}
		close(release)
	})
}

// A renewal that hangs does not hold the last verdicts up, however long the lease.
func TestDrainDuringARenewalThatHangs(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.hooks.extend = func(ctx context.Context, _ []forebay.Receipt, _ time.Duration) ([]error, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s.send(named("m", 1, "")...)
		// The first renewal is made between the third and the fourth hour.
		s.run(worker.Config{Lease: 12 * time.Hour, Handler: pausing(4 * time.Hour)})
		pass(4*time.Hour - time.Second)
		s.stop()
		began := time.Now()
		if err := <-s.ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if d := time.Since(began); d > time.Minute {
			t.Errorf("the drain took %s", d)
		}
		s.want("verdicts", s.verdicts(), "[m1:ack]")
	})
}

// What an open receive still brings is released.
func TestReceiveThatBringsSomethingLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.hooks.receive = func(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			<-ctx.Done()
			<-time.After(time.Second)
			return s.model.Receive(context.WithoutCancel(ctx), r)
		}
		s.send(named("m", 1, "")...)
		s.run(worker.Config{Handler: pausing(0)})
		pass(time.Second)
		s.finish()
		s.want("verdicts", s.verdicts(), "[m1:release]")
		s.wantAt("m1", engine.WhereWaiting, 0)
	})
}

// Verdicts that wait are stored before Run returns, within a time limit.
func TestDrainFlushes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outage    time.Duration
		completed int
	}{
		"engine comes back": {4 * time.Second, 2},
		"engine does not":   {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
					if s.since() < c.outage {
						return nil, forebay.Errorf(forebay.CodeFull, "test", "no room")
					}
					return s.model.Settle(ctx, ss)
				}
				s.send(named("m", 2, "")...)
				s.run(worker.Config{Handler: pausing(time.Second)})
				pass(1500 * time.Millisecond)
				s.stop()
				err := <-s.ended
				s.want("completed", s.stats().Completed, c.completed)
				if (err == nil) != (c.completed == 2) {
					t.Errorf("run: %v", err)
				}
				if c.completed == 0 {
					s.want("failed", len(s.failed), 2)
					if at := s.since(); at > 15*time.Second {
						t.Errorf("it took until %s", at)
					}
				}
			})
		})
	}
}

func TestContextValuesReachHandlers(t *testing.T) {
	t.Parallel()
	type key struct{}
	bubble(t, func(s *stand) {
		got := make(chan any, 1)
		w, err := worker.New(s.broker, worker.Config{Queue: queue, Handler: worker.HandlerFunc(func(ctx context.Context, _ forebay.Delivery) error {
			got <- ctx.Value(key{})
			return nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		s.send(named("m", 1, "")...)
		ctx, cancel := context.WithCancel(context.WithValue(s.t.Context(), key{}, "trace"))
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		s.want("value", <-got, "trace")
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}
