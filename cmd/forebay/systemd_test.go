package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// systemdTold is what a server tells systemd.
type systemdTold struct{ conn *net.UnixConn }

func listenSystemd(t *testing.T, path string) systemdTold {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return systemdTold{conn}
}

// until reads until a line comes.
func (s systemdTold) until(t *testing.T, line string) {
	t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 4096); ; {
		n, err := s.conn.Read(b)
		if err != nil {
			t.Fatalf("waiting for %s: %v", line, err)
		}
		for got := range strings.SplitSeq(string(b[:n]), "\n") {
			if got == line {
				return
			}
		}
	}
}

// underSystemd is a command that gets a socket as systemd hands it over: under the
// process id that it will have.
func underSystemd(l *net.TCPListener, notify, name string, args ...string) (*exec.Cmd, error) {
	f, err := l.File()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec forebay "$@"`, "sh"}, args...)...)
	cmd.ExtraFiles = []*os.File{f}
	cmd.Env = []string{"LISTEN_FDS=1", "LISTEN_FDNAMES=" + name, "NOTIFY_SOCKET=" + notify, "WATCHDOG_USEC=300000"}
	return cmd, nil
}

// The socket outlives the server: what connects while none runs is answered by the next
// one. Each tells systemd when it is ready, that it lives, and that it stops.
func TestSystemd(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := listenSystemd(t, filepath.Join(base, "notify"))
	begin := func() *process {
		cmd, err := underSystemd(l, filepath.Join(base, "notify"), httpSocket, "serve", "--data", filepath.Join(base, "data"), "--set", "server.grace=0s")
		if err != nil {
			t.Fatal(err)
		}
		return startCommand(t, filepath.Join(base, "data"), cmd)
	}
	p := begin()
	told.until(t, "READY=1")
	told.until(t, "WATCHDOG=1")
	if want := "http://" + l.Addr().String(); p.url != want {
		t.Errorf("it serves at %s, want %s", p.url, want)
	}
	p.signal(t)
	told.until(t, "STOPPING=1")
	p.wait(t)

	c := newCrowd()
	sent := make(chan struct{})
	go func() {
		c.post(context.WithoutCancel(t.Context()), p.url, "between")
		close(sent)
	}()
	again := begin()
	<-sent
	if len(c.acked) != 1 {
		t.Error("what was sent between two servers was not answered by the second")
	}
	again.signal(t)
	again.wait(t)
}

func TestSocketsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		ip   net.IP
		code int
		says string
	}{
		"web":      {net.IPv4(127, 0, 0, 1), exitUsage, "FileDescriptorName=http"},
		httpSocket: {net.IPv4zero, exitStart, "no key exists"},
		sqsSocket:  {net.IPv4zero, exitStart, "access key"},
	} {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: one.ip})
		if err != nil {
			t.Fatal(err)
		}
		cmd, err := underSystemd(l, "", name, "serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(os.Environ(), cmd.Env...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != one.code || !strings.Contains(string(out), one.says) {
			t.Errorf("%s: %v, want exit code %d: %s", name, err, one.code, out)
		}
		l.Close()
	}
}

// In the grace, answers close the connections that clients keep, so that none of them is
// cut when the port closes.
func TestGraceClosesKeptConnections(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--set", "server.grace=1m")
	ask := func(method, path string) (closes bool, err error) {
		req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(`{"eventId":"e","eventType":"x","payload":{},"userId":"u"}`))
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, err
		}
		return resp.Close, resp.Body.Close()
	}
	both := func(want bool) error {
		for path, method := range map[string]string{"/healthz": http.MethodGet, "/ingest/event": http.MethodPost} {
			if closes, err := ask(method, path); err != nil || closes != want {
				return fmt.Errorf("%s closes: %t, %v", path, closes, err)
			}
		}
		return nil
	}
	if err := both(false); err != nil {
		t.Error(err)
	}
	p.signal(t)
	if err := repeatedly(t.Context(), func() error { return both(true) }); err != nil {
		t.Error(err)
	}
	p.signal(t)
	p.wait(t)
}
