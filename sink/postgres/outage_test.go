package postgres_test

import (
	"context"
	"errors"
	"strings"
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

// watched settings tell each change of state on a channel.
func watched() (postgres.Config, chan sink.State, *log) {
	states, l := make(chan sink.State, 100), &log{}
	cfg := fast()
	cfg.OnState = func(s sink.State) { states <- s }
	cfg.Logger = l.logger()
	return cfg, states, l
}

// background handles a batch while the test does something to the server.
func background(t *testing.T, s *postgres.Sink, ctx context.Context, events []event.Event) chan []error {
	t.Helper()
	done := make(chan []error, 1)
	ds := deliveries(t, events...)
	go func() { done <- s.HandleBatch(ctx, ds) }()
	return done
}

// paused waits until the sink pauses; a batch that ends before that is a failure.
func paused(t *testing.T, states chan sink.State, done chan []error) sink.State {
	t.Helper()
	select {
	case st := <-states:
		if !st.Paused || st.Reason == "" {
			t.Errorf("state %+v", st)
		}
		return st
	case errs := <-done:
		t.Fatalf("the batch ended without a pause: %v", errors.Join(errs...))
	}
	return sink.State{}
}

// A stopped server pauses the sink; the batch is written when it is back. What is
// told of it: two lines, without the password.
func TestOutage(t *testing.T) {
	for _, how := range []string{"stop", "kill", "pause"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			srv := pgtest.Start(t, pgtest.Config{})
			url := srv.Database(t)
			cfg, states, l := watched()
			cfg.Timeout = 20 * time.Second
			if how == "pause" {
				cfg.Timeout = 500 * time.Millisecond
			}
			s := open(t, url, cfg)
			mustWrite(t, s, samples(0, 200)...)
			back := func() error { return srv.Start(t.Context()) }
			switch how {
			case "stop":
				srv.Stop()
			case "kill":
				srv.Kill()
			case "pause":
				if err := srv.Pause(); err != nil {
					t.Fatal(err)
				}
				back = srv.Resume
			}
			done := background(t, s, t.Context(), samples(200, 200))
			paused(t, states, done)
			if how != "pause" {
				if err := s.Check(t.Context()); forebay.CodeOf(err) != forebay.CodeUnavailable {
					t.Errorf("check: %v", err)
				}
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(<-done...); err != nil {
				t.Fatal(err)
			}
			if st := <-states; st.Paused {
				t.Errorf("state %+v", st)
			}
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if got := count(t, admin(t, url), rows); got != 400 {
				t.Errorf("%d rows, want 400", got)
			}
			if got := strings.Count(l.String(), "\n"); got != 2 || strings.Contains(l.String(), srv.Password()) {
				t.Errorf("%d log lines:\n%s", got, l)
			}
		})
	}
}

// The sink opens while the database is down, and prepares the table later.
func TestOpenDuringOutage(t *testing.T) {
	srv := pgtest.Start(t, pgtest.Config{})
	url := srv.Database(t)
	srv.Stop()
	cfg, states, _ := watched()
	s := open(t, url, cfg)
	done := background(t, s, t.Context(), samples(0, 10))
	paused(t, states, done)
	if err := srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-done...); err != nil {
		t.Fatal(err)
	}
	if got := count(t, admin(t, url), rows); got != 10 {
		t.Errorf("%d rows, want 10", got)
	}
}

// The server is killed again and again while batches are written: a commit whose
// answer was lost is repeated, and leaves each event once.
func TestKillDuringCommit(t *testing.T) {
	srv := pgtest.Start(t, pgtest.Config{})
	url := srv.Database(t)
	cfg := fast()
	progress := make(chan struct{}, 1000)
	cfg.Observe = func(b sink.Batch) { progress <- struct{}{} }
	s := open(t, url, cfg)
	const writers, batches, size = 2, 40, 150
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for b := range batches {
				errs := s.HandleBatch(t.Context(), deliveries(t, samples((w*batches+b)*size, size)...))
				if err := errors.Join(errs...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		for range 15 {
			<-progress
		}
		srv.Kill()
		if err := srv.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	conn := admin(t, url)
	if got, distinct := count(t, conn, rows), count(t, conn, "SELECT count(DISTINCT event_id) FROM events"); got != writers*batches*size || distinct != got {
		t.Errorf("%d rows, %d ids, want %d", got, distinct, writers*batches*size)
	}
}

// A lock that somebody holds is waited for, without leaving statements behind on
// the server that wait too.
func TestLockedTable(t *testing.T) {
	url := pgtest.Database(t)
	cfg, states, _ := watched()
	cfg.Timeout = 300 * time.Millisecond
	s := open(t, url, cfg)
	conn := admin(t, url)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE events IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	done := background(t, s, t.Context(), samples(0, 4))
	if st := paused(t, states, done); !strings.Contains(st.Reason, "no answer within 300ms") {
		t.Errorf("reason %q", st.Reason)
	}
	const waiting = `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 30 { // long enough for several tries
		<-tick.C
		var n int
		if err := tx.QueryRow(t.Context(), waiting).Scan(&n); err != nil || n > 1 {
			t.Fatalf("%d statements wait for the lock, %v", n, err)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-done...); err != nil {
		t.Fatal(err)
	}
	if got := count(t, conn, rows); got != 4 {
		t.Errorf("%d rows, want 4", got)
	}
}

// What is wrong with the database as a whole is no fault of the rows, whatever
// the error is called.
func TestDatabaseAtFault(t *testing.T) {
	cases := []struct{ name, set, unset string }{
		{"read only", "ALTER DATABASE %s SET default_transaction_read_only = on", "ALTER DATABASE %s RESET default_transaction_read_only"},
		{"column gone", "ALTER TABLE events RENAME source TO origin", "ALTER TABLE events RENAME origin TO source"},
		{"table gone", "ALTER TABLE events RENAME TO away", "ALTER TABLE away RENAME TO events"},
		{"unknown code for all", trigger("ZZ001", "true"), dropTrigger},
		{"no default partition", "ALTER TABLE events DETACH PARTITION events_default; ALTER TABLE events DETACH PARTITION events_20261129; DROP TABLE events_20261129",
			"ALTER TABLE events ATTACH PARTITION events_default DEFAULT"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			url := pgtest.Database(t)
			config, err := pgx.ParseConfig(url)
			if err != nil {
				t.Fatal(err)
			}
			sql := func(s string) string { return strings.ReplaceAll(s, "%s", config.Database) }
			cfg, states, _ := watched()
			s := open(t, url, cfg)
			conn := admin(t, url)
			exec(t, conn, sql(c.set))
			if c.name == "read only" { // only new connections take it
				exec(t, conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
			}
			done := background(t, s, t.Context(), samples(0, 120))
			paused(t, states, done)
			exec(t, conn, sql(c.unset))
			if err := errors.Join(<-done...); err != nil {
				t.Fatal(err)
			}
			if got := count(t, conn, rows); got != 120 {
				t.Errorf("%d rows, want 120", got)
			}
		})
	}
}

// When the process drains, a paused batch comes back with the cause, to be released.
func TestContextEnds(t *testing.T) {
	srv := pgtest.Start(t, pgtest.Config{})
	cfg, states, _ := watched()
	s := open(t, srv.Database(t), cfg)
	srv.Stop()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := background(t, s, ctx, samples(0, 20))
	paused(t, states, done)
	cancel(forebay.ErrDraining)
	errs := <-done
	if len(errs) != 20 {
		t.Fatalf("%d errors", len(errs))
	}
	for _, err := range errs {
		if !errors.Is(err, forebay.ErrDraining) || forebay.IsPermanent(err) {
			t.Errorf("error %v", err)
		}
	}
}
