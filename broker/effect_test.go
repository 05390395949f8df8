package broker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/sqlite"
)

func memory(t *testing.T) engine.Engine {
	t.Helper()
	e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestEffectRunsOnce(t *testing.T) {
	t.Parallel()
	e := memory(t)
	b, other := open(t, e, broker.Config{}), open(t, e, broker.Config{})
	runs := 0
	charge := func(context.Context) ([]byte, error) { runs++; return []byte("paid"), nil }
	for _, b := range []*broker.Broker{b, b, other} {
		want(t, "result", string(must[[]byte](t)(b.Effect(t.Context(), "job/charge", charge))), "paid")
	}
	want(t, "another key", string(must[[]byte](t)(b.Effect(t.Context(), "job/mail", func(context.Context) ([]byte, error) { return nil, nil }))), "")
	want(t, "runs", runs, 1)
}

func TestFailedEffectIsForgotten(t *testing.T) {
	t.Parallel()
	b := open(t, memory(t), broker.Config{})
	refused := errors.New("card refused")
	if _, err := b.Effect(t.Context(), "k", func(context.Context) ([]byte, error) { return []byte("x"), refused }); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = b.Effect(t.Context(), "k", func(context.Context) ([]byte, error) { panic("no luck") })
	}()
	got := must[[]byte](t)(b.Effect(t.Context(), "k", func(context.Context) ([]byte, error) { return []byte("paid"), nil }))
	want(t, "result", string(got), "paid")
}

// Of many calls at once in one process one runs, and all get its result.
func TestEffectIsSingleFlight(t *testing.T) {
	t.Parallel()
	b := open(t, memory(t), broker.Config{})
	var runs, inside, most atomic.Int64
	release := make(chan struct{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			got, err := b.Effect(t.Context(), "k", func(context.Context) ([]byte, error) {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
				<-release
				if runs.Add(1) == 1 {
					return nil, errors.New("the first one fails")
				}
				return []byte("paid"), nil
			})
			if err == nil && string(got) != "paid" {
				t.Errorf("got %q", got)
			}
		})
	}
	close(release)
	all.Wait()
	want(t, "runs, and at once", [2]int64{runs.Load(), most.Load()}, "[2 1]")
	// Who waits may leave.
	entered, leave := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		_, _ = b.Effect(t.Context(), "slow", func(context.Context) ([]byte, error) { close(entered); <-leave; return nil, nil })
	})
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Effect(ctx, "slow", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	close(leave)
	all.Wait()
}

func TestEffectBounds(t *testing.T) {
	t.Parallel()
	b := open(t, memory(t), broker.Config{})
	for _, key := range []string{"", strings.Repeat("k", engine.MaxDocumentKey+1)} {
		_, err := b.Effect(t.Context(), key, nil)
		want(t, "key", forebay.CodeOf(err), forebay.CodeInvalid)
	}
	largest := must[[]byte](t)(b.Effect(t.Context(), "l", func(context.Context) ([]byte, error) { return make([]byte, broker.MaxEffectBytes), nil }))
	want(t, "largest", len(largest), broker.MaxEffectBytes)
	runs := 0
	for range 2 { // it has run, so it must not run again, although its result cannot be told
		_, err := b.Effect(t.Context(), "m", func(context.Context) ([]byte, error) { runs++; return make([]byte, broker.MaxEffectBytes+1), nil })
		if !forebay.IsPermanent(err) || !strings.Contains(err.Error(), "1048576") {
			t.Errorf("too large: %v", err)
		}
	}
	want(t, "runs", runs, 1)
	_, err := open(t, plain{Engine: enginetest.NewModel()}, broker.Config{}).Effect(t.Context(), "k", nil)
	want(t, "without documents", forebay.CodeOf(err), forebay.CodeUnsupported)
}

// forgetful loses answers, or does not answer, before it stores a document.
type forgetful struct {
	engine.Engine
	docs engine.Documents
	put  func(d engine.Document) error // before
	lose func() bool                   // the answer
}

func (f *forgetful) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if err := f.put(d); err != nil {
		return engine.Document{}, err
	}
	stored, err := f.docs.PutDocument(ctx, d)
	if f.lose() {
		return engine.Document{}, forebay.Errorf(forebay.CodeUnavailable, "test", "no answer")
	}
	return stored, err
}

func (f *forgetful) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	return f.docs.Document(ctx, collection, key)
}

func (f *forgetful) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	return f.docs.Documents(ctx, collection, after, limit)
}

func (f *forgetful) DeleteDocument(ctx context.Context, collection, key string, rev int64) error {
	return f.docs.DeleteDocument(ctx, collection, key, rev)
}

// What has run is remembered through failures, also when its caller has gone, and
// an effect that another process was quicker with has that one's result.
func TestEffectIsRememberedThroughFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
		defer e.Close()
		failures, losses := 3, 1
		f := &forgetful{Engine: e, docs: e, put: func(engine.Document) error {
			if failures--; failures >= 0 {
				return forebay.Errorf(forebay.CodeFull, "test", "no room")
			}
			return nil
		}, lose: func() bool { losses--; return losses >= 0 }}
		b := open(t, f, broker.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		got, err := b.Effect(ctx, "k", func(context.Context) ([]byte, error) { cancel(); return []byte("ours"), nil })
		want(t, "through failures", string(got)+" "+string(forebay.CodeOf(err)), "ours ")

		f.put = func(d engine.Document) error {
			d.Value = []byte("rtheirs")
			_, err := e.PutDocument(t.Context(), d)
			return err
		}
		got, err = b.Effect(t.Context(), "k2", func(context.Context) ([]byte, error) { return []byte("ours"), nil })
		want(t, "behind another process", string(got)+" "+string(forebay.CodeOf(err)), "theirs ")

		f.put = func(engine.Document) error { return forebay.Errorf(forebay.CodeFull, "test", "no room") }
		began := time.Now()
		_, err = b.Effect(t.Context(), "k3", func(context.Context) ([]byte, error) { return nil, nil })
		if forebay.CodeOf(err) != forebay.CodeFull || time.Since(began) > time.Minute {
			t.Errorf("for ever: %v after %s", err, time.Since(began))
		}
	})
}

func TestEffectIsForgottenAfter30Days(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
		defer e.Close()
		b := open(t, e, broker.Config{})
		runs := 0
		run := func(context.Context) ([]byte, error) { runs++; return nil, nil }
		for _, later := range []time.Duration{0, 29 * 24 * time.Hour, 2 * 24 * time.Hour} {
			time.Sleep(later)
			must[[]byte](t)(b.Effect(t.Context(), "k", run))
		}
		want(t, "runs", runs, 2)
	})
}
