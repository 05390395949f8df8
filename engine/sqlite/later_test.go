package sqlite_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A message that is due behind many of a limited key comes to who waits for it.
func TestDueBehindKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, sqlite.Config{})
		ctx := context.Background()
		if err := e.SetLimits(ctx, "q", engine.QueueLimits{KeyActive: 1}); err != nil {
			t.Fatal(err)
		}
		ms := messages(3000, "k")
		for i := range ms {
			ms[i].LimitKey, ms[i].NotBefore = "k", time.Now().Add(time.Minute)
		}
		free := messages(1, "free")
		free[0].NotBefore = time.Now().Add(time.Minute + time.Second)
		send(t, e, append(ms, free...)...)
		for _, key := range []string{"k", ""} { // of a key that has many, some are behind, which may have the first turn
			ds, err := e.Receive(ctx, engine.Receive{Queue: "q", Max: 1, Wait: 2 * time.Minute, Lease: time.Hour})
			if err != nil || len(ds) != 1 || ds[0].LimitKey != key {
				t.Fatal(key, ds, err)
			}
			time.Sleep(time.Second) // of the bubble
		}
	})
}

// A not-before of long ago, for which nanoseconds do not reach, is one of the past.
func TestLongAgo(t *testing.T) {
	e := open(t, sqlite.Config{})
	ms := messages(1, "m")
	ms[0].NotBefore = time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)
	send(t, e, ms...)
	if ds := receive(t, e, 1); len(ds) != 1 || ds[0].NotBefore.After(time.Now()) {
		t.Fatalf("%+v", ds)
	}
}
