package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// What was committed and could not be flushed is refused, but true; once the disk
// works again, all does.
func TestSyncFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	ctx := context.Background()
	send(t, e, messages(3, "a")...)
	ds := receive(t, e, 1)
	mend, err := e.BreakSync()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Send(ctx, messages(1, "b")); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Errorf("acknowledged without a flush: %v", err)
	}
	if _, err := e.Settle(ctx, []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Ack}}); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Errorf("settled without a flush: %v", err)
	}
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	if res := send(t, e, append(messages(1, "b"), messages(1, "c")...)...); !res[0].Duplicate || res[1].Duplicate {
		t.Errorf("%+v", res)
	}
	if s, err := e.Stats(ctx, "q"); err != nil || s[0].Waiting != 4 || s[0].Active != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if ds := receive(t, open(t, sqlite.Config{Path: path}), 9); len(ds) != 4 {
		t.Errorf("%d of 4 messages after a restart", len(ds))
	}
}

// After a crash the first durable call is done, also beside a claim.
func TestSendAfterCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	send(t, open(t, sqlite.Config{Path: path}), messages(1, "a")...)
	e := open(t, sqlite.Config{Path: crash(t, path)})
	release := e.Hold()
	ctx := context.Background()
	var done sync.WaitGroup
	done.Go(func() {
		if ds, err := e.Receive(ctx, engine.Receive{Queue: "q", Max: 1}); err != nil || len(ds) != 1 {
			t.Errorf("received %d, %v", len(ds), err)
		}
	})
	done.Go(func() {
		if _, err := e.Send(ctx, messages(1, "b")); err != nil {
			t.Error(err)
		}
	})
	for e.Queued() < 2 {
		runtime.Gosched()
	}
	release()
	done.Wait()
}

// What a caller does to its arguments after its ctx ended changes nothing.
func TestArgumentsAreNotKept(t *testing.T) {
	e := open(t, sqlite.Config{})
	send(t, e, messages(2, "m")...)
	ds := receive(t, e, 2)
	release := e.Hold()
	ctx, cancel := context.WithCancel(context.Background())
	s := []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Ack}}
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := e.Settle(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("settle: %v", err)
		}
	})
	for e.Queued() < 1 {
		runtime.Gosched()
	}
	cancel()
	done.Wait()
	s[0].Receipt = ds[1].Receipt
	release()
	if loc, err := e.Locate(context.Background(), "m1"); err != nil || loc.Where != engine.WhereActive {
		t.Errorf("what nobody settled is %s, %v", loc.Where, err)
	}
}
