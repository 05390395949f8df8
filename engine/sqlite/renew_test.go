package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// A copy of a store hands out the same message as the original does. A receipt of the
// original must not settle it in the copy, and a place in its history means nothing there.
func TestRenewedCopyKnowsNoReceiptOfTheOriginal(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "original.db"), filepath.Join(dir, "copy.db")}
	e := mustOpen(t, sqlite.Config{Path: paths[0]})
	send(t, e, messages(1, "m")...)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(paths[1], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Renew(paths[1]); err != nil {
		t.Fatal(err)
	}
	var receipts []forebay.Receipt
	var epochs []string
	var copied *sqlite.Engine
	for _, path := range paths {
		copied = open(t, sqlite.Config{Path: path})
		receipts = append(receipts, receive(t, copied, 1)[0].Receipt)
		page, err := copied.History(context.Background(), engine.HistoryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		epochs = append(epochs, page.Epoch)
	}
	errs, err := copied.Settle(context.Background(), []forebay.Settlement{{Receipt: receipts[0], Verdict: forebay.Ack}, {Receipt: receipts[1], Verdict: forebay.Ack}})
	if err != nil || forebay.CodeOf(errs[0]) != forebay.CodeLeaseLost || errs[1] != nil {
		t.Errorf("a receipt of the original: %v, want lease_lost; its own: %v; %v", errs[0], errs[1], err)
	}
	if epochs[0] == epochs[1] {
		t.Error("places in the history of the original are places in that of the copy")
	}
}
