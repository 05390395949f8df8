package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// crowd posts events from several clients until told to stop and remembers what was
// acknowledged.
type crowd struct {
	mu    sync.Mutex
	acked []string
	more  *sync.Cond
}

func newCrowd() *crowd {
	c := &crowd{}
	c.more = sync.NewCond(&c.mu)
	return c
}

func (c *crowd) post(ctx context.Context, url, id string) {
	body := fmt.Sprintf(`{"eventId":%q,"eventType":"load","payload":{"id":%q},"userId":"u1"}`, id, id)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/ingest/event", strings.NewReader(body))
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusAccepted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = append(c.acked, id)
	c.more.Broadcast()
}

func (c *crowd) wait(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.acked) < n {
		c.more.Wait()
	}
}

// SIGTERM under load: the server ends with 0, and what it acknowledged is in the
// database exactly once after the next start.
func TestTermUnderLoad(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "--set", "server.grace=0s")
	c := newCrowd()
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c.post(ctx, p.url, fmt.Sprintf("%d-%d", n, i))
			}
		})
	}
	c.wait(500)
	p.signal(t)
	p.wait(t)
	stop()
	clients.Wait()
	if _, err := os.Stat(serverPath(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("server.json is left: %v", err)
	}

	again := start(t, dir)
	path := filepath.Join(dir, eventsFile)
	err := repeatedly(t.Context(), func() error {
		rows, err := countRows(path)
		if err == nil && int(rows) < len(c.acked) {
			err = fmt.Errorf("%d rows of %d acknowledged events", rows, len(c.acked))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	again.signal(t)
	again.wait(t)
	written := ids(t, path)
	for _, id := range c.acked {
		if written[id] != 1 {
			t.Errorf("%s was acknowledged and is there %d times", id, written[id])
		}
	}
}

func ids(t *testing.T, path string) map[string]int {
	t.Helper()
	all := map[string]int{}
	err := onFile(path, sqlite.OpenReadOnly, func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, "SELECT event_id FROM events", &sqlitex.ExecOptions{
			ResultFunc: func(stmt *sqlite.Stmt) error { all[stmt.ColumnText(0)]++; return nil },
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// hole is a database that takes connections and says nothing.
func hole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var held sync.WaitGroup
	held.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			held.Go(func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); held.Wait() })
	return "postgres://app:hunter2@" + l.Addr().String() + "/shop?sslmode=disable"
}

// A database that never answers stops neither the start nor accepting nor, upon a
// second signal or the end of the time to drain, the stop. The event is written
// after the next start.
func TestHangingDatabase(t *testing.T) {
	for name, drain := range map[string]string{"second signal": "1h", "deadline": "100ms"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := start(t, dir, "--set", "sink.url="+hole(t), "--set", "server.grace=0s", "--set", "server.drain="+drain)
			c := newCrowd()
			c.post(t.Context(), p.url, "kept")
			if len(c.acked) != 1 {
				t.Fatal("the event was not accepted")
			}
			p.signal(t)
			if name == "second signal" {
				p.signal(t)
			}
			p.wait(t)
			if log := p.log.String(); strings.Contains(log, "hunter2") {
				t.Errorf("a password is in the log: %s", log)
			}

			again := start(t, dir)
			err := repeatedly(t.Context(), func() error {
				if n := ids(t, filepath.Join(dir, eventsFile))["kept"]; n != 1 {
					return fmt.Errorf("the event is there %d times", n)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			again.signal(t)
			again.wait(t)
		})
	}
}

// A killed server leaves a server.json behind; the next one takes the folder over.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // events, and a token
		if info, err := f.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %s", f.Name(), info.Mode())
		}
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // killed
	out, err := exec.Command("forebay", "queues", "--data", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no server runs") {
		t.Errorf("%v: %s", err, out)
	}
	again := start(t, dir)
	again.signal(t)
	again.wait(t)
}

// refused runs a server that must not start and gives what it said.
func refused(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitStart {
		t.Errorf("%v, want exit code %d: %s", err, exitStart, out)
	}
	return string(out)
}

func TestNewerDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir)
	p.signal(t)
	p.wait(t)
	for _, name := range []string{eventsFile, queueFile} {
		path := filepath.Join(dir, name)
		err := onFile(path, sqlite.OpenReadWrite, func(conn *sqlite.Conn) error {
			return sqlitex.ExecuteTransient(conn, "PRAGMA user_version = 4711", nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		before := content(t, path)
		out := refused(t, exec.Command("forebay", "serve", "--data", dir, "--listen", "127.0.0.1:0", "--sqs-listen", "off"))
		if !strings.Contains(out, "newer") && !strings.Contains(out, "4711") {
			t.Errorf("%s: %s", name, out)
		}
		if !bytes.Equal(before, content(t, path)) {
			t.Errorf("%s was changed", name)
		}
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A folder that may be read and not written. Root may write everywhere, so as root
// the server runs as nobody.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "forebay-test-") // t.TempDir is closed to nobody
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, dir := filepath.Join(base, "forebay"), filepath.Join(base, "data")
	if err := errors.Join(os.Chmod(base, 0o755), os.WriteFile(program, content(t, self), 0o755), os.Mkdir(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--sqs-listen", "off")
	cmd.Dir = base
	if os.Getuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if out := refused(t, cmd); !strings.Contains(out, "permission denied") || !strings.Contains(out, "--data DIR") {
		t.Errorf("%s", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// In the grace after SIGTERM /readyz says 503, so that load balancers look
// elsewhere, while events are still taken. A second signal ends it.
func TestGrace(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--set", "server.grace=1m")
	p.signal(t)
	err := repeatedly(t.Context(), func() error {
		resp, err := http.Get(p.url + "/readyz")
		if err == nil && resp.StatusCode != http.StatusServiceUnavailable {
			err = errors.New(resp.Status)
		}
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	if err != nil {
		t.Error(err)
	}
	c := newCrowd()
	c.post(t.Context(), p.url, "late")
	if len(c.acked) != 1 {
		t.Error("an event in the grace was not accepted")
	}
	p.signal(t)
	p.wait(t)
}
