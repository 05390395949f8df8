package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
	sinksqlite "github.com/forebayhq/forebay/sink/sqlite"
)

// noon is what the clock of tests says.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// fast settings for tests: short pauses, a clock that stands.
func fast() sinksqlite.Config {
	return sinksqlite.Config{Config: sink.Config{
		PauseMin: time.Millisecond, PauseMax: 20 * time.Millisecond,
		Now: func() time.Time { return noon },
	}}
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "events.db") }

func open(t testing.TB, path string, cfg sinksqlite.Config) *sinksqlite.Sink {
	t.Helper()
	s, err := sinksqlite.Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sample(id int) event.Event {
	return event.Event{
		ID: fmt.Sprintf("event-%06d", id), Type: "app_open", UserID: fmt.Sprintf("user-%d", id%7),
		Payload: []byte(fmt.Sprintf(`{"n": %d}`, id)), ReceivedAt: noon.Add(-time.Second), Source: "test/native",
	}
}

func samples(from, n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = sample(from + i)
	}
	return events
}

func deliveries(t testing.TB, events ...event.Event) []forebay.Delivery {
	t.Helper()
	ds := make([]forebay.Delivery, len(events))
	for i := range events {
		b, err := events[i].Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		ds[i].Message = forebay.Message{ID: events[i].ID, Queue: event.Queue, Payload: b}
	}
	return ds
}

func mustWrite(t testing.TB, s *sinksqlite.Sink, events ...event.Event) {
	t.Helper()
	for i, err := range s.HandleBatch(t.Context(), deliveries(t, events...)) {
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

// admin is a connection beside the sink's.
func admin(t testing.TB, path string) *sqlite.Conn {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func exec(t testing.TB, c *sqlite.Conn, sql string) {
	t.Helper()
	if err := sqlitex.ExecuteTransient(c, sql, nil); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t testing.TB, c *sqlite.Conn, sql string) (n int) {
	t.Helper()
	err := sqlitex.ExecuteTransient(c, sql, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		n = row.ColumnInt(0)
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

const rows = "SELECT count(*) FROM events"
