package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

func TestLeaseLastsAsLongAsTheHandler(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{100 * time.Millisecond, time.Second, 30 * time.Second, time.Hour} {
		t.Run(lease.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				s.send(named("m", 5, "")...)
				s.run(worker.Config{Handler: pausing(3 * lease), Concurrency: 2, Lease: lease})
				pass(20 * lease)
				s.finish()
				s.want("verdicts", len(s.verdicts()), 5)
				for _, o := range s.outcomes {
					s.want("deliveries of "+o.Delivery.ID, o.Delivery.Deliveries, 1)
				}
			})
		})
	}
}

// Leases are renewed many in one call, the one that ends first in front, and
// often enough that two calls in a row may fail.
func TestRenewalIsEarlyAndBatched(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var mu sync.Mutex
		var calls []int
		s.hooks.extend = func(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
			mu.Lock()
			calls = append(calls, len(rs))
			fail := len(calls)%3 != 0
			mu.Unlock()
			if fail {
				return nil, forebay.Errorf(forebay.CodeUnavailable, "test", "no answer")
			}
			return s.model.Extend(ctx, rs, lease)
		}
		s.send(named("m", 50, "")...)
		s.run(worker.Config{Handler: pausing(5 * time.Minute), Concurrency: 50, Lease: 30 * time.Second})
		pass(10 * time.Minute)
		s.finish()
		s.want("completed", s.stats().Completed, 50)
		s.want("leases lost", s.lost, "[]")
		// At a third of 30 s, or a little earlier, and again after a failure: some
		// 90 calls for 50 messages.
		if len(calls) < 30 || len(calls) > 120 {
			t.Errorf("%d calls to extend", len(calls))
		}
		if slices.Max(calls) != 50 {
			t.Errorf("the largest call named %d leases", slices.Max(calls))
		}
	})
}

func TestLostLeaseEndsTheHandler(t *testing.T) {
	t.Parallel()
	for name, extend := range map[string]func(i int) error{
		"the engine says so":       func(int) error { return forebay.Errorf(forebay.CodeLeaseLost, "test", "void") },
		"the engine never answers": func(int) error { return forebay.Errorf(forebay.CodeUnavailable, "test", "no answer") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				var seen journal
				s.hooks.extend = func(_ context.Context, rs []forebay.Receipt, _ time.Duration) ([]error, error) {
					errs := make([]error, len(rs))
					for i := range rs {
						errs[i] = extend(i)
					}
					return errs, nil
				}
				s.send(named("m", 1, "")...)
				s.run(worker.Config{Handler: worker.HandlerFunc(func(ctx context.Context, d forebay.Delivery) error {
					if d.Deliveries > 1 {
						seen.add("again, attempt %d", d.Attempt)
						return nil
					}
					<-ctx.Done()
					seen.add("%v", context.Cause(ctx))
					return nil // whatever it says: it does not own the message
				})})
				pass(time.Minute)
				s.finish()
				s.want("seen", seen.all(), []string{forebay.ErrLeaseLost.Error(), "again, attempt 1"})
				s.want("lost", s.lost, "[m1]")
				s.want("verdicts", s.verdicts(), "[m1:ack]")
			})
		})
	}
}

// One lost lease does not end the batch that it is in; the loss of all does.
func TestLostLeaseInABatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var seen journal
		lose := 1
		s.hooks.extend = func(_ context.Context, rs []forebay.Receipt, _ time.Duration) ([]error, error) {
			errs := make([]error, len(rs))
			for i := range min(lose, len(rs)) {
				errs[i] = forebay.Errorf(forebay.CodeLeaseLost, "test", "void")
			}
			if len(rs) < 3 {
				lose = 3
			}
			return errs, nil
		}
		s.send(named("m", 3, "")...)
		s.run(worker.Config{Batch: worker.BatchFunc(func(ctx context.Context, ds []forebay.Delivery) []error {
			if ds[0].Deliveries > 1 {
				return nil
			}
			<-ctx.Done()
			seen.add("%d: %v, early: %t", len(ds), context.Cause(ctx), s.since() < 15*time.Second)
			return nil
		})})
		pass(5 * time.Minute)
		s.finish()
		s.want("lost", len(s.lost), 3)
		s.want("completed", s.stats().Completed, 3)
		s.want("seen", seen.all(), fmt.Sprintf("[3: %v, early: false]", forebay.ErrLeaseLost))
	})
}

// What is at hand but not begun is dropped when its lease is lost.
func TestLostLeaseBeforeTheHandler(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var seen journal
		const second = forebay.Receipt("r2") // of a2
		s.hooks.extend = func(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
			errs, err := s.model.Extend(ctx, rs, lease)
			for i, r := range rs {
				if r == second {
					errs[i] = forebay.Errorf(forebay.CodeLeaseLost, "test", "void")
				}
			}
			return errs, err
		}
		s.send(named("a", 3, "A")...)
		s.run(worker.Config{Concurrency: 3, Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			seen.add("%s/%d", d.ID, d.Deliveries)
			if d.ID == "a1" {
				<-time.After(20 * time.Second)
			}
			return nil
		})})
		pass(5 * time.Minute)
		s.finish()
		s.want("lost", s.lost, "[a2]")
		s.want("seen", seen.all(), "[a1/1 a2/2 a3/1]") // a3 was given back
	})
}

func TestSettlingIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outage time.Duration
		whole  bool // the call fails, not its items
		runs   int
	}{
		"a short while":              {5 * time.Second, true, 1},
		"item by item":               {5 * time.Second, false, 1},
		"longer than the lease":      {5 * time.Minute, true, 1}, // the leases are renewed meanwhile
		"item by item, for too long": {5 * time.Minute, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				var runs journal
				s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
					if s.since() > c.outage {
						return s.model.Settle(ctx, ss)
					}
					full := forebay.Errorf(forebay.CodeFull, "test", "no room")
					if c.whole {
						return nil, full
					}
					return slices.Repeat([]error{full}, len(ss)), nil
				}
				s.send(named("m", 3, "")...)
				s.run(worker.Config{Handler: worker.HandlerFunc(func(context.Context, forebay.Delivery) error {
					runs.add("run")
					return nil
				})})
				pass(time.Hour)
				s.finish()
				s.want("completed", s.stats().Completed, 3)
				if c.runs > 0 {
					s.want("runs", len(runs.all()), 3*c.runs)
					s.want("failed", s.failed, "[]")
				}
				s.want("every delivery ends once", len(s.outcomes)+len(s.lost)+len(s.failed), len(runs.all()))
			})
		})
	}
}

// The settler calls at once when idle, and gathers while a call is under way.
func TestSettlingGathers(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var calls []int
		s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
			calls = append(calls, len(ss))
			<-time.After(time.Second)
			return s.model.Settle(ctx, ss)
		}
		s.send(named("m", 9, "")...)
		s.run(worker.Config{Concurrency: 9, Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			if d.ID != "m1" {
				<-time.After(time.Second / 2)
			}
			return nil
		})})
		pass(time.Minute)
		s.finish()
		s.want("calls", calls, "[1 8]")
		s.want("completed", s.stats().Completed, 9)
	})
}

// No lease is extended by a call that overlaps the settling of its delivery.
func TestNoRenewalDuringSettling(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var mu sync.Mutex
		extending, settling := make(map[forebay.Receipt]bool), make(map[forebay.Receipt]bool)
		overlaps := 0
		mark := func(own, other map[forebay.Receipt]bool, r forebay.Receipt, on bool) {
			mu.Lock()
			defer mu.Unlock()
			own[r] = on
			if on && other[r] {
				overlaps++
			}
		}
		s.hooks.extend = func(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
			for _, r := range rs {
				mark(extending, settling, r, true)
				defer mark(extending, settling, r, false)
			}
			<-time.After(70 * time.Millisecond)
			return s.model.Extend(ctx, rs, lease)
		}
		s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
			for _, one := range ss {
				mark(settling, extending, one.Receipt, true)
				defer mark(settling, extending, one.Receipt, false)
			}
			<-time.After(50 * time.Millisecond)
			return s.model.Settle(ctx, ss)
		}
		s.send(named("m", 300, "")...)
		s.run(worker.Config{Concurrency: 7, Lease: time.Second, Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			<-time.After(time.Duration(len(d.ID)*37%11) * 60 * time.Millisecond)
			if d.Attempt == 1 && d.ID[len(d.ID)-1] == '3' {
				return errors.New("again")
			}
			return nil
		})})
		pass(10 * time.Minute)
		s.finish()
		s.want("completed", s.stats().Completed, 300)
		s.want("overlaps", overlaps, 0)
		s.want("lost", len(s.lost), 0)
	})
}

// Where settling does not keep up, receiving waits: what is at hand is bounded.
func TestSettlingHoldsReceivingBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg        worker.Config
		sent, most int
	}{
		"single": {worker.Config{Concurrency: 4, Handler: pausing(0)}, 1200, 1100},
		"batch": {worker.Config{BatchMax: 20, Batch: worker.BatchFunc(func(context.Context, []forebay.Delivery) []error {
			return nil
		})}, 200, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(s *stand) {
				open := make(chan struct{})
				s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
					<-open
					return s.model.Settle(ctx, ss)
				}
				s.send(named("m", c.sent, "")...)
				s.run(c.cfg)
				pass(time.Second)
				if n := int(s.stats().Active); n < 20 || n > c.most {
					t.Errorf("%d at hand", n)
				}
				close(open)
				pass(time.Second)
				s.want("completed", s.stats().Completed, c.sent)
				s.finish()
			})
		})
	}
}
