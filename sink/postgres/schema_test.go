package postgres_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/sink/postgres"
)

func partitions(t *testing.T, c *pgx.Conn) []string {
	t.Helper()
	rows, err := c.Query(t.Context(), `SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
		WHERE inhparent = 'events'::regclass ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// clock is a clock that tests turn.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func TestPartitions(t *testing.T) {
	db := pgtest.Database(t)
	clk := &clock{now: noon}
	cfg := fast()
	cfg.Now = clk.Now
	s := open(t, db, cfg)
	conn := admin(t, db)
	want := []string{"events_20261129", "events_20261130", "events_20261201", "events_20261202", "events_default"}
	if got := partitions(t, conn); !slices.Equal(got, want) {
		t.Fatalf("at first %v", got)
	}
	// Over midnight, with nobody having made the day ahead.
	exec(t, conn, "DROP TABLE events_20261202")
	before, after, late, far := sample(1), sample(2), sample(3), sample(4)
	before.ReceivedAt = time.Date(2026, 12, 3, 23, 59, 59, 999999000, time.UTC)
	after.ReceivedAt = before.ReceivedAt.Add(time.Microsecond)
	late.ReceivedAt = noon.AddDate(0, 0, -20)
	far.ReceivedAt = noon.AddDate(-20, 0, 0)
	clk.Set(after.ReceivedAt)
	mustWrite(t, s, before, after, late, far)
	for table, id := range map[string]string{
		"events_20261203": before.ID, "events_20261204": after.ID, "events_20261109": late.ID, "events_default": far.ID,
	} {
		if count(t, conn, "SELECT count(*) FROM ONLY "+table+" WHERE event_id = $1", id) != 1 {
			t.Errorf("%s is not in %s", id, table)
		}
	}
	if err := s.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := partitions(t, conn); !slices.Contains(got, "events_20261207") || slices.Contains(got, "events_20261208") {
		t.Errorf("after upkeep %v", got)
	}
}

// Rows that went to the default partition, since their day had none, move to their
// day as soon as it has one.
func TestDefaultPartitionIsEmptied(t *testing.T) {
	db := pgtest.Database(t)
	s := open(t, db, fast())
	conn := admin(t, db)
	exec(t, conn, "DROP TABLE events_20261130")
	exec(t, conn, `INSERT INTO events (event_id, event_type, payload, received_at)
		SELECT 'e' || n, 't', '{}', '2026-11-30 10:00Z' FROM generate_series(1, 50) n`)
	if err := s.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := count(t, conn, "SELECT count(*) FROM ONLY events_20261130"); got != 50 {
		t.Errorf("%d rows in the day, want 50", got)
	}
	if got := count(t, conn, rows); got != 50 {
		t.Errorf("%d rows, want 50", got)
	}
	e := sample(1)
	e.ID, e.ReceivedAt = "e1", time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	mustWrite(t, s, e)
	if got := count(t, conn, rows); got != 50 {
		t.Errorf("the moved rows have lost their key: %d", got)
	}
}

func TestRetention(t *testing.T) {
	db := pgtest.Database(t)
	l := &log{}
	cfg := fast()
	cfg.Retention, cfg.Logger = 48*time.Hour, l.logger()
	conn := admin(t, db)
	keep := open(t, db, fast())
	for i := range 6 {
		e := sample(i)
		e.ReceivedAt = noon.AddDate(0, 0, -i)
		mustWrite(t, keep, e)
	}
	ancient := sample(10)
	ancient.ReceivedAt = noon.AddDate(-20, 0, 0)
	mustWrite(t, keep, ancient)
	if err := keep.Maintain(t.Context()); err != nil || count(t, conn, rows) != 7 {
		t.Fatalf("without a retention something left: %v", err)
	}
	open(t, db, cfg)
	// Noon of the 27th is the edge: the day of the 27th still has newer events.
	if got := count(t, conn, rows); got != 3 {
		t.Errorf("%d rows, want 3", got)
	}
	if got := partitions(t, conn); got[0] != "events_20261127" {
		t.Errorf("partitions %v", got)
	}
	if got := count(t, conn, "SELECT count(*) FROM pg_class WHERE relname = 'events_20261126'"); got != 0 {
		t.Error("the detached day is still there")
	}
	if got := strings.Count(l.String(), "day dropped by retention"); got != 3 {
		t.Errorf("%d lines about dropped days:\n%s", got, l)
	}
}

// Several processes start on an empty database at once and write the same events.
func TestSinksSideBySide(t *testing.T) {
	db := pgtest.Database(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), db, fast())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for b := range 10 {
				events := samples(b*150, 150)
				for i := range events {
					events[i].ReceivedAt = noon.AddDate(0, 0, -b)
				}
				if err := errors.Join(s.HandleBatch(t.Context(), deliveries(t, events...))...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := count(t, admin(t, db), rows); got != 1500 {
		t.Errorf("%d rows, want 1500", got)
	}
}

func TestRefusedAtOpen(t *testing.T) {
	cases := []struct {
		name, sql string
		made      bool // by this program, before sql
		code      forebay.Code
		text      string
	}{
		{"foreign", "CREATE TABLE events (id int, name varchar)", false, forebay.CodeInvalid, "not from this program; its columns: id integer, name character varying"},
		{"newer", "UPDATE forebay_schema SET version = 99", true, forebay.CodeTooNew, "version 99, this program knows 1"},
		{"changed", "ALTER TABLE events DROP COLUMN source, ALTER user_id TYPE varchar", true, forebay.CodeInvalid, "source is missing; user_id is character varying, not text"},
		{"needed", "ALTER TABLE events ADD COLUMN tenant text NOT NULL", true, forebay.CodeInvalid, "tenant is NOT NULL and has no default"},
		{"more", "ALTER TABLE events ADD COLUMN note text", true, "", ""},
		{"view", "CREATE VIEW events AS SELECT 1 AS one", false, forebay.CodeInvalid, "its columns: one integer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			db := pgtest.Database(t)
			if c.made {
				open(t, db, fast())
			}
			exec(t, admin(t, db), c.sql)
			s, err := postgres.Open(t.Context(), db, fast())
			if err == nil {
				defer s.Close()
			}
			if forebay.CodeOf(err) != c.code || c.text != "" && !strings.Contains(err.Error(), c.text) {
				t.Errorf("code %q, error %v", forebay.CodeOf(err), err)
			}
			if c.code == "" {
				mustWrite(t, s, samples(0, 150)...)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	db := pgtest.Database(t)
	cfg := fast()
	cfg.Table, cfg.Retention = "Bad Table", time.Hour
	_, err := postgres.Open(t.Context(), db, cfg)
	if err == nil || !strings.Contains(err.Error(), "(table)") || !strings.Contains(err.Error(), "(retention)") {
		t.Errorf("not all problems at once: %v", err)
	}
	exec(t, admin(t, db), "CREATE SCHEMA app")
	cfg = fast()
	cfg.Table = "app.clicks"
	mustWrite(t, open(t, db, cfg), samples(0, 120)...)
	if got := count(t, admin(t, db), "SELECT count(*) FROM ONLY app.clicks_20261129"); got != 120 {
		t.Errorf("%d rows, want 120", got)
	}
}

// No error and no log line gives a password away, however wrong the URL is.
func TestPasswordStaysSecret(t *testing.T) {
	srv := pgtest.Shared(t)
	good, err := url.Parse(srv.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	host := good.Host
	const secret = "x:s3cr3t/y" // unescaped, a parser takes a part of it for a port
	urls := []string{
		"postgres://forebay:" + secret + "@" + host + "/test1?sslmode=disable",
		"postgres://forebay:" + url.QueryEscape(secret) + "@" + host + "/test1?sslmode=disable",
		"postgres://forebay:" + url.QueryEscape(secret) + "@" + host + "/nowhere?sslmode=disable",
		"postgres://forebay:" + url.QueryEscape(secret) + "@" + host + "/test1?sslmode=maybe",
		"postgres://forebay:" + url.QueryEscape(secret) + "@" + host + ":x/test1",
		"postgres://forebay@" + host + "/test1?sslmode=bad&password=" + url.QueryEscape(secret),
		"host=127.0.0.1 user=forebay password=" + secret + " sslmode=maybe",
		"host=127.0.0.1 port=x user=forebay password='" + secret + "'",
		secret,
	}
	for _, u := range urls {
		l := &log{}
		cfg := fast()
		cfg.Config = sink.Config{Logger: l.logger()}
		s, err := postgres.Open(t.Context(), u, cfg)
		if err == nil {
			s.Close()
			t.Errorf("%s was accepted", u)
			continue
		}
		if forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("%s: code %s", u, forebay.CodeOf(err))
		}
		text := err.Error() + l.String()
		for _, part := range []string{secret, url.QueryEscape(secret), "s3cr3t"} {
			if strings.Contains(text, part) {
				t.Errorf("%s: the error tells %q: %s", u, part, text)
			}
		}
	}
}
