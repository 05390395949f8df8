package move_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/move"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// watched is a target that tells what would change it.
type watched struct {
	*redis.Engine
	t *testing.T
}

func (w watched) Receive(context.Context, engine.Receive) ([]forebay.Delivery, error) {
	w.t.Error("jobs are taken in the target")
	return nil, errCut
}

func (w watched) Settle(context.Context, []forebay.Settlement) ([]error, error) {
	w.t.Error("jobs are settled in the target")
	return nil, errCut
}

func (w watched) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	rs, err := w.Engine.Send(ctx, msgs)
	for i := range rs {
		if !rs[i].Duplicate {
			w.t.Errorf("%s is sent to the target", msgs[i].ID)
		}
	}
	return rs, err
}

func (w watched) SetLimits(ctx context.Context, queue string, l engine.QueueLimits) error {
	w.t.Errorf("limits of %s are set", queue)
	return w.Engine.SetLimits(ctx, queue, l)
}

// look tells how each job of an engine is.
func look(t *testing.T, e engine.JobLister) map[string]string {
	t.Helper()
	all := map[string]string{}
	for after := ""; ; {
		page, err := e.Jobs(t.Context(), engine.JobQuery{After: after, Limit: engine.MaxJobs})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page.Jobs {
			all[j.ID] = fmt.Sprint(j.State, j.Cause.Code, j.Cause.Message, j.FinishedAt.UnixMilli(), j.Attempts)
		}
		if after = page.Next; after == "" {
			return all
		}
	}
}

func moving(from move.Source, to move.Store) move.Config {
	return move.Config{From: from, To: to, Name: "Redis", Stays: stays, StaysDocument: none}
}

// A move that is done again, when the target works already, changes nothing there: not what
// waits, not what runs or has run, not a dead letter that was replayed, and no limit.
func TestMoveTwice(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := source(t), target(t)
	first, err := move.Move(ctx, moving(from, to))
	if err != nil || first.Moved != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	ds, err := to.Receive(ctx, engine.Receive{Queue: "mail", Max: 2, Lease: time.Minute})
	if err != nil || len(ds) != 2 {
		t.Fatal(ds, err)
	}
	_, err = to.Settle(ctx, []forebay.Settlement{{Receipt: ds[0].Receipt, Queue: "mail", Verdict: forebay.Ack, Result: []byte("1")}})
	letters, derr := to.Dead(ctx, engine.DeadQuery{Queue: "mail"})
	if derr != nil || len(letters) != 2 {
		t.Fatal(letters, derr)
	}
	_, rerr := to.Replay(ctx, []int64{letters[0].Seq, letters[1].Seq})
	if err := errors.Join(err, rerr, to.SetLimits(ctx, "reports", engine.QueueLimits{Active: 9})); err != nil {
		t.Fatal(err)
	}
	before, here := look(t, to), look(t, from)
	done, err := move.Move(ctx, moving(from, watched{to, t}))
	if err != nil || done.Moved != 609 || len(done.Jobs) != 0 || done.Checked != 610 {
		t.Errorf("%+v, %v", done, err)
	}
	if after := look(t, to); !maps.Equal(before, after) {
		t.Errorf("the target has changed: wait-1 was %s, is %s; ended-1 was %s, is %s", before["wait-1"], after["wait-1"], before["ended-1"], after["ended-1"])
	}
	if !maps.Equal(here, look(t, from)) {
		t.Error("the source has changed")
	}
	if l, err := to.QueueLimits(ctx, "reports"); err != nil || l.Active != 9 || l.Paused {
		t.Errorf("%+v, %v", l, err)
	}
	c := moving(from, watched{to, t})
	c.Name = "another name"
	if _, err := move.Move(ctx, c); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("the same target under another name: %v", err)
	}
	if after := look(t, to); !maps.Equal(before, after) {
		t.Error("the target has changed by a move under another name")
	}
	empty := target(t)
	if _, err := move.Move(ctx, moving(from, empty)); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("a target that lacks what was moved: %v", err)
	}
	if after := look(t, empty); len(after) > 0 {
		t.Errorf("the empty target has %v", after)
	}
}

// halfClosed is a source whose process ends while it cancels what was moved.
type halfClosed struct{ *sqlite.Engine }

func (h halfClosed) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	rs, err := h.Engine.Cancel(ctx, ids[:len(ids)/2], reason)
	return rs, errors.Join(err, errCut)
}

// A move that was cut off while it closed goes on with closing, and changes nothing in the target.
func TestMoveAfterHalfAClose(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := source(t), target(t)
	if _, err := move.Move(ctx, moving(halfClosed{from}, to)); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	before := look(t, to)
	done, err := move.Move(ctx, moving(from, watched{to, t}))
	if err != nil || done.Moved != 8+300 || done.Jobs[forebay.StateWaiting]+done.Jobs[forebay.StateDelayed] != 301 || done.Checked != 610 {
		t.Errorf("%+v, %v", done, err)
	}
	if after := look(t, to); !maps.Equal(before, after) {
		t.Errorf("the target has changed: wait-1 was %s, is %s", before["wait-1"], after["wait-1"])
	}
	for id, how := range look(t, from) {
		if id[:4] == "wait" && how[:9] != "cancelled" {
			t.Fatalf("%s in the source is %s", id, how)
		}
	}
	checkTarget(t, to)
}
