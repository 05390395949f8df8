package outbox_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/outbox"
)

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
	case "has no such queue":
		return nil, forebay.Errorf(forebay.CodeNotFound, "far", "no such queue")
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
