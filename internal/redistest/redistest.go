// Package redistest gives tests private Redis servers: each on a free port of the
// loopback address, with a folder of its own, ended with the test. They can be
// stopped, killed, paused and started again with what they have on the disk.
//
// It promises that no server outlives the process that started it. It is for tests
// only and needs redis-server in PATH.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ErrMissing says that Redis is not installed.
var ErrMissing = errors.New("redistest: no redis-server in PATH; on Debian: apt-get install redis-server")

// Config says how a server runs.
type Config struct {
	Settings map[string]string // as in redis.conf; they win over the defaults
}

// Server is one server. Its methods are for one goroutine at a time.
type Server struct {
	dir  string
	port int
	cfg  Config

	mu  sync.Mutex // guards cmd
	cmd *exec.Cmd
}

// New gives a server that does not run yet, with a folder for its files. Whoever starts it ends it.
func New(dir string, cfg Config) *Server { return &Server{dir: dir, cfg: cfg} }

// Start gives a server that runs until the end of the test.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	s := New(t.TempDir(), cfg)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Addr is host and port, the same after each start.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the address of one of the 16 databases.
func (s *Server) URL(database int) string { return fmt.Sprintf("redis://%s/%d", s.Addr(), database) }

// Start starts a server that does not run, on the port that it had before.
func (s *Server) Start(ctx context.Context) error {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return ErrMissing
	}
	for try := 0; ; try++ {
		if s.port == 0 || try > 0 && s.cmd == nil {
			if s.port, err = freePort(); err != nil {
				return err
			}
		}
		err := s.launch(ctx, bin)
		if err == nil || try == 4 || ctx.Err() != nil {
			return err
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) launch(ctx context.Context, bin string) error {
	settings := map[string]string{
		"port": strconv.Itoa(s.port), "bind": "127.0.0.1", "dir": s.dir, "save": "", "appendonly": "no", "databases": "16",
		"daemonize": "no", "enable-debug-command": "local", "logfile": filepath.Join(s.dir, "log"),
	}
	for name, value := range s.cfg.Settings {
		settings[name] = value
	}
	var conf strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&conf, "%s %q\n", name, value)
	}
	file := filepath.Join(s.dir, "redis.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(bin, file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { // ends with the process
		_ = cmd.Wait()
		close(ended)
	}()
	s.mu.Lock()
	s.cmd = cmd
	s.mu.Unlock()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if s.answers() {
			return nil
		}
		select {
		case <-ended:
			s.mu.Lock()
			s.cmd = nil
			s.mu.Unlock()
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("redistest: the server ended at once: %s", log)
		case <-ctx.Done():
			s.Kill()
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// answers tells whether the server takes commands: it may still load its data.
func (s *Server) answers() bool {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second)) // a connection that fails says so below
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "+PONG")
}

func (s *Server) end(sig syscall.Signal) {
	s.mu.Lock()
	cmd := s.cmd
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig) // it may have ended already
	for cmd.Process.Signal(syscall.Signal(0)) == nil {
		time.Sleep(2 * time.Millisecond)
	}
}

// Stop ends the server as an operator does; it writes what it is set to write.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends it at once.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause stops it from answering, with its connections open; Resume lets it go on.
func (s *Server) Pause() error  { return s.signal(syscall.SIGSTOP) }
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return errors.New("redistest: the server does not run")
	}
	return s.cmd.Process.Signal(sig)
}
