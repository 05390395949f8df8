package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

type signal = syscall.Signal

const (
	sigFast      = syscall.SIGINT
	sigImmediate = syscall.SIGQUIT
	sigStop      = syscall.SIGSTOP
	sigContinue  = syscall.SIGCONT
)

// account is whom the server runs as.
type account struct{ uid, gid int }

// unprivileged is this process's own account, or for root that of postgres or,
// where there is none, of nobody: PostgreSQL refuses to run as root.
func unprivileged() (account, error) {
	if os.Getuid() != 0 {
		return account{os.Getuid(), os.Getgid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.Atoi(u.Uid)
		gid, gerr := strconv.Atoi(u.Gid)
		if uerr == nil && gerr == nil {
			return account{uid, gid}, nil
		}
	}
	return account{}, errors.New("pgtest: runs as root, and there is neither a user postgres nor nobody")
}

func (a account) own(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// run makes cmd run as the account, and ask the kernel for its end when the
// thread that starts it dies.
func (a account) run(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: sigImmediate}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// process is a started server.
type process struct {
	pid  int
	done chan struct{} // closed by the goroutine that waits for it
}

// startProcess starts cmd on a thread that lives as long as the process: the
// kernel's parent-death signal counts threads, not processes, and Go ends idle
// threads.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread() // or its end would be that of other processes which it has started
		defer close(p.done)
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // how a server ended that was killed says nothing
		}
	}()
	return p, <-started
}

func (p *process) signal(sig signal) {
	_ = syscall.Kill(p.pid, syscall.SIGCONT) // a frozen one would never see it
	_ = syscall.Kill(p.pid, sig)
}

// signalTree signals the server and then its children, one per connection.
func (p *process) signalTree(sig signal) error {
	if err := syscall.Kill(p.pid, sig); err != nil {
		return fmt.Errorf("pgtest: signal: %w", err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.pid, p.pid))
	if err != nil {
		return fmt.Errorf("pgtest: children: %w", err)
	}
	for _, f := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil {
			_ = syscall.Kill(pid, sig) // one that has just ended is fine
		}
	}
	return nil
}

func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
