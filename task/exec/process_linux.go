package exec

import (
	"errors"
	"syscall"

	osexec "os/exec"

	"golang.org/x/sys/unix"
)

// dieWithUs makes the system end the program when this process dies, however it
// dies: else it would go on beside its own repetition.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// wait waits for a program's end, and calls ended before its number is free for
// another process.
func wait(cmd *osexec.Cmd, ended func()) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	ended()
	return cmd.Wait()
}
