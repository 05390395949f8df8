//go:build e2e && linux

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// binary is what `make build` made.
var binary = filepath.Join("..", "..", "bin", "forebay")

func TestMain(m *testing.M) {
	if _, err := os.Stat(binary); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: there is no binary: run `make e2e`, which builds it")
		os.Exit(1)
	}
	pgtest.Main(m)
}

// server is one `forebay serve`, which a test starts, kills and starts again on
// the same address and data folder.
type server struct {
	t    *testing.T
	url  string
	sqs  string // host:port of the SQS endpoint; empty: it is off
	data string
	env  []string
	wrap []string // a command that runs the program, if any
	args []string

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	log    string        // the file with what it wrote
}

func newServer(t *testing.T, env ...string) *server {
	t.Helper()
	s := &server{t: t, url: "http://" + freeAddress(t), data: filepath.Join(t.TempDir(), "data"), env: env}
	s.log = filepath.Join(t.TempDir(), "server.log")
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the server wrote:\n%s", tail(s.log))
		}
	})
	return s
}

// serve starts a server that writes to a database and waits until it is ready.
func serve(t *testing.T, database string) *server {
	t.Helper()
	s := newServer(t, "DATABASE_URL="+database)
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.spawn()
	if !eventually(s.t, 60*time.Second, func() bool { return s.ready() || s.ended() }) || s.ended() {
		s.t.Fatalf("the server is not ready: %s", tail(s.log))
	}
}

func (s *server) spawn() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	line := append(append([]string{}, s.wrap...), binary, "serve", "--data", s.data, "--listen", strings.TrimPrefix(s.url, "http://"),
		"--sqs-listen", cmp.Or(s.sqs, "off"))
	line = append(line, s.args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(cleanEnv(), s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	s.cmd, s.exited = cmd, exited
}

// cleanEnv is the environment without settings of this program.
func cleanEnv() []string {
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if name != "DATABASE_URL" && name != "PORT" && !strings.HasPrefix(name, "FOREBAY_") && !strings.HasPrefix(name, "AWS_") {
			env = append(env, pair)
		}
	}
	return env
}

func (s *server) ready() bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	status, _, err := get(ctx, s.url+"/readyz")
	return err == nil && status == http.StatusOK
}

func (s *server) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// kill ends it as a power loss of the process would.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.exited
		s.cmd = nil
	}
}

// terminate asks it to end, waits for that and gives its exit code.
func (s *server) terminate(within time.Duration) int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(within):
		s.t.Fatalf("SIGTERM did not end the server within %s: %s", within, tail(s.log))
	}
	code := s.cmd.ProcessState.ExitCode()
	s.cmd = nil
	return code
}

// rss is the resident memory in bytes; 0 of a process that has ended.
func (s *server) rss() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// forebay runs a sub-command against the server and gives what it printed.
func (s *server) forebay(args ...string) (string, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(cleanEnv(), "FOREBAY_URL="+s.url, "FOREBAY_DATA="+s.data)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("forebay %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (s *server) mustForebay(args ...string) string {
	s.t.Helper()
	out, err := s.forebay(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// eventually asks again and again until it holds; false when the time is up.
func eventually(t *testing.T, within time.Duration, holds func() bool) bool {
	t.Helper()
	deadline := time.After(within)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline:
			return holds()
		case <-t.Context().Done():
			return false
		}
	}
	return true
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}
