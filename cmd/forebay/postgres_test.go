package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// The program on PostgreSQL: written, found, kept while the database is away, and
// written when it is back. The doctor tells how it is.
func TestPostgres(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t, pgtest.Config{})
	url := pg.Database(t)
	doctor := func() (string, error) {
		out, err := exec.Command("forebay", "doctor", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--set", "sink.url="+url).CombinedOutput()
		return string(out), err
	}
	if out, err := doctor(); err != nil || !strings.Contains(out, "the table events will be made") {
		t.Errorf("%v: %s", err, out)
	}

	foreign(t, url)

	p := start(t, t.TempDir(), "--set", "sink.url="+url, "--set", "sink.batchAge=10ms")
	c := newCrowd()
	c.post(t.Context(), p.url, "before")
	rows := func(want int) error {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		var n int
		err = conn.QueryRow(t.Context(), "SELECT count(*) FROM events").Scan(&n)
		if err == nil && n != want {
			err = fmt.Errorf("%d rows, want %d", n, want)
		}
		return err
	}
	if err := repeatedly(t.Context(), func() error { return rows(1) }); err != nil {
		t.Fatal(err)
	}
	if out, err := doctor(); err != nil || !strings.Contains(out, "table events in version") {
		t.Errorf("%v: %s", err, out)
	}
	out, err := exec.Command("forebay", "events", "where", "before", "--data", p.dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "* sink") {
		t.Errorf("%v: %s", err, out)
	}

	pg.Stop()
	c.post(t.Context(), p.url, "during")
	if len(c.acked) != 2 {
		t.Error("nothing is accepted while the database is away")
	}
	resp, err := http.Get(p.url + "/readyz")
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("not ready while the database is away: %v %v", resp, err)
	}
	if out, err := doctor(); err == nil || strings.Contains(out, pg.Password()) {
		t.Errorf("%v: %s", err, out)
	}
	if err := pg.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := repeatedly(t.Context(), func() error { return rows(2) }); err != nil {
		t.Error(err)
	}
	p.signal(t)
	p.wait(t)
	if log := p.log.String(); strings.Contains(log, pg.Password()) {
		t.Errorf("the password is in the log: %s", log)
	}
}

// foreign checks that a table that somebody else made is left alone, in one line.
func foreign(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE TABLE events (id int)"); err != nil {
		t.Fatal(err)
	}
	out := refused(t, exec.Command("forebay", "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--sqs-listen", "off", "--set", "sink.url="+url))
	if !strings.Contains(out, "events") || strings.Count(out, "\n") > 2 {
		t.Errorf("%s", out)
	}
	said, err := exec.Command("forebay", "doctor", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--set", "sink.url="+url).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "made by another program") {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := conn.Exec(t.Context(), "DROP TABLE events"); err != nil {
		t.Fatal(err)
	}
}
