package sqlite_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// exec runs SQL on the engine's own connection.
func exec(t *testing.T, e *sqlite.Engine, sql string) {
	t.Helper()
	if err := e.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

// refilled opens an engine that finds n messages in its store.
func refilled(t *testing.T, n int, cfg sqlite.Config) *sqlite.Engine {
	t.Helper()
	cfg.Path = filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, cfg)
	send(t, e, messages(n, "m")...)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, cfg)
}

func TestReleaseAfterReopen(t *testing.T) {
	e := refilled(t, 3, sqlite.Config{})
	settle(t, e, forebay.Release, receive(t, e, 3)...)
	if ds := receive(t, e, 3); len(ds) != 3 {
		t.Fatalf("%d of 3 released messages come again", len(ds))
	}
}

// A lease that runs out while the store takes no rows returns its message all the same.
func TestExpiredNotStored(t *testing.T) {
	var ahead atomic.Int64
	e := refilled(t, 1, sqlite.Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 1, Lease: time.Minute})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	exec(t, e, "CREATE TRIGGER no BEFORE INSERT ON again BEGIN SELECT RAISE(FAIL, 'no room'); END")
	ahead.Store(int64(time.Hour))
	if _, err := e.Stats(context.Background()); err != nil { // ends the lease
		t.Fatal(err)
	}
	exec(t, e, "DROP TRIGGER no")
	if ds := receive(t, e, 1); len(ds) != 1 || ds[0].Deliveries != 2 {
		t.Fatalf("the message does not come again: %+v", ds)
	}
}
