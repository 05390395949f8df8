package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/sink/sqlite"
)

func TestWriteAndFind(t *testing.T) {
	path := file(t)
	s := open(t, path, fast())
	whole := event.Event{
		ID: "whole\x00with nul", Type: "purchase", UserID: "u\"1\\é世", Source: "ios/segment",
		Payload:    []byte(`{"total": 1e400, "huge":1e200000, "note": "a\u0000<b>&c", "deep": [[{"x": null}]]}`),
		ReceivedAt: noon.Add(123456 * time.Microsecond), OccurredAt: noon.Add(-time.Hour),
		SentAt: noon.Add(-time.Minute), OriginalAt: noon.AddDate(-10, 0, 0),
	}
	mustWrite(t, s, append(samples(0, 999), whole)...)
	for _, want := range []event.Event{sample(0), sample(998), whole} {
		got, found, err := s.Find(t.Context(), want.ID)
		if err != nil || !found || !reflect.DeepEqual(got, want) {
			t.Errorf("%v %v\ngot  %+v\nwant %+v", found, err, got, want)
		}
	}
	if _, found, err := s.Find(t.Context(), "other"); found || err != nil {
		t.Errorf("found an event that was never written: %v", err)
	}
	conn := admin(t, path)
	if got := count(t, conn, rows); got != 1000 {
		t.Errorf("%d rows, want 1000", got)
	}
	if got := count(t, conn, "SELECT count(*) FROM events WHERE received_at = '2026-11-29T12:00:00.123456Z' AND julianday(received_at) > 0"); got != 1 {
		t.Error("the time is not text of a fixed width that SQLite reads")
	}
}

func TestRepeatingIsHarmless(t *testing.T) {
	path := file(t)
	var seen []sink.Batch
	cfg := fast()
	cfg.Observe = func(b sink.Batch) { b.Latency = nil; seen = append(seen, b) }
	s := open(t, path, cfg)
	mustWrite(t, s, samples(0, 500)...)
	mustWrite(t, s, samples(250, 500)...)
	mustWrite(t, s, sample(9000), sample(9000))
	want := []sink.Batch{
		{Rows: 500, Written: 500}, {Rows: 500, Written: 250, Duplicates: 250}, {Rows: 2, Written: 1, Duplicates: 1},
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("observed %+v\nwant     %+v", seen, want)
	}
	if got := count(t, admin(t, path), rows); got != 751 {
		t.Errorf("%d rows, want 751", got)
	}
}

// One row among 1,000 is refused, named, and lands once after the cause is mended.
func TestPoisonRow(t *testing.T) {
	cases := []struct{ name, set, unset, code, column string }{
		{"trigger", "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.user_id = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
			"DROP TRIGGER refuse", "SQLITE_CONSTRAINT_TRIGGER", ""},
		{"unique", "CREATE UNIQUE INDEX once ON events (event_type, source) WHERE event_type = 'first'", "DROP INDEX once",
			"SQLITE_CONSTRAINT_UNIQUE", "event_type, source"},
		{"check", "ALTER TABLE events ADD COLUMN known INT CHECK (user_id <> 'bad')", "", "SQLITE_CONSTRAINT_CHECK", "user_id"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := file(t)
			s := open(t, path, fast())
			conn := admin(t, path)
			known := sample(5000)
			known.Type, known.Source = "first", "s"
			mustWrite(t, s, known)
			exec(t, conn, c.set)
			events := samples(0, 1000)
			events[777].UserID, events[777].Source, events[777].Type = "bad", "s", "first"
			errs := s.HandleBatch(t.Context(), deliveries(t, events...))
			if len(errs) != len(events) {
				t.Fatal("no row was refused")
			}
			for i, err := range errs {
				if (err != nil) != (i == 777) {
					t.Fatalf("row %d: %v", i, err)
				}
			}
			cause := forebay.CauseOf(errs[777], noon)
			if !forebay.IsPermanent(errs[777]) || cause.Code != c.code || cause.Detail["column"] != c.column {
				t.Errorf("cause %+v", cause)
			}
			if c.unset == "" {
				return
			}
			exec(t, conn, c.unset)
			mustWrite(t, s, events[777])
			mustWrite(t, s, events[777])
			if got := count(t, conn, rows); got != 1001 {
				t.Errorf("%d rows after the replay, want 1001", got)
			}
		})
	}
}

// A lock that another program holds is waited for.
func TestLockedFile(t *testing.T) {
	path := file(t)
	states := make(chan sink.State, 100)
	cfg := fast()
	cfg.Timeout = 100 * time.Millisecond
	cfg.OnState = func(st sink.State) { states <- st }
	s := open(t, path, cfg)
	conn := admin(t, path)
	exec(t, conn, "BEGIN IMMEDIATE")
	ds := deliveries(t, samples(0, 40)...)
	done := make(chan []error, 1)
	go func() { done <- s.HandleBatch(t.Context(), ds) }()
	if st := <-states; !st.Paused || st.Reason == "" {
		t.Errorf("state %+v", st)
	}
	if err := s.Check(t.Context()); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Errorf("check: %v", err)
	}
	exec(t, conn, "ROLLBACK")
	if err := errors.Join(<-done...); err != nil {
		t.Fatal(err)
	}
	if st := <-states; st.Paused {
		t.Errorf("state %+v", st)
	}
	if got := count(t, conn, rows); got != 40 {
		t.Errorf("%d rows, want 40", got)
	}
}

func TestContextEnds(t *testing.T) {
	path := file(t)
	states := make(chan sink.State, 100)
	cfg := fast()
	cfg.Timeout = 50 * time.Millisecond
	cfg.OnState = func(st sink.State) { states <- st }
	s := open(t, path, cfg)
	exec(t, admin(t, path), "BEGIN IMMEDIATE")
	ctx, cancel := context.WithCancelCause(t.Context())
	ds := deliveries(t, samples(0, 20)...)
	done := make(chan []error, 1)
	go func() { done <- s.HandleBatch(ctx, ds) }()
	<-states
	cancel(forebay.ErrDraining)
	for _, err := range <-done {
		if !errors.Is(err, forebay.ErrDraining) || forebay.IsPermanent(err) {
			t.Errorf("error %v", err)
		}
	}
}

func TestConcurrentBatches(t *testing.T) {
	path := file(t)
	s := open(t, path, fast())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for b := range 10 {
				ds := deliveries(t, samples((w/2*10+b)*50, 50)...) // two write the same
				if err := errors.Join(s.HandleBatch(t.Context(), ds)...); err != nil {
					t.Error(err)
				}
				if _, found, err := s.Find(t.Context(), ds[49].ID); !found || err != nil {
					t.Errorf("a written event is not found: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := count(t, admin(t, path), rows); got != 1000 {
		t.Errorf("%d rows, want 1000", got)
	}
}

func TestRetention(t *testing.T) {
	path := file(t)
	cfg := fast()
	s := open(t, path, cfg)
	events := samples(0, 5000)
	for i := range events[:4500] {
		events[i].ReceivedAt = noon.Add(-49 * time.Hour)
	}
	mustWrite(t, s, events...)
	cfg.Retention = 48 * time.Hour
	if err := open(t, path, cfg).Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := count(t, admin(t, path), rows); got != 500 {
		t.Errorf("%d rows, want 500", got)
	}
}

// What retention has to delete does not hold a start up.
func TestRetentionDoesNotDelayTheStart(t *testing.T) {
	release := make(chan struct{})
	cfg := fast()
	cfg.Retention = 48 * time.Hour
	cfg.Now = func() time.Time { <-release; return noon } // asked by Maintain first
	opened := make(chan *sqlite.Sink, 1)
	go func() {
		s, err := sqlite.Open(file(t), cfg)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	select {
	case s := <-opened:
		close(release)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		close(release)
		t.Fatal("it waits for its upkeep")
	}
}

func TestRefusedAtOpen(t *testing.T) {
	cases := []struct {
		name string
		make func(t *testing.T, path string)
		code forebay.Code
		text string
	}{
		{"other program", func(t *testing.T, path string) { exec(t, admin(t, path), "CREATE TABLE events (id INT)") },
			forebay.CodeInvalid, "is a database of another program"},
		{"newer", func(t *testing.T, path string) {
			open(t, path, fast())
			exec(t, admin(t, path), "PRAGMA user_version = 99")
		}, forebay.CodeTooNew, "version 99, this program knows 1"},
		{"changed", func(t *testing.T, path string) {
			open(t, path, fast())
			exec(t, admin(t, path), "ALTER TABLE events RENAME COLUMN source TO origin")
		}, forebay.CodeInvalid, "source is missing"},
		{"more columns", func(t *testing.T, path string) {
			open(t, path, fast())
			exec(t, admin(t, path), "ALTER TABLE events ADD COLUMN note TEXT")
		}, "", ""},
		{"folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, forebay.CodeInvalid, "is a directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := file(t)
			c.make(t, path)
			before, _ := os.ReadFile(path) // of a folder: nothing
			s, err := sqlite.Open(path, fast())
			if err == nil {
				defer s.Close()
			}
			if forebay.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("code %q, error %v", forebay.CodeOf(err), err)
			}
			if after, _ := os.ReadFile(path); err != nil && !bytes.Equal(after, before) {
				t.Error("the file was changed")
			}
			if kept, _ := filepath.Glob(path + ".damaged*"); len(kept) > 0 {
				t.Errorf("set aside: %q", kept)
			}
		})
	}
	if _, err := sqlite.Open(filepath.Join(t.TempDir(), "no", "folder"), fast()); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("no folder: %v", err)
	}
}

func TestClosed(t *testing.T) {
	s, err := sqlite.Open(file(t), fast())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Find(t.Context(), "x"); err == nil {
		t.Error("a closed sink answers")
	}
}
