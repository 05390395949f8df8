package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay"
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
