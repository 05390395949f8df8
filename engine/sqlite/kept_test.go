package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// keep takes what is there under kept leases.
func keep(t *testing.T, e *sqlite.Engine, n int, lease time.Duration) []forebay.Delivery {
	t.Helper()
	ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: n, Lease: lease, Kept: true})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// What is given back of a loaded lease comes once, also when its block has left memory
// before the cursor of its lane has come to it.
func TestLoadedLeaseIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	for name, verdict := range map[string]forebay.Verdict{"release": forebay.Release, "retry": forebay.Retry} {
		for _, group := range []string{"", "g"} {
			t.Run(name+" group="+group, func(t *testing.T) {
				t.Parallel()
				cfg := sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")}
				e := mustOpen(t, cfg)
				msgs := messages(3, "m")
				for i := range msgs {
					msgs[i].Group = group
				}
				send(t, e, msgs...)
				ds := keep(t, e, 1, time.Hour)
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = open(t, cfg)
				settle(t, e, verdict, ds...)
				e.ForgetData()
				seen := map[string]int{}
				for _, d := range append(receive(t, e, 10), receive(t, e, 10)...) {
					seen[d.ID]++
				}
				if len(seen) != 3 || seen["m0"] != 1 || seen["m1"] != 1 || seen["m2"] != 1 {
					t.Errorf("received %v, want each once", seen)
				}
			})
		}
	}
}

// A kept lease that the store does not take is none: Receive says so, and the messages
// are as if they had never been handed out.
func TestKeptLeaseNeedsTheStore(t *testing.T) {
	t.Parallel()
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	send(t, e, messages(4, "m")...)
	if err := e.Exec("CREATE TRIGGER refuse BEFORE INSERT ON lease BEGIN SELECT RAISE(FAIL, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 2, Kept: true})
		if err == nil || len(ds) > 0 {
			t.Fatalf("received %v, %v, though the store refuses", ds, err)
		}
	}
	if ds := receive(t, e, 1); len(ds) != 1 || ds[0].Deliveries != 1 {
		t.Fatalf("a lease that need not be kept: %+v", ds)
	}
	if err := e.Exec("DROP TRIGGER refuse"); err != nil {
		t.Fatal(err)
	}
	ds := keep(t, e, 10, time.Hour)
	if len(ds) != 3 {
		t.Fatalf("received %d of 3 that were given back", len(ds))
	}
	for _, d := range ds {
		if d.Deliveries != 1 {
			t.Errorf("%+v: a hand-out that nobody had is counted", d)
		}
	}
}

// A lease that was extended and cannot be stored keeps the end that it had.
func TestKeptExtendNeedsTheStore(t *testing.T) {
	t.Parallel()
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	send(t, e, messages(1, "m")...)
	ds := keep(t, e, 1, time.Hour)
	if err := e.Exec("CREATE TRIGGER refuse BEFORE UPDATE ON lease BEGIN SELECT RAISE(FAIL, 'no'); END"); err != nil {
		t.Fatal(err)
	}
	if errs, err := e.Extend(context.Background(), []forebay.Receipt{ds[0].Receipt}, 0); err == nil {
		t.Fatalf("extended: %v", errs)
	}
	if got := receive(t, e, 1); len(got) > 0 {
		t.Errorf("received %v: the lease was ended though that failed", got)
	}
	settle(t, e, forebay.Ack, ds...)
}

// A damaged row of a kept lease frees its messages; nothing else is lost.
func TestDamagedKeptLease(t *testing.T) {
	t.Parallel()
	cfg := sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")}
	e := mustOpen(t, cfg)
	send(t, e, messages(4, "m")...)
	keep(t, e, 2, time.Hour)
	whole := keep(t, e, 1, time.Hour)
	if err := e.Exec("UPDATE lease SET items = x'0102030405060708' WHERE id = (SELECT min(id) FROM lease)"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	if ds := receive(t, e, 10); len(ds) != 3 {
		t.Errorf("received %d, want the two that were freed and the one that was never taken", len(ds))
	}
	settle(t, e, forebay.Ack, whole...)
}

// Leases that are kept, and receipts, are there after a recovery of the file.
func TestKeptLeaseAfterRecovery(t *testing.T) {
	t.Parallel()
	cfg := sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")}
	e := mustOpen(t, cfg)
	send(t, e, messages(4, "m")...)
	ds := keep(t, e, 2, time.Hour)
	if err := e.Exec("INSERT INTO meta (name, value) VALUES ('damaged', 1)"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	if e.Recovery().Saved == 0 {
		t.Fatal("the file was not recovered")
	}
	if got := receive(t, e, 10); len(got) != 2 {
		t.Errorf("received %d, want the two that nobody holds", len(got))
	}
	settle(t, e, forebay.Ack, ds...)
}
