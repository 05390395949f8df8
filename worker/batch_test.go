package worker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

func ids(ds []forebay.Delivery) string {
	var all []string
	for _, d := range ds {
		all = append(all, d.ID)
	}
	return strings.Join(all, ",")
}

func TestBatchGoesWhenFullOrOldEnough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  worker.Config
		want string
	}{
		"by age":   {worker.Config{BatchMax: 100, BatchWait: time.Second}, "[1s:m1,n1,n2,n3]"},
		"at once":  {worker.Config{BatchMax: 100}, "[0s:m1 600ms:n1,n2,n3]"},
		"by count": {worker.Config{BatchMax: 3, BatchWait: time.Second}, "[600ms:m1,n1,n2 1.6s:n3]"},
		"by bytes": {worker.Config{BatchBytes: 10, BatchWait: time.Second}, "[600ms:m1,n1 600ms:n2,n3]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				var seen journal
				c.cfg.Batch = worker.BatchFunc(func(_ context.Context, ds []forebay.Delivery) []error {
					seen.add("%s:%s", s.since(), ids(ds))
					return nil
				})
				s.run(c.cfg)
				s.send(named("m", 1, "")...)
				pass(600 * time.Millisecond)
				s.send(named("n", 3, "")...)
				pass(time.Minute)
				s.finish()
				s.want("batches", seen.all(), c.want)
				s.want("completed", s.stats().Completed, 4)
			})
		})
	}
}

func TestNextBatchGathersMeanwhile(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var seen journal
		s.run(worker.Config{BatchMax: 4, Lease: time.Minute, Batch: worker.BatchFunc(func(_ context.Context, ds []forebay.Delivery) []error {
			seen.add("%s:%s", s.since(), ids(ds))
			<-time.After(time.Hour)
			return nil
		})})
		for i := range 10 {
			s.send(named(string('a'+rune(i)), 1, "")...)
			pass(time.Second)
		}
		s.want("one in work and four at hand", s.stats().Active, 5)
		pass(4 * time.Hour)
		s.finish()
		s.want("batches", seen.all(), "[0s:a1 1h0m0s:b1,c1,d1,e1 2h0m0s:f1,g1,h1,i1 3h0m0s:j1]")
		s.want("leases lost", len(s.lost), 0)
		s.want("sizes observed", s.batches, "[1 4 4 1]")
	})
}

func TestBatchAnswersByIndex(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.send(named("m", 4, "")...)
		s.run(worker.Config{Batch: worker.BatchFunc(func(_ context.Context, ds []forebay.Delivery) []error {
			errs := make([]error, len(ds))
			for i, d := range ds {
				switch {
				case d.ID == "m2":
					errs[i] = forebay.Permanent(errors.New("no such column"))
				case d.ID == "m3" && d.Attempt == 1:
					errs[i] = errors.New("later")
				}
			}
			return errs
		})})
		pass(time.Minute)
		s.finish()
		s.want("verdicts", s.verdicts(), "[m1:ack m2:dead m3:retry m4:ack m3:ack]")
	})
}

// A panic, and an answer of a wrong length, are pinned on whom they belong to.
func TestBatchHandlerThatBreaks(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(ds []forebay.Delivery) []error{
		"panic":     func([]forebay.Delivery) []error { panic("boom") },
		"too short": func([]forebay.Delivery) []error { return []error{} },
		"too long":  func(ds []forebay.Delivery) []error { return make([]error, len(ds)+1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				msgs := append(named("m", 3, ""), named("a", 3, "A")...)
				msgs = append(msgs, named("b", 3, "B")...)
				s.send(msgs...)
				s.run(worker.Config{Batch: worker.BatchFunc(func(_ context.Context, ds []forebay.Delivery) []error {
					for _, d := range ds {
						if (d.ID == "m2" || d.ID == "a2") && d.Attempt == 1 {
							return breaks(ds)
						}
					}
					return nil
				})})
				pass(time.Minute)
				s.finish()
				s.want("verdicts", s.verdicts(),
					"[m1:ack m2:retry m3:ack a1:ack a2:retry a3:release b1:ack b2:ack b3:ack m2:ack a2:ack a3:ack]")
			})
		})
	}
}

func TestGroupOrderAcrossBatches(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var seen journal
		s.send(append(named("a", 4, "A"), named("b", 4, "B")...)...)
		// One receive brings all; the bytes make it four batches, two at a time.
		s.run(worker.Config{BatchBytes: 10, Concurrency: 2, Batch: worker.BatchFunc(func(_ context.Context, ds []forebay.Delivery) []error {
			seen.add("%s:%s", s.since(), ids(ds))
			<-time.After(time.Second)
			if ds[0].ID == "b1" && ds[0].Attempt == 1 {
				return []error{errors.New("not yet"), forebay.Snooze(0)}
			}
			return nil
		})})
		pass(time.Minute)
		s.finish()
		lines := seen.all()
		slices.Sort(lines) // two batches begin together
		s.want("batches", lines, "[0s:a1,a2 0s:b1,b2 1s:a3,a4 2s:b1,b2 3s:b3,b4]")
	})
}

// A message that takes its process down does not take its neighbours with it.
// The order is by chance; with 60 lives each, the chance that a neighbour dies
// is below 1 in 10^10.
func TestKillerIsSingledOut(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		msgs := append(named("m", 5, ""), append(named("killer", 1, ""), named("a", 5, "A")...)...)
		for i := range msgs {
			msgs[i].Limits.Deliveries = 60
		}
		s.send(msgs...)
		for range 65 {
			s.live("killer1")
			s.restart()
		}
		s.want("waiting", s.stats().Waiting, 0)
		dead, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{Queue: queue})
		if err != nil {
			t.Fatal(err)
		}
		if len(dead) != 1 || dead[0].Message.ID != "killer1" || dead[0].Cause.Code != "poison" {
			t.Errorf("dead letters: %+v", dead)
		}
	})
}

// live is one life of a process: until a handler meets the killer, or until
// nothing is left to do.
func (s *stand) live(killer string) {
	died := make(chan struct{})
	s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
		<-time.After(time.Millisecond) // long enough to die in
		return s.model.Settle(ctx, ss)
	}
	s.run(worker.Config{Batch: worker.BatchFunc(func(ctx context.Context, ds []forebay.Delivery) []error {
		for _, d := range ds {
			if d.ID == killer {
				close(died)
				<-ctx.Done()
			}
		}
		return nil
	})})
	select {
	case <-died:
	case <-time.After(time.Minute):
	}
}

// restart is a crash: the engine opens again on what was stored, and nobody of
// the life before reaches it any more.
func (s *stand) restart() {
	s.t.Helper()
	s.model = s.model.Reopen()
	s.worker.Abort()
	<-s.ended // with an error, since its engine was closed
	s.open()
}
