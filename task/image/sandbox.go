package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// limits of one process.
type limits struct {
	memory int64 // bytes of address space
	cpu    time.Duration
	file   int64 // bytes of the largest file that it may write
}

// shell sets limits and becomes the command. POSIX counts files in blocks of 512
// bytes; memory is counted in KiB by all shells that have it.
const shell = `ulimit -c 0 && ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3" && shift 3 && exec "$@"`

// sandboxed makes a command that runs with limits, sees nothing of our environment
// and ends with all its children when ctx does.
func sandboxed(ctx context.Context, l limits, dir string, env []string, command ...string) *exec.Cmd {
	seconds := max(1, int64(l.cpu/time.Second))
	args := append([]string{"-c", shell, "sh", strconv.FormatInt(seconds, 10), strconv.FormatInt(l.memory>>10, 10),
		strconv.FormatInt(l.file>>9, 10)}, command...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Dir, cmd.Env = dir, env
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// died is how a process ended that did not end by itself.
type died struct{ how string }

func (d *died) Error() string { return d.how }

// run runs a sandboxed command and gives the end of what it said. The error is
// *died where it was killed or crashed.
func run(cmd *exec.Cmd) (string, error) {
	// A parent's death signal comes when the thread that started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	said := &tail{most: 2048}
	cmd.Stderr = said
	err := ending(cmd.Run())
	return said.String(), err
}

// ending makes a *died of the error of a process that did not end by itself.
func ending(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && (!exit.Exited() || exit.ExitCode() >= 126) {
		return &died{fmt.Sprintf("the process ended with %v", exit.ProcessState)}
	}
	return err
}

// tail keeps the last bytes that are written to it.
type tail struct {
	most int
	buf  bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if over := t.buf.Len() - t.most; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(t.buf.String()), " "), "?")
}
