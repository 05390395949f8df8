package worker_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

func TestNewTellsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := worker.New(nil, worker.Config{Concurrency: -1, BatchMax: -1, BatchBytes: -1, BatchWait: -1, Lease: 1, DrainTimeout: -1})
	if forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Fatalf("got %v", err)
	}
	for _, field := range []string{"broker", "queue", "handler", "concurrency", "batchMax", "batchBytes", "batchWait", "lease", "drainTimeout"} {
		if !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

func TestRunsOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.run(worker.Config{Handler: pausing(0)})
		pass(time.Second)
		if err := s.worker.Run(s.t.Context()); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("the second run: %v", err)
		}
		s.finish()
	})
}

func TestConcurrencyBounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.send(named("m", 10, "")...)
		s.run(worker.Config{Handler: pausing(time.Second), Concurrency: 3})
		pass(time.Second / 2)
		s.want("active", s.stats().Active, 3)
		s.want("waiting", s.stats().Waiting, 7)
		pass(4 * time.Second)
		s.want("completed", s.stats().Completed, 10)
		s.finish()
		s.want("outcomes", len(s.outcomes), 10)
		for _, o := range s.outcomes {
			if !o.Started || o.Run != time.Second || o.Wait > 3*time.Second {
				t.Errorf("%s: started %t, waited %s, ran %s", o.Delivery.ID, o.Started, o.Wait, o.Run)
			}
		}
	})
}

// Quick handlers get their next messages ahead, as many as they clear in 50 ms;
// what was fetched ahead is free again as soon as the worker drains.
func TestFetchingAhead(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.run(worker.Config{Handler: pausing(10 * time.Millisecond), Concurrency: 2})
		s.send(named("a", 2, "")...) // from here on the pace is known
		pass(time.Second)
		s.send(named("b", 100, "")...)
		pass(95 * time.Millisecond)
		s.want("in work and ahead", s.stats().Active, 2+2*5)
		s.want("completed", s.stats().Completed, 2+2*9)
		s.stop()
		pass(0)
		s.want("in work only", s.stats().Active, 2)
		if err := <-s.ended; err != nil {
			t.Fatal(err)
		}
		s.want("completed", s.stats().Completed, 2+2*10)
		s.want("waiting", s.stats().Waiting, 80)
	})
}

func TestRetryUntilDead(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var seen journal
		s.run(worker.Config{Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			seen.add("%d at %s", d.Attempt, s.since())
			return forebay.Because(forebay.Cause{Code: "smtp"}, errors.New("no such host"))
		})})
		m := named("m", 1, "")
		m[0].Limits.Attempts = 4
		s.send(m...)
		pass(time.Hour)
		s.want("attempts", seen.all(), "[1 at 0s 2 at 1s 3 at 3s 4 at 7s]")
		s.want("verdicts", s.verdicts(), "[m1:retry m1:retry m1:retry m1:dead]")
		s.finish()
		dead, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{Queue: queue})
		if err != nil || len(dead) != 1 {
			t.Fatalf("dead letters: %v, %v", dead, err)
		}
		s.want("cause", dead[0].Cause.Code+" "+dead[0].Cause.Message, "smtp no such host")
		s.want("earlier failures", len(dead[0].Failures), 3)
	})
}

func TestPanicIsAFailureOfItsItem(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.run(worker.Config{Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			if d.ID == "m2" {
				panic("bad pixel")
			}
			return nil
		})})
		m := named("m", 3, "")
		m[1].Limits.Attempts = 1
		s.send(m...)
		pass(time.Second)
		s.finish()
		s.want("completed", s.stats().Completed, 2)
		dead, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{Queue: queue})
		if err != nil || len(dead) != 1 {
			t.Fatalf("dead letters: %v, %v", dead, err)
		}
		s.want("cause", dead[0].Cause.Code+": "+dead[0].Cause.Message, "panic: panic: bad pixel")
		if !strings.Contains(dead[0].Cause.Detail["stack"], "worker_test.go") {
			t.Errorf("the stack does not name the handler: %s", dead[0].Cause.Detail["stack"])
		}
	})
}

func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.run(worker.Config{Concurrency: 1, Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			if d.ID == "m1" {
				runtime.Goexit() // as a failing assertion does
			}
			return nil
		})})
		m := named("m", 2, "")
		m[0].Limits.Attempts = 1
		s.send(m...)
		pass(time.Second)
		s.finish()
		s.want("verdicts", s.verdicts(), "[m1:dead m2:ack]")
	})
}

func TestGroupRunsSeriallyAndInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var seen journal
		s.send(append(named("a", 5, "A"), named("b", 5, "B")...)...)
		s.run(worker.Config{Concurrency: 8, Handler: worker.HandlerFunc(func(ctx context.Context, d forebay.Delivery) error {
			seen.add("%s begins at %s", d.ID, s.since())
			<-time.After(time.Second)
			return nil
		})})
		pass(time.Minute)
		s.finish()
		lines := seen.all()
		slices.Sort(lines)
		s.want("order", lines, "[a1 begins at 0s a2 begins at 1s a3 begins at 2s a4 begins at 3s a5 begins at 4s"+
			" b1 begins at 0s b2 begins at 1s b3 begins at 2s b4 begins at 3s b5 begins at 4s]")
	})
}

func TestGroupWaitsForItsRetry(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var seen journal
		s.send(named("a", 3, "A")...)
		s.run(worker.Config{Concurrency: 8, Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			seen.add("%s/%d at %s", d.ID, d.Attempt, s.since())
			if d.ID == "a1" && d.Attempt < 3 || d.ID == "a2" && d.Attempt < 2 {
				return errors.New("not yet")
			}
			return nil
		})})
		pass(time.Minute)
		s.finish()
		s.want("order", seen.all(), "[a1/1 at 0s a1/2 at 1s a1/3 at 3s a2/1 at 3s a2/2 at 4s a3/1 at 4s]")
	})
}
