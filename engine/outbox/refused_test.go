package outbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/outbox"
)

// What the remote engine refuses for good ends here as a dead letter of its queue, and
// holds up nothing; it can be replayed, discarded, and refused again.
func TestRefusedForGood(t *testing.T) {
	for name, cfg := range map[string]outbox.Config{"dead-outbox-q": {}, "q": {Own: []string{"q"}}} {
		t.Run(name, func(t *testing.T) {
			refusedForGood(t, cfg, name)
		})
	}
}

func refusedForGood(t *testing.T, cfg outbox.Config, local string) {
	synctest.Test(t, func(t *testing.T) {
		model := enginetest.NewModel()
		s := newStand(t, model, cfg)
		defer s.stop()
		dead := func() []forebay.DeadLetter {
			t.Helper()
			of, err := s.box.Dead(t.Context(), engine.DeadQuery{Queue: "q"})
			own, lerr := model.Dead(t.Context(), engine.DeadQuery{Queue: local})
			all, aerr := model.Dead(t.Context(), engine.DeadQuery{})
			if err := errors.Join(err, lerr, aerr); err != nil || len(own) != len(of) || len(all) != len(of) {
				t.Fatalf("dead letters are %+v; the local engine has %+v of its queue, in all %+v; %v", of, own, all, err)
			}
			return of
		}
		picks := &choosy{Engine: s.far.Engine}
		s.far.set("refuses")
		s.sent(msg("a"), msg("bad"), msg("b"))
		s.far.Engine = picks
		s.far.set("")
		time.Sleep(time.Minute)
		s.arrive("a", "b")
		s.waits(0)
		for range 2 {
			letters := dead()
			if len(letters) != 1 || letters[0].Message.ID != "bad" || letters[0].Cause.Code != "outbox" || letters[0].Message.Queue != "q" ||
				string(letters[0].Message.Payload) != "payload of bad" {
				t.Fatalf("dead letters are %+v", letters)
			}
			if errs, err := s.box.Replay(t.Context(), []int64{letters[0].Seq}); err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
			time.Sleep(time.Minute) // it is refused again
		}
		picks.takesAll.Store(true)
		if errs, err := s.box.Replay(t.Context(), []int64{dead()[0].Seq}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		time.Sleep(time.Minute)
		s.arrive("bad")
		if left := dead(); len(left) != 0 {
			t.Errorf("dead letters are %+v after the replay", left)
		}
		s.waits(0)
	})
}

// choosy refuses what is bad, until it takes all.
type choosy struct {
	engine.Engine
	takesAll atomic.Bool
}

func (c *choosy) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if c.takesAll.Load() {
		return c.Engine.Send(ctx, msgs)
	}
	return picky{c.Engine}.Send(ctx, msgs)
}

// What waits since an older version is remembered here for longer than it waits: another
// message of its id would be dropped, so it dies where it is.
func TestRefusedOfAnOlderVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := enginetest.NewModel()
		m := msg("bad")
		m.Queue, m.DedupWindow = "outbox-q", time.Hour
		s := newStand(t, model, outbox.Config{Own: []string{"q"}})
		defer s.stop()
		s.far.Engine = picky{s.far.Engine}
		if _, err := model.Send(t.Context(), []forebay.Message{m}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.waits(0)
		if dead, err := s.box.Dead(t.Context(), engine.DeadQuery{Queue: "q"}); err != nil || len(dead) != 1 || dead[0].Message.ID != "bad" {
			t.Errorf("dead letters are %+v, %v", dead, err)
		}
	})
}

// What waited here, went to the remote engine and came back to die becomes a dead letter too, and does not go round for
// as long as the local engine remembers that it was here.
func TestDiesWhereItHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, enginetest.NewModel(), outbox.Config{})
		s.far.set("refuses")
		s.sent(msg("a"), msg("b"))
		s.far.set("")
		time.Sleep(time.Minute) // forwarded
		ds, err := s.box.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1})
		if err != nil || len(ds) != 1 || ds[0].ID != "a" {
			t.Fatalf("received %v, %v", ds, err)
		}
		errs, err := s.box.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Dead, Cause: forebay.Cause{Code: "sink"}}})
		if err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		dead, err := s.box.Dead(t.Context(), engine.DeadQuery{Queue: "q"})
		if err != nil || len(dead) != 1 || dead[0].Message.ID != "a" || dead[0].Cause.Code != "sink" {
			t.Fatalf("dead letters are %+v, %v", dead, err)
		}
		time.Sleep(time.Hour)
		s.arrive("b")
	})
}
