package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/sink/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// noon is what the clock of tests says.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// fast settings for tests: short pauses, a clock that stands.
func fast() postgres.Config {
	return postgres.Config{Config: sink.Config{
		PauseMin: time.Millisecond, PauseMax: 20 * time.Millisecond,
		Now: func() time.Time { return noon },
	}}
}

func open(t testing.TB, url string, cfg postgres.Config) *postgres.Sink {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, cfg)
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

func mustWrite(t testing.TB, s *postgres.Sink, events ...event.Event) {
	t.Helper()
	for i, err := range s.HandleBatch(t.Context(), deliveries(t, events...)) {
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

// admin is a connection beside the sink's.
func admin(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t testing.TB, c *pgx.Conn, sql string, args ...any) (n int) {
	t.Helper()
	if err := c.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

const rows = "SELECT count(*) FROM events"

// log is a logger that can be read while it is written.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// codes are the causes' codes, "" for none.
func codes(errs []error) []string {
	out := make([]string, len(errs))
	for i, err := range errs {
		if err != nil {
			out[i] = forebay.CauseOf(err, noon).Code
		}
	}
	return out
}
