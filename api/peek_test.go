package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
)

// Looking at messages counts as no hand-out, and pages through all of them.
func TestPeek(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx := t.Context()
	var msgs []forebay.Message
	for i := range 5 {
		msgs = append(msgs, forebay.Message{ID: fmt.Sprint("m", i), Queue: "q", Kind: "k", Payload: []byte(`{"n":1}`)})
	}
	msgs = append(msgs, forebay.Message{ID: "later", Queue: "q", Payload: []byte("\xff no text"), NotBefore: time.Now().Add(time.Hour)})
	s.send(t, msgs...)
	leased := must[[]forebay.Delivery](t)(s.broker.Receive(ctx, engine.Receive{Queue: "q", Max: 1}))

	seen := map[string]api.PeekedMessage{}
	after := ""
	for pages := 0; pages < 20; pages++ {
		page := must[api.PeekList](t)(s.Peek(ctx, "q", after, 2))
		if len(page.Items) > 2 {
			t.Fatalf("a page of %d messages, want 2 at most", len(page.Items))
		}
		for _, m := range page.Items {
			seen[m.Message.ID] = m
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(seen) != len(msgs) {
		t.Fatalf("%d messages were shown, want %d: %v", len(seen), len(msgs), seen)
	}
	if m := seen[leased[0].ID]; m.Where != engine.WhereActive || m.Deliveries != 1 || m.LeaseUntil.IsZero() {
		t.Errorf("the leased one is shown as %+v", m)
	}
	if m := seen["later"]; m.Where != engine.WhereDelayed || m.Due.IsZero() || string(m.Message.Payload.Bytes()) != "\xff no text" {
		t.Errorf("the delayed one is shown as %+v", m)
	}
	again := must[[]forebay.Delivery](t)(s.broker.Receive(ctx, engine.Receive{Queue: "q", Max: 10}))
	for _, d := range again {
		if d.Deliveries != 1 {
			t.Errorf("%s is handed out for the %dth time: looking has counted", d.ID, d.Deliveries)
		}
	}
	if len(again) != 4 {
		t.Errorf("%d more are handed out, want 4", len(again))
	}
	_, err := s.Peek(ctx, "q", "no place", 2)
	wantCode(t, err, forebay.CodeInvalid)
	_, err = s.AccessKeys(ctx) // nor is SQS spoken by this server
	wantCode(t, err, forebay.CodeUnsupported)
}
