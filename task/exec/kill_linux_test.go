package exec_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task/exec"
)

const childEnv = "FOREBAY_TEST_EXEC_PIPE"

// TestMain is also the process that TestAProgramDiesWithTheServer kills.
func TestMain(m *testing.M) {
	if pipe := os.Getenv(childEnv); pipe != "" {
		h, err := exec.New(exec.Config{Command: []string{"/bin/sh", "-c", `exec 3>"$1"; echo ready >&3; exec sleep 1000`, "sh", pipe}})
		if err != nil {
			panic(err)
		}
		var l told
		h.HandleJob(context.Background(), l.job(`{}`))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// living gives a pipe that is open while those live that opened it: reading it
// ends when the last of them is gone.
func living(t *testing.T) (path string, ready func(), gone func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *bufio.Reader, 1)
	go func() {
		f, err := os.Open(path) // waits for a writer
		if err == nil {
			t.Cleanup(func() { f.Close() })
			opened <- bufio.NewReader(f)
		}
	}()
	var r *bufio.Reader
	ready = func() {
		r = <-opened
		if line, err := r.ReadString('\n'); line != "ready\n" {
			t.Errorf("read %q, %v", line, err)
		}
	}
	gone = func() {
		if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
			t.Errorf("read %q, %v", rest, err)
		}
	}
	return path, ready, gone
}

func TestAllThatAProgramStartedIsGoneWhenTheAttemptEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		cancel bool
		want   error
		grace  time.Duration
	}{
		"cancelled":            {`exec 3>"$PIPE"; sleep 1000 & echo ready >&3; wait`, true, forebay.ErrCancelled, time.Hour},
		"deaf to SIGTERM":      {`exec 3>"$PIPE"; trap '' TERM; (trap '' TERM; sleep 1000) & echo ready >&3; while :; do sleep 1000; done`, true, forebay.ErrCancelled, time.Millisecond},
		"leaves one behind":    {`exec 3>"$PIPE"; (trap '' TERM HUP; sleep 1000) & echo ready >&3; echo '{"result":1}'`, false, nil, time.Hour},
		"ends well on SIGTERM": {`exec 3>"$PIPE"; trap 'exit 0' TERM; echo ready >&3; while :; do sleep 0.01; done`, true, nil, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe, ready, gone := living(t)
			h := sh(t, c.script, exec.Config{Grace: c.grace, Env: []string{"PIPE=" + pipe}})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan error, 1)
			go func() {
				var l told
				_, err := h.HandleJob(ctx, l.job(`{}`))
				done <- err
			}()
			ready()
			if c.cancel {
				cancel(forebay.ErrCancelled)
			}
			if err := <-done; !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			gone()
		})
	}
}

func TestAProgramDiesWithTheServer(t *testing.T) {
	t.Parallel()
	pipe, ready, gone := living(t)
	server := osexec.Command(os.Args[0])
	server.Env = append(os.Environ(), childEnv+"="+pipe)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ready()
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.Wait()
	gone()
}
