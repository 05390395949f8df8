package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/sink"
	sinks "github.com/forebayhq/forebay/sink/sqlite"
	"github.com/forebayhq/forebay/worker"
)

func openBroker(t *testing.T) *broker.Broker {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Age: 24 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// sendEvents sends n events of two types and ten users, and works them off.
func sendEvents(t *testing.T, b *broker.Broker, prefix string, n int) {
	t.Helper()
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		e := event.Event{
			ID: fmt.Sprint(prefix, i), Type: []string{"open", "buy"}[i%2], UserID: fmt.Sprint("user", i%10),
			Payload: []byte(`{}`), ReceivedAt: time.Now(),
		}
		payload, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		msgs[i] = forebay.Message{ID: e.ID, Queue: event.Queue, Kind: e.Type, Payload: payload}
	}
	if _, err := b.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	settleAll(t, b, event.Queue)
}

// settleAll gives the messages of a queue, which it acks.
func settleAll(t *testing.T, b *broker.Broker, queue string) (all []forebay.Delivery) {
	t.Helper()
	for {
		ds, err := b.Receive(t.Context(), engine.Receive{Queue: queue, Max: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(ds) == 0 {
			return all
		}
		all = append(all, ds...)
		done := make([]forebay.Settlement, len(ds))
		for i := range ds {
			done[i] = forebay.Settlement{Receipt: ds[i].Receipt, Queue: queue, Verdict: forebay.Ack}
		}
		if _, err := b.Settle(t.Context(), done); err != nil {
			t.Fatal(err)
		}
	}
}

// replay does the job of a replay once.
func replay(ctx context.Context, t *testing.T, r *history.Replayer, id string, req history.Request) (out history.Outcome, err error) {
	t.Helper()
	payload, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	j := worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: id, Payload: payload}}, func(*forebay.Progress, *forebay.LogLine) {})
	result, err := r.HandleJob(ctx, j)
	if err == nil {
		err = json.Unmarshal(result, &out)
	}
	return out, err
}

// cut stops a replay after some batches, without keeping that it did the last one.
type cut struct {
	history.Target
	left int
	stop context.CancelFunc
}

func (c *cut) Write(ctx context.Context, replay string, entries []engine.LogEntry) (int, error, error) {
	n, reason, err := c.Target.Write(ctx, replay, entries)
	if c.left--; c.left == 0 {
		c.stop()
		return n, reason, errors.Join(err, ctx.Err())
	}
	return n, reason, err
}

// A replay that is cut off in the middle goes on, and each message is there once; what
// was sent since it began is not of it, though it goes into the same queue.
func TestReplayIntoAQueueIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBroker(t)
		sendEvents(t, b, "early", 400)
		time.Sleep(time.Hour)
		from := time.Now()
		time.Sleep(time.Minute)
		sendEvents(t, b, "e", 5000)
		ctx, stop := context.WithCancel(t.Context())
		target := &cut{Target: history.ToQueue(b, ""), left: 3, stop: stop}
		r := &history.Replayer{Log: b, Documents: b, Target: func(history.Request) (history.Target, error) { return target, nil }}
		req := history.Request{Into: history.IntoQueue, Rate: 1000, Selection: history.Selection{Queue: event.Queue, Types: []string{"buy"}, From: from}}
		if _, err := replay(ctx, t, r, "r1", req); err == nil {
			t.Fatal("the replay was not cut off")
		}
		sendLater := settleAll(t, b, event.Queue)
		begin := time.Now()
		out, err := replay(t.Context(), t, r, "r1", req)
		if err != nil || out.Messages != 2500 || out.Refused != 0 {
			t.Fatalf("the replay ended with %+v, %v", out, err)
		}
		if took := time.Since(begin); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("what was left of 2,500 after 400 took %v at 1,000 a second", took)
		}
		got := map[string]bool{}
		for _, d := range append(sendLater, settleAll(t, b, event.Queue)...) {
			of := d.Headers[history.HeaderOf]
			if got[of] || d.ID == of || d.Kind != "buy" || d.Priority.Level() != 9 {
				t.Fatalf("%q of %q came as %+v", d.ID, of, d.Message)
			}
			got[of] = true
		}
		if len(got) != 2500 || !got["e1"] || got["early1"] {
			t.Errorf("%d messages came", len(got))
		}
		if out, err := replay(t.Context(), t, r, "r2", history.Request{Into: history.IntoQueue, DryRun: true, Selection: history.Selection{Queue: event.Queue, Key: "user3"}}); err != nil || out.Messages != 40+500+500 || !out.DryRun {
			t.Errorf("a dry run counts %+v, %v", out, err)
		}
		if ds := settleAll(t, b, event.Queue); len(ds) > 0 {
			t.Errorf("a dry run has sent %d", len(ds))
		}
	})
}

// hasty is a log whose retention is faster than its reader.
type hasty struct{ history.Log }

func (h hasty) ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error) {
	page, err := h.Log.ReadLog(ctx, q)
	if q.After > 0 {
		page.Oldest = q.After + 1
	}
	return page, err
}

// stuck is a log that promises more and gives nothing.
type stuck struct{ history.Log }

func (s stuck) ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error) {
	page, err := s.Log.ReadLog(ctx, q)
	if q.After > 0 {
		page = engine.LogPage{Epoch: page.Epoch, Next: q.After, More: true}
	}
	return page, err
}

// What has left before it was read is not passed over in silence, and nothing turns round
// on one place for ever.
func TestReplayTellsWhatIsGone(t *testing.T) {
	b := openBroker(t)
	sendEvents(t, b, "e", 1200)
	req := history.Request{Into: history.IntoSink, DryRun: true, Selection: history.Selection{Queue: event.Queue}}
	out, err := replay(t.Context(), t, &history.Replayer{Log: hasty{b}, Documents: b}, "gone", req)
	if err != nil || !out.Gone || out.Reason == "" {
		t.Errorf("it ended with %+v, %v", out, err)
	}
	if out, err = replay(t.Context(), t, &history.Replayer{Log: b, Documents: b}, "whole", req); err != nil || out.Gone {
		t.Errorf("with all there it ended with %+v, %v", out, err)
	}
	if out, err = replay(t.Context(), t, &history.Replayer{Log: stuck{b}, Documents: b}, "stuck", req); err == nil {
		t.Errorf("a log that stands still ended with %+v", out)
	}
}

// Into a sink: no row twice, those that were lost are there again, and a row that the
// database refuses is counted.
func TestReplayIntoASink(t *testing.T) {
	b := openBroker(t)
	sendEvents(t, b, "e", 1200)
	if _, err := b.Send(t.Context(), []forebay.Message{{ID: "odd", Queue: event.Queue, Payload: []byte("no event")}}); err != nil {
		t.Fatal(err)
	}
	latencies := 0
	to, err := sinks.Open(filepath.Join(t.TempDir(), "events.db"), sinks.Config{Config: sink.Config{Observe: func(b sink.Batch) { latencies += len(b.Latency) }}})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	r := &history.Replayer{Log: b, Documents: b, Target: func(history.Request) (history.Target, error) { return history.ToBatch(worker.BatchFunc(to.Again)), nil }}
	req := history.Request{Into: history.IntoSink, Rate: 100_000, Selection: history.Selection{Queue: event.Queue}}
	for _, id := range []string{"r1", "r2"} {
		out, err := replay(t.Context(), t, r, id, req)
		if err != nil || out.Messages != 1201 || out.Refused != 1 || out.Reason == "" {
			t.Errorf("%s ended with %+v, %v", id, out, err)
		}
	}
	for _, id := range []string{"e0", "e1199"} {
		if _, found, err := to.Find(t.Context(), id); !found || err != nil {
			t.Errorf("%s is not in the sink, %v", id, err)
		}
	}
	if latencies > 0 {
		t.Errorf("%d of them were told as how long live events take to the table", latencies)
	}
}

func TestWrongRequests(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	good := history.Request{Into: history.IntoSink, Selection: history.Selection{Queue: "q"}}
	for field, change := range map[string]func(*history.Request){
		"into": func(r *history.Request) { r.Into = "moon" },
		"name": func(r *history.Request) { r.Name = "x" },
		"rate": func(r *history.Request) { r.Rate = -1 },
		"to":   func(r *history.Request) { r.From, r.To = now, now.Add(-time.Hour) },
	} {
		r := good
		change(&r)
		var e *forebay.Error
		if err := r.Check(); !errors.As(err, &e) || e.Code != forebay.CodeInvalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]time.Time{
		"-1h": now.Add(-time.Hour), "90s": now.Add(-90 * time.Second), "7d": now.Add(-7 * 24 * time.Hour), "now": now, "2026-01-31T12:00:00Z": now,
	} {
		if got, err := history.Moment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if bad := []string{"", "-", "yesterday", "--1h"}; slices.ContainsFunc(bad, func(s string) bool { _, err := history.Moment(s, now); return err == nil }) {
		t.Error("a text that is no time is read as one")
	}
}
