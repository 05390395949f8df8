package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	}})
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

// far is a remote engine that can go away, and that keeps no dead letters.
type far struct {
	engine.Engine
	mu   sync.Mutex
	mode string // hangs, refuses, items, or empty: it is there
}

func (f *far) set(mode string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode = mode
}

func (f *far) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	f.mu.Lock()
	mode := f.mode
	f.mu.Unlock()
	away := forebay.Errorf(forebay.CodeUnavailable, "far", "away")
	switch mode {
	case "hangs":
		<-ctx.Done()
		return nil, ctx.Err()
	case "refuses":
		return nil, away
	case "items":
		res := make([]forebay.SendResult, len(msgs))
		for i := range res {
			res[i].Err = forebay.Errorf(forebay.CodeLimited, "far", "slowly")
		}
		return res, nil
	}
	msgs = slices.Clone(msgs)
	for i := range msgs {
		msgs[i].DedupWindow = time.Millisecond // it joins messages no longer than they are there
	}
	return f.Engine.Send(ctx, msgs)
}

func (f *far) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	ds, err := f.Engine.Receive(ctx, r)
	for i := range ds {
		ds[i].DedupWindow = 0 // as it was sent
	}
	return ds, err
}

// Settle has no place for dead letters.
func (f *far) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	var pass []forebay.Settlement
	errs := make([]error, len(ss))
	var at []int
	for i, s := range ss {
		if s.Verdict == forebay.Dead {
			errs[i] = forebay.Errorf(forebay.CodeUnsupported, "far", "no dead letters")
			continue
		}
		pass, at = append(pass, s), append(at, i)
	}
	got, err := f.Engine.Settle(ctx, pass)
	for n, i := range at {
		errs[i] = got[n]
	}
	return errs, err
}

// stand is an outbox that runs, in a bubble.
type stand struct {
	*testing.T
	far   *far
	local *enginetest.Model
	box   *outbox.Engine
	stop  func()
}

// hidden hides the abilities of an engine.
type hidden struct{ engine.Engine }

func newStand(t *testing.T, local *enginetest.Model, cfg outbox.Config) *stand {
	t.Helper()
	s := &stand{T: t, far: &far{Engine: hidden{enginetest.NewModel()}}, local: local}
	var err error
	if s.box, err = outbox.New(s.far, local, cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.box.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *stand) send(msgs ...forebay.Message) []forebay.SendResult {
	s.Helper()
	res, err := s.box.Send(s.Context(), msgs)
	if err != nil {
		s.Fatalf("send: %v", err)
	}
	return res
}

func (s *stand) sent(msgs ...forebay.Message) {
	s.Helper()
	for i, r := range s.send(msgs...) {
		if r.Err != nil {
			s.Fatalf("send of %q: %v", msgs[i].ID, r.Err)
		}
	}
}

// arrive wants these at the remote engine, in this order.
func (s *stand) arrive(ids ...string) {
	s.Helper()
	var got []string
	for {
		ds, err := s.box.Receive(s.Context(), engine.Receive{Queue: "q", Max: 100})
		if err != nil {
			s.Fatal(err)
		}
		if len(ds) == 0 {
			break
		}
		var ss []forebay.Settlement
		for _, d := range ds {
			got = append(got, d.ID)
			ss = append(ss, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack})
		}
		if _, err := s.box.Settle(s.Context(), ss); err != nil {
			s.Fatal(err)
		}
	}
	if !slices.Equal(got, ids) {
		s.Fatalf("%v arrived, want %v", got, ids)
	}
}

func (s *stand) waits(n int64) {
	s.Helper()
	qs, bytes := s.box.Backlog()
	if len(qs) != 1 || qs[0].Messages != n || n == 0 && bytes != 0 {
		s.Fatalf("the backlog is %+v of %d bytes, want %d messages", qs, bytes, n)
	}
}

func msg(id string) forebay.Message {
	return forebay.Message{ID: id, Queue: "q", Kind: "k", Payload: []byte("payload of " + id), Group: "g"}
}

func TestOutage(t *testing.T) {
	for _, mode := range []string{"hangs", "refuses", "items"} {
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
		s.far.set("")
		time.Sleep(time.Minute)
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

func TestDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, enginetest.NewModel(), outbox.Config{})
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

// What the remote engine refuses for good ends here, and holds up nothing.
func TestRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, enginetest.NewModel(), outbox.Config{})
		s.far.set("refuses")
		bad := msg("bad")
		s.sent(msg("a"), bad, msg("b"))
		s.far.Engine = picky{s.far.Engine}
		s.far.set("")
		time.Sleep(time.Minute)
		s.arrive("a", "b")
		dead, err := s.box.Dead(t.Context(), engine.DeadQuery{})
		if err != nil || len(dead) != 1 || dead[0].Message.ID != "bad" || dead[0].Cause.Code != "outbox" {
			t.Fatalf("dead letters are %+v, %v", dead, err)
		}
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
