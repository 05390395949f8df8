package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// The suite is judged here: engines that are broken in one way each must fail the
// case that is about it.

// wrapper breaks an engine where a func is set.
type wrapper struct {
	engine.Engine
	send    func(in engine.Engine, ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error)
	receive func(in engine.Engine, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error)
	settle  func(in engine.Engine, ctx context.Context, ss []forebay.Settlement) ([]error, error)
	extend  func(in engine.Engine, ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error)
	stats   func(s *forebay.QueueStats)
}

func (w *wrapper) Unwrap() engine.Engine { return w.Engine }

func (w *wrapper) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if w.send == nil {
		return w.Engine.Send(ctx, msgs)
	}
	return w.send(w.Engine, ctx, slices.Clone(msgs))
}

func (w *wrapper) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if w.receive == nil {
		return w.Engine.Receive(ctx, r)
	}
	return w.receive(w.Engine, ctx, r)
}

func (w *wrapper) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	if w.settle == nil {
		return w.Engine.Settle(ctx, ss)
	}
	return w.settle(w.Engine, ctx, slices.Clone(ss))
}

func (w *wrapper) Extend(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
	if w.extend == nil {
		return w.Engine.Extend(ctx, rs, lease)
	}
	return w.extend(w.Engine, ctx, rs, lease)
}

func (w *wrapper) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	qs, err := w.Engine.Stats(ctx, queues...)
	if w.stats != nil {
		for i := range qs {
			w.stats(&qs[i])
		}
	}
	return qs, err
}

// alters gives an engine that changes messages on their way in.
func alters(change func(m *forebay.Message)) func() *wrapper {
	return func() *wrapper {
		return &wrapper{send: func(in engine.Engine, ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
			for i := range msgs {
				change(&msgs[i])
			}
			return in.Send(ctx, msgs)
		}}
	}
}

// settles gives an engine that changes settlements on their way in.
func settles(change func(s *forebay.Settlement)) func() *wrapper {
	return func() *wrapper {
		return &wrapper{settle: func(in engine.Engine, ctx context.Context, ss []forebay.Settlement) ([]error, error) {
			for i := range ss {
				change(&ss[i])
			}
			return in.Settle(ctx, ss)
		}}
	}
}

// delivers gives an engine that changes batches on their way out.
func delivers(change func(ds []forebay.Delivery) []forebay.Delivery) func() *wrapper {
	return func() *wrapper {
		return &wrapper{receive: func(in engine.Engine, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			ds, err := in.Receive(ctx, r)
			return change(ds), err
		}}
	}
}

// counted gives an engine that lies in its counts.
func counted(change func(s *forebay.QueueStats)) func() *wrapper {
	return func() *wrapper { return &wrapper{stats: change} }
}

// results gives an engine that lies in the results of a send.
func results(change func(res []forebay.SendResult)) func() *wrapper {
	return func() *wrapper {
		return &wrapper{send: func(in engine.Engine, ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
			res, err := in.Send(ctx, msgs)
			change(res)
			return res, err
		}}
	}
}

// asked gives an engine that changes what Receive asks for.
func asked(change func(r *engine.Receive)) func() *wrapper {
	return func() *wrapper {
		return &wrapper{receive: func(in engine.Engine, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			change(&r)
			return in.Receive(ctx, r)
		}}
	}
}

// drops loses every tenth message, and says that it is stored.
func drops() *wrapper {
	var mu sync.Mutex
	n := 0
	return &wrapper{send: func(in engine.Engine, ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
		mu.Lock()
		defer mu.Unlock()
		res := make([]forebay.SendResult, len(msgs))
		for i, m := range msgs {
			if n++; n%10 == 0 {
				res[i] = forebay.SendResult{ID: m.ID}
				continue
			}
			one, err := in.Send(ctx, []forebay.Message{m})
			if err != nil {
				return nil, err
			}
			res[i] = one[0]
		}
		return res, nil
	}}
}

// chargesRelease counts hand-outs that were given back.
func chargesRelease() *wrapper {
	var mu sync.Mutex
	owner, extra := make(map[forebay.Receipt]string), make(map[string]int)
	return &wrapper{
		receive: func(in engine.Engine, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			ds, err := in.Receive(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			for i := range ds {
				owner[ds[i].Receipt] = ds[i].ID
				ds[i].Deliveries += extra[ds[i].ID]
			}
			return ds, err
		},
		settle: func(in engine.Engine, ctx context.Context, ss []forebay.Settlement) ([]error, error) {
			mu.Lock()
			for _, s := range ss {
				if s.Verdict == forebay.Release {
					extra[owner[s.Receipt]]++
				}
			}
			mu.Unlock()
			return in.Settle(ctx, ss)
		},
	}
}

// unfenced lets an old receipt of a message stand for its newest.
func unfenced() *wrapper {
	var mu sync.Mutex
	owner, newest := make(map[forebay.Receipt]string), make(map[string]forebay.Receipt)
	current := func(r forebay.Receipt) forebay.Receipt {
		mu.Lock()
		defer mu.Unlock()
		if id, ok := owner[r]; ok {
			return newest[id]
		}
		return r
	}
	return &wrapper{
		receive: func(in engine.Engine, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			ds, err := in.Receive(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			for _, d := range ds {
				owner[d.Receipt], newest[d.ID] = d.ID, d.Receipt
			}
			return ds, err
		},
		settle: func(in engine.Engine, ctx context.Context, ss []forebay.Settlement) ([]error, error) {
			for i := range ss {
				ss[i].Receipt = current(ss[i].Receipt)
			}
			return in.Settle(ctx, ss)
		},
	}
}

// spoils fails a whole settle for one bad item.
func spoils() *wrapper {
	return &wrapper{settle: func(in engine.Engine, ctx context.Context, ss []forebay.Settlement) ([]error, error) {
		errs, err := in.Settle(ctx, ss)
		return errs, errors.Join(append(errs, err)...)
	}}
}

// nextFirst sends what follows whether or not the receipt holds.
func nextFirst() *wrapper {
	return &wrapper{settle: func(in engine.Engine, ctx context.Context, ss []forebay.Settlement) ([]error, error) {
		for i := range ss {
			if _, err := in.Send(ctx, ss[i].Next); err != nil {
				return nil, err
			}
			ss[i].Next = nil
		}
		return in.Settle(ctx, ss)
	}}
}

// polls finds what is new only when it looks, every half second.
func polls() *wrapper {
	return &wrapper{receive: func(in engine.Engine, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
		end := time.Now().Add(r.Wait)
		for r.Wait = 0; ; {
			ds, err := in.Receive(ctx, r)
			if err != nil || len(ds) > 0 || !time.Now().Before(end) {
				return ds, err
			}
			if err := wait(ctx, 300*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}}
}

// leaks keeps a message leased for a receiver whose context had ended.
func leaks() *wrapper {
	return &wrapper{receive: func(in engine.Engine, ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
		ds, err := in.Receive(context.WithoutCancel(ctx), r)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return ds, err
	}}
}

var faults = []struct {
	name  string
	wrap  func() *wrapper
	fails string // the case that must fail
}{
	{"drops a message", drops, "send/side by side"},
	{"drops a message, big batch", drops, "payload/many sizes in one batch"},
	{"does not fence", unfenced, "lease/a late receipt changes nothing"},
	{"forgets dedup keys", alters(func(m *forebay.Message) { m.DedupKey = "" }), "dedup/by key"},
	{"forgets the window", alters(func(m *forebay.Message) { m.DedupWindow = 0 }), "dedup/the window passes"},
	{"keeps no window", alters(func(m *forebay.Message) { m.DedupWindow = 1 }), "dedup/by id while active and after ack"},
	{"hides conflicts", results(func(res []forebay.SendResult) {
		for i := range res {
			res[i].Conflict = false
		}
	}), "dedup/another payload is a conflict"},
	{"hides duplicates", results(func(res []forebay.SendResult) {
		for i := range res {
			res[i].Duplicate = false
		}
	}), "dedup/side by side"},
	{"answers in another order", results(func(res []forebay.SendResult) { slices.Reverse(res) }), "send/answers in the order of input"},
	{"breaks group order", alters(func(m *forebay.Message) { m.Group = "" }), "group/later ones wait for a retry"},
	{"mixes a batch", delivers(func(ds []forebay.Delivery) []forebay.Delivery {
		slices.Reverse(ds)
		return ds
	}), "group/a released tail comes again in order"},
	{"forgets priority", alters(func(m *forebay.Message) { m.Priority = 0 }), "priority/lower level first, then age"},
	{"has no ageing", alters(func(m *forebay.Message) {
		if m.Priority.Level() == 9 {
			m.NotBefore = time.Now().Add(time.Hour)
		}
	}), "priority/waiting outweighs it in the end"},
	{"forgets limit keys", alters(func(m *forebay.Message) { m.LimitKey = "" }), "limit/most active of a key"},
	{"ignores not-before", alters(func(m *forebay.Message) { m.NotBefore = time.Time{} }), "receive/not before its time"},
	{"loses headers", alters(func(m *forebay.Message) { m.Headers = nil }), "payload/all fields of a message"},
	{"cuts payloads", alters(func(m *forebay.Message) { m.Payload = []byte(strings.TrimRight(string(m.Payload), "\x00")) }), "payload/every byte"},
	{"loses Next", settles(func(s *forebay.Settlement) { s.Next = nil }), "next/appears with the verdict"},
	{"sends Next for a void receipt", nextFirst, "next/not when the receipt is refused"},
	{"sends Next apart from the verdict", nextFirst, "next/not when one is invalid, nor the verdict"},
	{"acks come back", settles(func(s *forebay.Settlement) {
		if s.Verdict == forebay.Ack {
			s.Verdict = forebay.Release
		}
	}), "settle/ack"},
	{"ignores the retry delay", settles(func(s *forebay.Settlement) { s.After = 0 }), "settle/retry waits"},
	{"charges a release", settles(func(s *forebay.Settlement) {
		if s.Verdict == forebay.Release {
			s.Verdict = forebay.Retry
		}
	}), "settle/release charges nothing"},
	{"charges the hand-out of a release", chargesRelease, "settle/release charges nothing"},
	{"loses causes", settles(func(s *forebay.Settlement) { s.Cause = forebay.Cause{} }), "dead/kept with its cause"},
	{"drops the dead", settles(func(s *forebay.Settlement) {
		if s.Verdict == forebay.Dead {
			s.Verdict = forebay.Ack
		}
	}), "dead/stays"},
	{"one bad item spoils the batch", spoils, "settle/a bad item does not spoil the batch"},
	{"loses the delivery count", delivers(func(ds []forebay.Delivery) []forebay.Delivery {
		for i := range ds {
			ds[i].Deliveries = 1
		}
		return ds
	}), "lease/runs out and costs no attempt"},
	{"loses leased messages", asked(func(r *engine.Receive) { r.Lease = engine.MaxLease }), "lease/all of a batch end by themselves"},
	{"gives more than max", asked(func(r *engine.Receive) { r.Max++ }), "receive/oldest first, at most max"},
	{"does not wait", asked(func(r *engine.Receive) { r.Wait = 0 }), "receive/the wait runs out"},
	{"polls", polls, "receive/a send wakes it"},
	{"leases to who has left", leaks, "receive/the context ends"},
	{"ignores extend", func() *wrapper {
		return &wrapper{extend: func(_ engine.Engine, _ context.Context, rs []forebay.Receipt, _ time.Duration) ([]error, error) {
			return make([]error, len(rs)), nil
		}}
	}, "lease/extended"},
	{"counts wrong", counted(func(s *forebay.QueueStats) { s.Active = 0 }), "stats/follow what happens"},
	{"does not know the oldest", counted(func(s *forebay.QueueStats) { s.Oldest = time.Time{} }), "stats/oldest is the oldest that waits"},
}

func TestSuiteCatches(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := Harness{Unit: time.Second, Open: func(testing.TB) engine.Engine {
				w := f.wrap()
				w.Engine = NewModel()
				return w
			}}
			mustFail(t, h, f.fails)
		})
	}
}

// stores are broken in what they keep over a restart.
var stores = []struct {
	name   string
	reopen func(m *Model)
	fails  string
}{
	{"loses all", func(m *Model) { m.o.entries = nil }, "reopen/nothing is lost"},
	{"loses one", func(m *Model) { m.o.entries = m.o.entries[min(1, len(m.o.entries)):] }, "reopen/nothing is lost"},
	{"keeps leases", func(m *Model) {
		for _, e := range m.o.entries {
			if e.deliveries > 0 {
				e.receipt, e.until = "old", time.Now().Add(time.Minute)
			}
		}
	}, "reopen/leases are freed, deliveries counted"},
	{"forgets deliveries", func(m *Model) {
		for _, e := range m.o.entries {
			e.deliveries = 0
		}
	}, "reopen/leases are freed, deliveries counted"},
	{"gives old receipts again", func(m *Model) { m.receipt = 0 }, "reopen/old receipts are void"},
	{"forgets failures", func(m *Model) {
		for _, e := range m.o.entries {
			e.attempts, e.failures = 0, nil
		}
	}, "reopen/failures are kept"},
	{"forgets delays", func(m *Model) {
		for _, e := range m.o.entries {
			e.due = time.Time{}
		}
	}, "reopen/what is delayed stays delayed"},
	{"forgets dedup", func(m *Model) { clear(m.o.records) }, "reopen/duplicates are still known"},
	{"loses dead letters", func(m *Model) { m.o.letters = nil }, "reopen/dead letters are kept"},
	{"mixes groups", func(m *Model) {
		for _, e := range m.o.entries {
			e.seq = -e.seq
		}
	}, "reopen/groups keep their order"},
	{"forgets limits", func(m *Model) { clear(m.o.limits) }, "reopen/limits are kept"},
}

func TestSuiteCatchesBrokenStores(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := Harness{
				Unit: time.Second,
				Open: func(testing.TB) engine.Engine { return NewModel() },
				Reopen: func(_ testing.TB, e engine.Engine) engine.Engine {
					m := e.(*Model).Reopen()
					s.reopen(m)
					return m
				},
			}
			mustFail(t, h, s.fails)
		})
	}
}

// TestModelTestCatches plays random steps on broken engines: some seed of ten must
// catch each.
func TestModelTestCatches(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range faults {
		// These are not about what random steps look at.
		if slices.Contains([]string{
			"forgets the window", "forgets priority", "has no ageing", "loses headers", "cuts payloads", "polls", "leases to who has left",
			"does not wait", "does not know the oldest", "hides conflicts", "one bad item spoils the batch", "sends Next apart from the verdict",
		}, f.name) {
			continue
		}
		seen[f.name] = true
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			h := Harness{Unit: time.Second, Open: func(testing.TB) engine.Engine {
				w := f.wrap()
				w.Engine = NewModel()
				return w
			}}
			for seed := range uint64(10) {
				if err := h.play(t, randomSteps(seed, modelSteps)); err != nil {
					return
				}
			}
			t.Error("the model test saw nothing")
		})
	}
	t.Log(slices.Sorted(maps.Keys(seen)))
}

// recorder is a testing.TB that keeps failures to itself.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, s)
}

func (r *recorder) Helper()                           {}
func (r *recorder) Error(args ...any)                 { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.note(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.note(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// mustFail runs one case on a broken engine and wants it to fail.
func mustFail(t *testing.T, h Harness, name string) {
	t.Helper()
	i := slices.IndexFunc(cases(), func(c testCase) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no case %q", name)
	}
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		var wg sync.WaitGroup
		wg.Go(func() { runCase(r, h, cases()[i]) })
		wg.Wait()
		if len(r.failures) == 0 {
			t.Fatalf("case %q did not catch it", name)
		}
		t.Log(r.failures[0])
	})
}
