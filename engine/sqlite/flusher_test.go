package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// gate holds every flush of an engine's log until the test lets it go on.
type gate struct {
	began  chan struct{}
	finish chan error // nil: really flush
}

func newGate(e *sqlite.Engine) (g gate, restore func()) {
	g = gate{make(chan struct{}), make(chan error)}
	restore = e.OnSync(func(flush func() error) error {
		g.began <- struct{}{}
		if err := <-g.finish; err != nil {
			return err
		}
		return flush()
	})
	return g, restore
}

// background sends a message; its answer comes on the channel.
func background(e *sqlite.Engine, id string) <-chan sendAnswer {
	answer := make(chan sendAnswer, 1)
	go func() {
		res, err := e.Send(context.Background(), []forebay.Message{{ID: id, Queue: "q"}})
		answer <- sendAnswer{res, err}
	}()
	return answer
}

type sendAnswer struct {
	results []forebay.SendResult
	err     error
}

// committed waits until so many messages are in the store.
func committed(t *testing.T, e *sqlite.Engine, want int64) {
	t.Helper()
	for {
		s, err := e.Stats(context.Background(), "q")
		if err != nil {
			t.Fatal(err)
		}
		if s[0].Waiting == want {
			return
		}
		runtime.Gosched()
	}
}

func unanswered(t *testing.T, answers ...<-chan sendAnswer) {
	t.Helper()
	for i, a := range answers {
		select {
		case got := <-a:
			t.Errorf("call %d was answered before its flush: %+v", i, got)
		default:
		}
	}
}

// What is committed while a flush runs is answered by the next one, not by this.
func TestFlushAnswersWhatCameBefore(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	g, restore := newGate(e)
	first := background(e, "a")
	<-g.began
	release := e.Hold()
	second, third := background(e, "b"), background(e, "c")
	again := background(e, "a") // writes nothing, and waits with what it repeats
	for e.Queued() < 3 {
		runtime.Gosched()
	}
	release()
	waitFor(e, 3)
	unanswered(t, first, second, third, again)

	g.finish <- nil
	if got := <-first; got.err != nil || got.results[0].Duplicate {
		t.Errorf("first: %+v", got)
	}
	<-g.began
	unanswered(t, second, third, again)
	g.finish <- nil
	for name, c := range map[string]<-chan sendAnswer{"second": second, "third": third, "again": again} {
		if got := <-c; got.err != nil || got.results[0].Duplicate != (name == "again") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	restore()
}

// A commit beside a flush is for many messages, whether many calls bring them or one.
func TestOneCallOfManyNeedNotWait(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	g, restore := newGate(e)
	e.Few(16)
	answers := make(chan error, 2)
	begin := func(prefix string, n int) {
		msgs := messages(n, prefix)
		go func() {
			_, err := e.Send(context.Background(), msgs)
			answers <- err
		}()
	}
	begin("first", 100)
	<-g.began
	begin("second", 60)
	waitFor(e, 1)
	g.finish <- nil
	if err := <-answers; err != nil {
		t.Error(err)
	}
	<-g.began
	g.finish <- nil
	if err := <-answers; err != nil {
		t.Error(err)
	}
	restore()
}

// waitFor waits until so many calls wait for the disk, without the flush that runs.
func waitFor(e *sqlite.Engine, n int) {
	for e.Unflushed() < n {
		runtime.Gosched()
	}
}

// A flush that fails fails what it was for and all that was committed meanwhile.
func TestFlushFailsWithMoreBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	g, restore := newGate(e)
	answers := []<-chan sendAnswer{background(e, "a")}
	<-g.began
	release := e.Hold()
	for _, id := range []string{"b", "c", "a"} {
		answers = append(answers, background(e, id))
	}
	for e.Queued() < 3 {
		runtime.Gosched()
	}
	release()
	waitFor(e, 3)
	g.finish <- errors.New("the disk is gone")
	for i, a := range answers {
		if got := <-a; forebay.CodeOf(got.err) != forebay.CodeUnavailable {
			t.Errorf("call %d was acknowledged: %+v", i, got)
		}
	}
	restore()
	// All of them are true, and durable once the log has been moved.
	res := send(t, e, messages(1, "new")...)
	if res[0].Duplicate {
		t.Errorf("%+v", res)
	}
	committed(t, e, 4)
	if got := <-background(e, "b"); got.err != nil || !got.results[0].Duplicate {
		t.Errorf("%+v", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if ds := receive(t, open(t, sqlite.Config{Path: path}), 9); len(ds) != 4 {
		t.Errorf("%d of 4 messages after a restart", len(ds))
	}
}

// A message may be handed out while its flush runs; its verdict is flushed later.
func TestSettleBeforeTheFlushEnds(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	g, restore := newGate(e)
	sent := background(e, "a")
	<-g.began
	ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 1, Wait: engine.MaxWait})
	if err != nil || len(ds) != 1 {
		t.Fatalf("%d deliveries, %v", len(ds), err)
	}
	settled := make(chan error, 1)
	go func() {
		errs, err := e.Settle(context.Background(), []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Ack}})
		settled <- errors.Join(append(errs, err)...)
	}()
	waitFor(e, 1)
	unanswered(t, sent)
	g.finish <- nil
	<-g.began
	if got := <-sent; got.err != nil {
		t.Error(got.err)
	}
	select {
	case err := <-settled:
		t.Errorf("settled without a flush: %v", err)
	default:
	}
	g.finish <- nil
	if err := <-settled; err != nil {
		t.Error(err)
	}
	restore()
}

// Close answers what waits for the disk, also what nobody listens to any more.
func TestCloseFlushes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	g, _ := newGate(e)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := e.Send(ctx, messages(1, "m")); !errors.Is(err, context.Canceled) {
			t.Errorf("send: %v", err)
		}
	})
	<-g.began
	cancel()
	done.Wait()
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	if _, err := e.Stats(context.Background()); err != nil && forebay.CodeOf(err) != forebay.CodeClosed {
		t.Error(err)
	}
	select {
	case err := <-closed:
		t.Errorf("closed while a flush runs: %v", err)
	default:
	}
	g.finish <- nil
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if ds := receive(t, open(t, sqlite.Config{Path: path}), 9); len(ds) != 1 {
		t.Errorf("%d of 1 messages after a restart", len(ds))
	}
}

// Callers wait, and memory stays bounded, while the disk takes nothing.
func TestFlushBackPressure(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	g, restore := newGate(e)
	first := background(e, "a")
	<-g.began
	const calls = 4000
	var done sync.WaitGroup
	for i := range calls {
		done.Go(func() {
			if _, err := e.Send(context.Background(), []forebay.Message{{ID: fmt.Sprint(i), Queue: "q"}}); err != nil {
				t.Error(err)
			}
		})
	}
	for e.Queued()+e.Unflushed() < calls-sqlite.GroupCalls {
		runtime.Gosched()
	}
	if n := e.Unflushed(); n > 2*sqlite.GroupCalls {
		t.Errorf("%d calls wait for the disk", n)
	}
	go func() {
		for range g.began {
			g.finish <- nil
		}
	}()
	g.finish <- nil
	if got := <-first; got.err != nil {
		t.Error(got.err)
	}
	done.Wait()
	committed(t, e, calls+1)
	restore()
	close(g.began)
}
