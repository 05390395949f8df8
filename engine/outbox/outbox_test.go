package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/outbox"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// A remote engine that is there: nothing of the contract is lost on the way.
func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{Open: func(t testing.TB) engine.Engine {
		local := mustOpen(t)
		e, err := outbox.New(mustOpen(t), local, outbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return both{e, local}
	}, Only: []string{"send", "dedup", "receive", "lease", "settle", "next", "group", "priority", "stats", "purge", "close", "dead", "replay", "wake", "payload"}})
}

// both closes the local engine too.
type both struct {
	*outbox.Engine
	local engine.Engine
}

func (b both) Unwrap() engine.Engine { return b.Engine }

func (b both) Close() error {
	return errors.Join(b.Engine.Close(), b.local.Close())
}

func mustOpen(t testing.TB) engine.Engine {
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOutage(t *testing.T) {
	for _, mode := range []string{"hangs", "refuses", "has no such queue", "items"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStand(t, enginetest.NewModel(), outbox.Config{})
				s.sent(msg("before"))
				s.far.set(mode)
				var want []string
				for i := range 50 {
					begin := time.Now()
					s.sent(msg(fmt.Sprint("m", i)))
					want = append(want, fmt.Sprint("m", i))
					if took := time.Since(begin); i > 0 && took > 0 || took > 2*time.Second {
						t.Fatalf("send %d took %v while the remote engine %s", i, took, mode)
					}
				}
				time.Sleep(time.Hour)
				s.arrive("before")
				s.waits(50)
				s.far.set("")
				s.sent(msg("after")) // must not overtake
				time.Sleep(time.Minute)
				s.arrive(append(want, "after")...)
				s.waits(0)
				s.sent(msg("direct"))
				s.arrive("direct")
			})
		})
	}
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, enginetest.NewModel(), outbox.Config{Budget: 1000})
		s.far.set("refuses")
		if err := s.box.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kept []string
		full := 0
		for i := range 20 {
			id := fmt.Sprint("m", i)
			switch r := s.send(msg(id))[0]; forebay.CodeOf(r.Err) {
			case "":
				kept = append(kept, id)
			case forebay.CodeFull:
				full++
			default:
				t.Fatal(r.Err)
			}
		}
		if full == 0 || len(kept) < 5 {
			t.Fatalf("%d were kept, %d refused", len(kept), full)
		}
		time.Sleep(time.Minute) // forwarding is tried meanwhile
		if err := s.box.Check(t.Context()); forebay.CodeOf(err) != forebay.CodeFull {
			t.Errorf("messages are refused, and readiness tells %v", err)
		}
		s.far.set("")
		time.Sleep(time.Minute)
		if err := s.box.Check(t.Context()); err != nil {
			t.Errorf("there is room again, and readiness tells %v", err)
		}
		s.arrive(kept...)
		s.sent(msg("again"))
		s.arrive("again")
	})
}

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := enginetest.NewModel()
		s := newStand(t, local, outbox.Config{})
		s.far.set("hangs")
		s.sent(msg("a"), msg("b"))
		s.stop()
		next := newStand(t, local.Reopen(), outbox.Config{})
		next.sent(msg("c")) // must not overtake, though this one has sent nothing yet
		time.Sleep(time.Minute)
		next.arrive("a", "b", "c")
	})
}

// A dead letter is told by the name of its queue, replayed, and dies again; where the local
// engine keeps nothing else of the queue, by that name in the local engine too.
func TestDead(t *testing.T) {
	for name, cfg := range map[string]outbox.Config{"dead-outbox-q": {}, "q": {Own: []string{"q"}}} {
		t.Run(name, func(t *testing.T) { deadLetters(t, cfg, name) })
	}
}

func deadLetters(t *testing.T, cfg outbox.Config, local string) {
	synctest.Test(t, func(t *testing.T) {
		model := enginetest.NewModel()
		s := newStand(t, model, cfg)
		kill := func(cause string) {
			t.Helper()
			ds, err := s.box.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1})
			if err != nil || len(ds) != 1 {
				t.Fatalf("received %v, %v", ds, err)
			}
			errs, err := s.box.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Dead, Cause: forebay.Cause{Code: cause}}})
			if err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		for _, cause := range []string{"first", "second"} { // it may die again after a replay
			if cause == "first" {
				s.sent(msg("a"), msg("b"))
			}
			kill(cause)
			time.Sleep(time.Hour)
			dead, err := s.box.Dead(t.Context(), engine.DeadQuery{Queue: "q"})
			if err != nil || len(dead) != 1 || dead[0].Message.ID != "a" || dead[0].Message.Queue != "q" || dead[0].Cause.Code != cause ||
				string(dead[0].Message.Payload) != "payload of a" {
				t.Fatalf("dead letters are %+v, %v", dead, err)
			}
			if own, err := model.Dead(t.Context(), engine.DeadQuery{Queue: local}); err != nil || len(own) != 1 {
				t.Fatalf("of the local engine's %s there are %+v, %v", local, own, err)
			}
			if none, err := s.box.Dead(t.Context(), engine.DeadQuery{Queue: "other"}); err != nil || len(none) != 0 {
				t.Fatalf("dead letters of another queue are %+v, %v", none, err)
			}
			if cause == "first" {
				s.arrive("b")
			}
			if errs, err := s.box.Replay(t.Context(), []int64{dead[0].Seq}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
			time.Sleep(time.Minute)
		}
		s.arrive("a")
		s.waits(0)
	})
}

type picky struct{ engine.Engine }

func (p picky) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	good := slices.DeleteFunc(slices.Clone(msgs), func(m forebay.Message) bool { return m.ID == "bad" })
	got, err := p.Engine.Send(ctx, good)
	if err != nil {
		return nil, err
	}
	res := make([]forebay.SendResult, len(msgs))
	for i, m := range msgs {
		if m.ID == "bad" {
			res[i].Err = forebay.Errorf(forebay.CodeTooLarge, "picky", "too large")
			continue
		}
		res[i], got = got[0], got[1:]
	}
	return res, nil
}
