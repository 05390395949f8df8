//go:build linux

// Package pgtest runs private PostgreSQL servers for tests, benchmarks and the
// end-to-end suite.
//
// It promises: the server listens on a free port of 127.0.0.1 and a socket in a
// folder of its own, never runs as root, syncs to disk as a production server
// does, and ends with the process that started it, even when that process is
// killed. TCP connections need a password, so that tests can see one leak.
//
// It refuses to use a server that somebody else runs, and to skip: where
// PostgreSQL is not installed, it names the package that is missing. It needs
// Linux, whose kernel ends the server together with its parent.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// startDeadline bounds one start, crash recovery on a slow disk included.
const startDeadline = 60 * time.Second

// Config of a Server. The zero value works.
type Config struct {
	Settings map[string]string // server settings, over the defaults of this package
	Log      *os.File          // gets the server's log; nil: a file, told when a start fails
}

// Server is one private PostgreSQL server. Its methods may be called from
// several goroutines.
type Server struct {
	dir      string // holds data, socket, log and the password file
	bin      string
	port     int
	password string
	cfg      Config
	account  account

	mu   sync.Mutex
	proc *process // nil while stopped
	dbs  int      // databases made so far, for their names
}

// New makes a data folder and starts a server on it. Close it.
func New(ctx context.Context, cfg Config) (*Server, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	removeStale()
	acc, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	s := &Server{dir: dir, bin: bin, password: rand.Text(), cfg: cfg, account: acc}
	if err := s.init(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.firstStart(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// init makes the data folder.
func (s *Server) init(ctx context.Context) error {
	pass := filepath.Join(s.dir, "password")
	if err := os.WriteFile(pass, []byte(s.password), 0o600); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	for _, path := range []string{s.dir, pass} {
		if err := s.account.own(path); err != nil {
			return fmt.Errorf("pgtest: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "--no-sync", "--username=forebay",
		"--pwfile="+pass, "--auth-host=scram-sha-256", "--auth-local=trust",
		"--encoding=UTF8", "--locale=C", "--pgdata="+s.data())
	cmd.Dir = s.dir
	s.account.run(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	return nil
}

// firstStart looks for a port that stays free until the server has taken it.
func (s *Server) firstStart(ctx context.Context) error {
	var err error
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.Start(ctx); err == nil {
			return nil
		}
	}
	return err
}

// Start starts the server after Stop or Kill, on the same port, and returns when
// it answers. A running server is left as it is.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	cmd, closeLog, err := s.command()
	if err != nil {
		return err
	}
	proc, err := startProcess(cmd)
	closeLog()
	if err != nil {
		return fmt.Errorf("pgtest: start: %w", err)
	}
	if err := s.await(ctx, proc); err != nil {
		proc.signal(sigImmediate)
		<-proc.done
		return fmt.Errorf("pgtest: start: %w\n%s", err, s.logTail())
	}
	s.proc = proc
	return nil
}

// command builds the server's command line; the log is closed by the caller
// once the process has it.
func (s *Server) command() (*exec.Cmd, func(), error) {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(s.port),
		"unix_socket_directories": s.dir,
		"fsync":                   "on",
		"max_connections":         "50",
		"shared_buffers":          "128MB",
		"max_wal_size":            "1GB",
	}
	for k, v := range s.cfg.Settings {
		settings[k] = v
	}
	args := []string{"-D", s.data()}
	for k, v := range settings {
		args = append(args, "-c", k+"="+v)
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), args...)
	cmd.Dir = s.dir
	s.account.run(cmd)
	out, closeLog := s.cfg.Log, func() {}
	if out == nil {
		f, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("pgtest: %w", err)
		}
		out, closeLog = f, func() { f.Close() }
	}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, closeLog, nil
}

// await returns when the server answers a query.
func (s *Server) await(ctx context.Context, proc *process) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-proc.done:
			return fmt.Errorf("the server ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Stop ends the server as `pg_ctl stop -m fast` does: connections are cut, data
// is written. It returns when the server is gone.
func (s *Server) Stop() { s.end(sigFast) }

// Kill ends the server as a power cut does; the next Start recovers from the log.
func (s *Server) Kill() { s.end(sigImmediate) }

func (s *Server) end(sig signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	s.proc.signal(sig)
	<-s.proc.done
	s.proc = nil
}

// Pause freezes the server with all its connections: nothing is answered and
// nothing is closed, as behind a broken network. Resume goes on.
func (s *Server) Pause() error { return s.freeze(sigStop) }

// Resume ends Pause.
func (s *Server) Resume() error { return s.freeze(sigContinue) }

func (s *Server) freeze(sig signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return errors.New("pgtest: the server is stopped")
	}
	return s.proc.signalTree(sig)
}

// Close ends the server and removes its folder.
func (s *Server) Close() error {
	s.end(sigImmediate)
	return os.RemoveAll(s.dir)
}

// URL is the address of a database, user and password included.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword("forebay", s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Password is the one in URL, for tests that look for leaks.
func (s *Server) Password() string { return s.password }

// Create makes a fresh, empty database and gives its URL.
func (s *Server) Create(ctx context.Context) (string, error) {
	s.mu.Lock()
	s.dbs++
	name := fmt.Sprintf("test%d", s.dbs)
	s.mu.Unlock()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	return s.URL(name), nil
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

func (s *Server) logTail() string {
	b, err := os.ReadFile(s.logPath())
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("pgtest: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
