//go:build linux

package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_CHILD") != "" {
		child()
	}
	pgtest.Main(m)
}

// child starts a server, tells its address and waits to be killed.
func child() {
	s, err := pgtest.New(context.Background(), pgtest.Config{})
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(s.URL("postgres") + "\n")
	select {}
}

func query(t *testing.T, url, sql string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var s string
	err = conn.QueryRow(ctx, sql).Scan(&s)
	return s, err
}

func TestDatabasesAreSeparate(t *testing.T) {
	a, b := pgtest.Database(t), pgtest.Database(t)
	if _, err := query(t, a, "CREATE TABLE only_in_a AS SELECT 1 AS n; "); err != nil && err != pgx.ErrNoRows {
		t.Fatal(err)
	}
	got, err := query(t, b, "SELECT coalesce(to_regclass('only_in_a')::text, 'none')")
	if err != nil || got != "none" {
		t.Fatalf("second database has the table of the first: %q, %v", got, err)
	}
	if got, err := query(t, a, "SHOW fsync"); err != nil || got != "on" {
		t.Fatalf("fsync = %q, %v", got, err)
	}
}

func TestStopKillPause(t *testing.T) {
	s := pgtest.Start(t, pgtest.Config{Settings: map[string]string{"work_mem": "5MB"}})
	url := s.Database(t)
	up := func(when string) {
		t.Helper()
		if got, err := query(t, url, "SHOW work_mem"); err != nil || got != "5MB" {
			t.Fatalf("%s: work_mem = %q, %v", when, got, err)
		}
	}
	up("at first")
	for name, end := range map[string]func(){"stop": s.Stop, "kill": s.Kill} {
		end()
		if _, err := query(t, url, "SELECT 'x'"); err == nil {
			t.Fatalf("%s: the server still answers", name)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		up("after " + name)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if conn, err := pgx.Connect(ctx, url); err == nil {
		conn.Close(ctx)
		t.Fatal("the paused server answers")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	up("after pause")
}

// A test binary that is killed must not leave a server behind.
func TestServerDiesWithItsProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PGTEST_CHILD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(line[:n]))
	if _, err := query(t, url, "SELECT 'x'"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := query(t, url, "SELECT 'x'"); err != nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the server outlived its process")
		case <-tick.C:
		}
	}
}
