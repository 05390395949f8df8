package broker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
)

// plain is an engine without any optional ability, whose calls can be bent.
type plain struct {
	engine.Engine
	send     func(msgs []forebay.Message) ([]forebay.SendResult, error)
	received func()
}

func (p plain) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	ds, err := p.Engine.Receive(ctx, r)
	if p.received != nil {
		p.received()
	}
	return ds, err
}

func (p plain) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if p.send != nil {
		return p.send(msgs)
	}
	return p.Engine.Send(ctx, msgs)
}

func open(t *testing.T, e engine.Engine, cfg broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.New(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func message(id string) forebay.Message {
	return forebay.Message{ID: id, Queue: "q", Kind: "k", Payload: []byte("payload of " + id)}
}

func receive(t *testing.T, b *broker.Broker, r engine.Receive) []forebay.Delivery {
	t.Helper()
	r.Queue = "q"
	return must[[]forebay.Delivery](t)(b.Receive(t.Context(), r))
}

func TestNewTellsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := broker.New(enginetest.NewModel(), broker.Config{
		Policy: broker.Policy{Attempts: -1},
		Queues: map[string]broker.Policy{"a b": {}, "mail": {Attempts: 10, Deliveries: 5}},
	})
	if forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"policy.attempts", `"a b"`, "queues.mail.deliveries"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not named in: %v", part, err)
		}
	}
	if _, err := broker.New(nil, broker.Config{}); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("no engine: %v", err)
	}
}

func TestSendAnswersPerItem(t *testing.T) {
	t.Parallel()
	b := open(t, enginetest.NewModel(), broker.Config{})
	bad := message("bad")
	bad.Queue = "no such name!"
	large := message("large")
	large.Payload = make([]byte, forebay.MaxPayloadBytes+1)
	msgs := []forebay.Message{bad, message("a"), message(""), large, message("a"), bad}
	before := slices.Clone(msgs)
	results := must[[]forebay.SendResult](t)(b.Send(t.Context(), msgs))
	var got []string
	for i, r := range results {
		id := r.ID
		if i == 2 {
			if u, err := uuid.Parse(id); err != nil || u.Version() != 7 {
				t.Errorf("the id that was filled is %q", id)
			}
			id = "filled"
		}
		got = append(got, fmt.Sprintf("%s %t %s", id, r.Duplicate, forebay.CodeOf(r.Err)))
	}
	want := []string{" false invalid", "a false ", "filled false ", " false too_large", "a true ", " false invalid"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for i := range msgs {
		if msgs[i].ID != before[i].ID {
			t.Errorf("the caller's message %d was changed", i)
		}
	}
}

func TestSendSplitsLargeCalls(t *testing.T) {
	t.Parallel()
	model := enginetest.NewModel()
	var sizes []int
	failAt := -1
	b := open(t, plain{Engine: model, send: func(msgs []forebay.Message) ([]forebay.SendResult, error) {
		sizes = append(sizes, len(msgs))
		if len(sizes)-1 == failAt {
			return nil, forebay.Errorf(forebay.CodeFull, "test", "no room")
		}
		results := make([]forebay.SendResult, len(msgs))
		for i := range msgs {
			results[i].ID = msgs[i].ID
		}
		return results, nil
	}}, broker.Config{})
	msgs := make([]forebay.Message, 2*engine.MaxSend+2)
	for i := range msgs {
		msgs[i] = message(fmt.Sprint(i))
	}
	msgs[1].Queue = ""

	results := must[[]forebay.SendResult](t)(b.Send(t.Context(), msgs))
	if !slices.Equal(sizes, []int{engine.MaxSend, engine.MaxSend, 1}) {
		t.Errorf("calls of %v", sizes)
	}
	for i, r := range results {
		if (r.Err != nil) != (i == 1) || r.Err == nil && r.ID != fmt.Sprint(i) {
			t.Fatalf("result %d is %+v", i, r)
		}
	}

	sizes, failAt = nil, 1 // a later part fails: its items say so, the others are done
	results = must[[]forebay.SendResult](t)(b.Send(t.Context(), msgs))
	failed := 0
	for _, r := range results {
		if forebay.CodeOf(r.Err) == forebay.CodeFull {
			failed++
		}
	}
	if failed != engine.MaxSend || len(results) != len(msgs) {
		t.Errorf("%d of %d failed", failed, len(results))
	}

	sizes, failAt = nil, 0 // the first part fails: nothing was done
	if _, err := b.Send(t.Context(), msgs); forebay.CodeOf(err) != forebay.CodeFull || len(sizes) != 1 {
		t.Errorf("got %v after %d calls", err, len(sizes))
	}
}

func TestPoisonReachesNoHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, enginetest.NewModel(), broker.Config{Policy: broker.Policy{Attempts: 2, Deliveries: 3}})
		poison := message("poison")
		must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{poison}))
		for i := range 3 { // handed out, and never heard of again
			if ds := receive(t, b, engine.Receive{Max: 1, Lease: time.Second, Wait: time.Minute}); len(ds) != 1 || ds[0].Attempt != 1 {
				t.Fatalf("hand-out %d: %v", i+1, ds)
			}
		}
		<-time.After(2 * time.Second)
		must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{message("good")}))
		ds := receive(t, b, engine.Receive{Max: 10})
		if len(ds) != 1 || ds[0].ID != "good" {
			t.Errorf("handed out: %v", ds)
		}
		dead := must[[]forebay.DeadLetter](t)(b.Dead(t.Context(), engine.DeadQuery{}))
		if len(dead) != 1 || dead[0].Message.ID != "poison" || dead[0].Cause.Code != "poison" ||
			dead[0].Deliveries != 3 || dead[0].Attempts != 0 || dead[0].Cause.Detail["lost"] != "3" {
			t.Errorf("dead letters: %+v", dead)
		}
	})
}

// A receive that brings nothing but poison waits on for the rest of its time.
func TestReceiveWaitsOnAfterPoison(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, enginetest.NewModel(), broker.Config{})
		poison := message("poison")
		poison.Limits.Deliveries = 1
		must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{poison}))
		receive(t, b, engine.Receive{Max: 1, Lease: time.Second})
		start := time.Now()
		got := make(chan []forebay.Delivery, 1)
		go func() { got <- receive(t, b, engine.Receive{Max: 1, Wait: 10 * time.Second}) }()
		<-time.After(5 * time.Second)
		must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{message("good")}))
		if ds := <-got; len(ds) != 1 || ds[0].ID != "good" {
			t.Errorf("got %v", ds)
		}
		if ds := receive(t, b, engine.Receive{Max: 1, Wait: 10 * time.Second}); len(ds) != 0 {
			t.Errorf("got %v", ds)
		}
		if d := time.Since(start); d != 15*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}

// The caller has gone when the poison comes: it is settled all the same.
func TestPoisonIsSettledWithoutTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := enginetest.NewModel()
		poison := message("poison")
		poison.Limits.Deliveries = 1
		must[[]forebay.SendResult](t)(model.Send(t.Context(), []forebay.Message{poison}))
		must[[]forebay.Delivery](t)(model.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Lease: time.Second}))
		<-time.After(2 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		b := open(t, plain{Engine: model, received: cancel}, broker.Config{})
		if ds, err := b.Receive(ctx, engine.Receive{Queue: "q", Max: 1}); len(ds) != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v", ds, err)
		}
		if dead := must[[]forebay.DeadLetter](t)(model.Dead(t.Context(), engine.DeadQuery{})); len(dead) != 1 {
			t.Errorf("dead letters: %v", dead)
		}
	})
}

func TestSettleChecksWhatFollows(t *testing.T) {
	t.Parallel()
	b := open(t, enginetest.NewModel(), broker.Config{})
	must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{message("a"), message("b"), message("c")}))
	ds := receive(t, b, engine.Receive{Max: 3})
	next := message("")
	bad := message("bad")
	bad.Queue = ""
	errs := must[[]error](t)(b.Settle(t.Context(), []forebay.Settlement{
		{Receipt: ds[0].Receipt, Queue: "q", Verdict: forebay.Ack, Next: []forebay.Message{next}},
		{Receipt: ds[1].Receipt, Queue: "q", Verdict: forebay.Ack, Next: []forebay.Message{next, bad}},
		{Receipt: ds[2].Receipt, Queue: "q", Verdict: forebay.Ack},
		{Receipt: ds[2].Receipt, Queue: "q", Verdict: forebay.Ack},
	}))
	var got []forebay.Code
	for _, err := range errs {
		got = append(got, forebay.CodeOf(err))
	}
	if want := []forebay.Code{"", forebay.CodeInvalid, "", forebay.CodeLeaseLost}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	ds = receive(t, b, engine.Receive{Max: 3})
	if len(ds) != 1 || ds[0].ID == "" {
		t.Errorf("what follows: %v", ds)
	}
	if rate := b.DrainRate("q"); rate != 2 {
		t.Errorf("drain rate %v; two have left within a second", rate)
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	b := open(t, enginetest.NewModel(), broker.Config{})
	must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{message("a")}))
	b.Drain()
	if _, err := b.Send(t.Context(), []forebay.Message{message("b")}); forebay.CodeOf(err) != forebay.CodeClosed {
		t.Errorf("send while draining: %v", err)
	}
	ds := receive(t, b, engine.Receive{Max: 1})
	errs := must[[]error](t)(b.Settle(t.Context(), []forebay.Settlement{b.Decide(ds[0], nil)}))
	if err := errors.Join(errs...); err != nil {
		t.Errorf("settle while draining: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1}); forebay.CodeOf(err) != forebay.CodeClosed {
		t.Errorf("receive after close: %v", err)
	}
}

func TestWhatTheEngineCannotDoIsSaid(t *testing.T) {
	t.Parallel()
	b := open(t, plain{Engine: enginetest.NewModel()}, broker.Config{})
	whole := open(t, enginetest.NewModel(), broker.Config{})
	ctx := t.Context()
	calls := func(b *broker.Broker) map[string]error {
		all := make(map[string]error)
		_, all["dead"] = b.Dead(ctx, engine.DeadQuery{})
		_, all["replay"] = b.Replay(ctx, nil)
		_, all["discard"] = b.Discard(ctx, nil)
		_, all["locate"] = b.Locate(ctx, "a")
		all["set limits"] = b.SetLimits(ctx, "q", engine.QueueLimits{})
		_, all["limits"] = b.QueueLimits(ctx, "q")
		_, _, all["size"] = b.Size(ctx)
		_, all["purge"] = b.Purge(ctx, "q")
		return all
	}
	got := calls(b)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if err := got[name]; forebay.CodeOf(err) != forebay.CodeUnsupported || !strings.Contains(err.Error(), "cannot") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range calls(whole) {
		if err != nil {
			t.Errorf("%s, of an engine that can: %v", name, err)
		}
	}
}
