//go:build e2e && linux

package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// daemon is a Node program that runs until SIGTERM.
type daemon struct {
	cmd   *exec.Cmd
	lines chan string // closed when it has ended
	seen  []string
}

func runUntilTerm(t *testing.T, env []string, arguments ...string) *daemon {
	t.Helper()
	cmd := exec.Command("node", arguments...)
	cmd.Env = append(cleanEnv(), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{cmd: cmd, lines: make(chan string, 10_000)}
	go func() {
		defer close(d.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			d.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return d
}

// await waits for a line that begins so, or finds it among those that came before.
func (d *daemon) await(t *testing.T, begin string) {
	t.Helper()
	for _, line := range d.seen {
		if strings.HasPrefix(line, begin) {
			return
		}
	}
	late := time.After(time.Minute)
	for {
		select {
		case line, ok := <-d.lines:
			if !ok {
				t.Fatalf("it ended without %q; it said %q", begin, d.seen)
			}
			d.seen = append(d.seen, line)
			if strings.HasPrefix(line, begin) {
				return
			}
		case <-late:
			t.Fatalf("it did not say %q; it said %q", begin, d.seen)
		}
	}
}

// term asks it to end and waits for its last word.
func (d *daemon) term(t *testing.T, last string) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	d.await(t, last)
}
