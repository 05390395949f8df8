package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/postgres"
	"github.com/forebayhq/forebay/internal/pgtest"
)

// arranged is a database after some statements; %s in them is its name.
func arranged(t *testing.T, statements ...string) (at string, conn *pgx.Conn) {
	t.Helper()
	at = pgtest.Database(t)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err = pgx.Connect(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), strings.ReplaceAll(s, "%s", path.Base(u.Path)), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(s, err)
		}
	}
	return at, conn
}

// What is asked for by the clock of this machine holds, and what is told is by it, where the
// server's clock is an hour ahead or behind.
func TestClocksThatDiffer(t *testing.T) {
	for _, by := range []string{"1 hour", "-1 hour"} {
		at, _ := arranged(t, `CREATE SCHEMA shift`, `CREATE FUNCTION shift.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS $$ SELECT pg_catalog.clock_timestamp() + interval '`+by+`' $$`, `ALTER DATABASE %s SET search_path = shift, pg_catalog`)
		e := open(t, postgres.Config{URL: at})
		later, now := message("later"), message("now")
		later.Job = &forebay.JobOptions{}
		later.NotBefore = time.Now().Add(30 * time.Minute)
		now.Job = &forebay.JobOptions{Expires: time.Now().Add(20 * time.Minute), Deadline: time.Now().Add(30 * time.Minute)}
		past := message("past")
		past.NotBefore = time.Now().Add(-time.Minute)
		send(t, e, later, now, past)
		ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 9, Lease: 10 * time.Minute})
		if err != nil || len(ds) != 2 {
			t.Fatalf("%s: %d came, %v; want the two that are due", by, len(ds), err)
		}
		for _, d := range ds {
			if left := time.Until(d.LeaseUntil); left < 5*time.Minute || left > 11*time.Minute {
				t.Errorf("%s: the lease of ten minutes of %s is told to last %v", by, d.ID, left)
			}
		}
		j, err := e.Job(t.Context(), "later")
		if off := j.Due.Sub(later.NotBefore).Abs(); err != nil || off > 5*time.Minute {
			t.Errorf("%s: a job is told to be due %v off, %v", by, off, err)
		}
		soon := time.Now().Add(-time.Second)
		if errs, err := e.Change(t.Context(), []engine.JobChange{{ID: "later", Due: &soon}}); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		if ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 9}); err != nil || len(ds) != 1 {
			t.Errorf("%s: %d came of one that was made due now, %v", by, len(ds), err)
		}
	}
}

// A user from whom nothing is taken is told so at the start and by Check.
func TestUserWhoMayOnlyRead(t *testing.T) {
	at, conn := arranged(t)
	e := open(t, postgres.Config{URL: at})
	if err := e.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET default_transaction_read_only = on'; END $$`); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(t.Context(), postgres.Config{URL: at})
	if forebay.CodeOf(err) != forebay.CodeUnavailable || !strings.Contains(err.Error(), "default_transaction_read_only") {
		t.Errorf("the opening gave %v", err)
	}
}

// Connections that the server ends because nothing came are made anew, unseen.
func TestServerEndsIdleConnections(t *testing.T) {
	at, conn := arranged(t, `ALTER DATABASE %s SET idle_session_timeout = '30ms'`)
	var e *postgres.Engine
	for e == nil { // an opening does not go on after it on a slow machine
		var err error
		e, err = postgres.OpenInBubble(t.Context(), postgres.Config{URL: at}, nil) // which has no other connections
		if err != nil && !strings.Contains(err.Error(), "57P05") {
			t.Fatal(err)
		}
	}
	defer e.Close()
	for i := range 3 {
		for there := 1; there > 0; {
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'forebay'`).Scan(&there); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Send(t.Context(), []forebay.Message{message(fmt.Sprint("m", i))}); err != nil {
			t.Fatal(err)
		}
	}
}

// The name of a schema is plain, and may be as long as PostgreSQL lets it be.
func TestNamesOfSchemas(t *testing.T) {
	at, _ := arranged(t)
	for _, name := range []string{`a'b`, `a"b`, "a~b", "1a", "Ab", strings.Repeat("s", 64)} {
		if _, err := postgres.Open(t.Context(), postgres.Config{URL: at, Schema: name}); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("the schema %s gave %v", name, err)
		}
	}
	cfg := postgres.Config{URL: at, Schema: strings.Repeat("s", 63)}
	a, b := open(t, cfg), open(t, cfg)
	for i := 0; !postgres.Hears(b); i++ {
		if i == 1000 {
			t.Fatal("b does not hear a")
		}
		m := message(fmt.Sprint("m", i))
		m.Job = &forebay.JobOptions{}
		send(t, a, m)
	}
	for _, text := range []string{"a\x00b", "a\xffb"} {
		if _, err := a.History(t.Context(), engine.HistoryQuery{Job: text, Limit: 1}); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("the history of %q gave %v", text, err)
		}
	}
}
