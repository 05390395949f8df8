package move_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/move"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/internal/redistest"
)

func source(t *testing.T) *sqlite.Engine {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	fill(t, e)
	return e
}

// fill puts in jobs of all states, two with one dedup key, one that has failed, documents,
// and a queue that is paused.
func fill(t *testing.T, e *sqlite.Engine) {
	t.Helper()
	ctx := t.Context()
	var msgs []forebay.Message
	for i := range 8 {
		msgs = append(msgs, forebay.Message{
			ID: fmt.Sprint("ended-", i), Queue: "mail", Kind: "letter", Payload: fmt.Appendf(nil, `{"n":%d}`, i),
			DedupKey: "key", DedupWindow: time.Hour, Headers: map[string]string{"h": "v"}, LimitKey: "k",
			Job: &forebay.JobOptions{Dedup: forebay.DedupUntilFinished, Tenant: "t", Tags: []string{"a", "b"}, Owner: "o", Deadline: time.Now().Add(time.Hour)},
		})
	}
	ends := []forebay.Settlement{
		{Verdict: forebay.Ack, Result: []byte(`{"ok":true}`)}, {Verdict: forebay.Dead, Cause: forebay.Cause{Code: "smtp", Message: "no such user"}},
		{Verdict: forebay.Cancelled, Cause: forebay.Cause{Code: "cancelled", Message: "wrong list"}}, {Verdict: forebay.Expired, Cause: forebay.Cause{Code: "expired"}},
	}
	for i := range msgs {
		one(t, e, msgs[i], ends[i%len(ends)])
	}
	retried := forebay.Message{ID: "retried", Queue: "mail", Kind: "letter", Payload: []byte("1"), Job: &forebay.JobOptions{}}
	one(t, e, retried, forebay.Settlement{Verdict: forebay.Retry, After: time.Hour, Cause: forebay.Cause{Code: "smtp"}})
	var wait []forebay.Message
	for i := range 600 {
		m := forebay.Message{ID: fmt.Sprint("wait-", i), Queue: "mail", Kind: "letter", Group: fmt.Sprint("g", i%3), Payload: fmt.Appendf(nil, "%d", i), Job: &forebay.JobOptions{}}
		if i%10 == 0 {
			m.Group, m.NotBefore = "", time.Now().Add(time.Hour)
		}
		wait = append(wait, m)
	}
	wait = append(wait, forebay.Message{ID: "event", Queue: "events", Kind: "x", Payload: []byte("1")})
	_, err := e.Send(ctx, wait)
	_, derr := e.PutDocument(ctx, engine.Document{Collection: "schedule", Key: "nightly", Value: []byte(`{"cron":"0 3 * * *"}`)})
	if err := errors.Join(err, derr, e.SetLimits(ctx, "reports", engine.QueueLimits{Paused: true, Active: 3})); err != nil {
		t.Fatal(err)
	}
}

func one(t *testing.T, e engine.Engine, m forebay.Message, end forebay.Settlement) {
	t.Helper()
	if _, err := e.Send(t.Context(), []forebay.Message{m}); err != nil {
		t.Fatal(err)
	}
	ds, err := e.Receive(t.Context(), engine.Receive{Queue: m.Queue, Max: 1})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	end.Receipt = ds[0].Receipt
	if errs, err := e.Settle(t.Context(), []forebay.Settlement{end}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
}

func target(t *testing.T) *redis.Engine {
	t.Helper()
	e, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t, redistest.Config{}).URL(0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func stays(queue string) bool { return queue == "events" }

func none(string) bool { return false }

// cut is a target that fails after some sends, as one does whose network is cut.
type cut struct {
	*redis.Engine
	left int
}

var errCut = errors.New("cut")

func (c *cut) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if c.left--; c.left < 0 {
		return nil, errCut
	}
	return c.Engine.Send(ctx, msgs)
}

func (c *cut) Settle(ctx context.Context, s []forebay.Settlement) ([]error, error) {
	if c.left == 0 {
		return nil, errCut // sent, and not settled
	}
	return c.Engine.Settle(ctx, s)
}

// A move that is cut off at each of its steps, also between sending and settling, goes on, and brings all
// jobs over in their states, with their order; then nothing of it waits in the source.
func TestMoveToRedis(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := source(t), target(t)
	c := move.Config{From: from, To: to, Name: "Redis", Stays: stays, StaysDocument: none, Lease: 200 * time.Millisecond}
	for _, left := range []int{0, 1, 1} {
		c.To = &cut{to, left}
		if _, err := move.Move(ctx, c); !errors.Is(err, errCut) {
			t.Fatalf("%d: %v", left, err)
		}
		if j, err := from.Job(ctx, "wait-1"); err != nil || j.State != forebay.StateWaiting {
			t.Fatalf("the source has changed: %+v, %v", j, err)
		}
	}
	c.To = to
	done, err := move.Move(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if done.Jobs[forebay.StateWaiting] != 540 || done.Jobs[forebay.StateDelayed] != 61 || done.Jobs[forebay.StateDead] != 2 ||
		done.Checked != 609+1 || done.Queues != 1 || done.Attempts != 1 || done.Documents != 1 {
		t.Errorf("%+v", done)
	}
	checkTarget(t, to)
	if j, err := from.Job(ctx, "wait-1"); err != nil || j.State != forebay.StateCancelled || j.Cause.Message != "moved to Redis" {
		t.Errorf("in the source: %+v, %v", j, err)
	}
	if ds, err := from.Receive(ctx, engine.Receive{Queue: "events", Max: 1}); err != nil || len(ds) != 1 {
		t.Errorf("the event: %v, %v", ds, err)
	}
}

func checkTarget(t *testing.T, to *redis.Engine) {
	t.Helper()
	ctx := t.Context()
	j, err := to.Job(ctx, "ended-4")
	if err != nil || j.State != forebay.StateCompleted || string(j.Result) != `{"ok":true}` || j.Job.Owner != "o" {
		t.Errorf("%+v, %v", j, err)
	}
	letters, err := to.Dead(ctx, engine.DeadQuery{Queue: "mail"})
	if err != nil || len(letters) != 2 || letters[0].Message.ID != "ended-5" || letters[0].Cause.Code != "smtp" {
		t.Errorf("%+v, %v", letters, err)
	}
	if l, err := to.QueueLimits(ctx, "reports"); err != nil || !l.Paused || l.Active != 3 {
		t.Errorf("%+v, %v", l, err)
	}
	last := map[string]int{}
	for seen := 0; seen < 540; {
		ds, err := to.Receive(ctx, engine.Receive{Queue: "mail", Max: 100, Wait: time.Second})
		if err != nil || len(ds) == 0 {
			t.Fatalf("%d of 540 came: %v", seen, err)
		}
		ss := make([]forebay.Settlement, len(ds))
		for i, d := range ds {
			var n int
			if _, err := fmt.Sscan(string(d.Payload), &n); err != nil || n < last[d.Group] {
				t.Errorf("%s of group %s came after %d, %v", d.Payload, d.Group, last[d.Group], err)
			}
			last[d.Group] = n
			ss[i] = forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
		}
		if _, err := to.Settle(ctx, ss); err != nil {
			t.Fatal(err)
		}
		seen += len(ds)
	}
}

// spoilt is a target that loses a byte of what it keeps.
type spoilt struct{ *redis.Engine }

func (s spoilt) Job(ctx context.Context, id string) (forebay.Job, error) {
	j, err := s.Engine.Job(ctx, id)
	if id == "wait-7" && len(j.Payload) > 0 {
		j.Payload = append([]byte{'x'}, j.Payload[1:]...)
	}
	return j, err
}

// What differs in the target, and a target with work of its own, end the move before the
// source has changed.
func TestMoveThatIsRefused(t *testing.T) {
	t.Parallel()
	from, to := source(t), target(t)
	_, err := move.Move(t.Context(), move.Config{From: from, To: spoilt{to}, Name: "Redis", Stays: stays, StaysDocument: none, Lease: 200 * time.Millisecond})
	if forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("a payload that differs: %v", err)
	}
	other := forebay.Message{ID: "other", Queue: "mail", Kind: "x", Payload: []byte("1"), Job: &forebay.JobOptions{}}
	if _, err := to.Send(t.Context(), []forebay.Message{other}); err != nil {
		t.Fatal(err)
	}
	_, err = move.Move(t.Context(), move.Config{From: from, To: to, Name: "Redis", Stays: stays, StaysDocument: none, Lease: 200 * time.Millisecond})
	if forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("a target with a job of its own: %v", err)
	}
	if j, err := from.Job(t.Context(), "wait-1"); err != nil || j.State != forebay.StateWaiting {
		t.Errorf("the source has changed: %+v, %v", j, err)
	}
}
