package image

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownGroup gives a process a group of its own, and has it killed when we die.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// limitSelf bounds this process: private memory, core files, files that it writes.
// Go reserves far more address space than it uses, so that is no measure.
func limitSelf(memory int64) error {
	for which, most := range map[int]uint64{unix.RLIMIT_DATA: uint64(memory), unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 1 << 30} {
		if err := unix.Setrlimit(which, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}

// limitTime gives this process so much more CPU time from now on.
func limitTime(d time.Duration) error {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &now); err != nil {
		return err
	}
	now.Cur = min(now.Max, uint64(used.Utime.Sec+used.Stime.Sec)+uint64(max(d/time.Second, 1))+1)
	return unix.Setrlimit(unix.RLIMIT_CPU, &now)
}
