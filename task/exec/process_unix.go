//go:build unix

package exec

import (
	"context"
	"runtime"
	"syscall"
	"time"

	osexec "os/exec"
)

// run runs a program in a process group of its own, to its end:
//
//  1. It ends by itself, or ctx ends or stop is closed: then its group gets SIGTERM,
//     and SIGKILL after grace.
//  2. What is left of its group gets SIGKILL.
//  3. Its output is read to the end.
//
// ended tells whether it was ended by us, and not by itself with success.
func run(ctx context.Context, cmd *osexec.Cmd, grace time.Duration, stop <-chan struct{}) (ended bool, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithUs(cmd.SysProcAttr)
	// A process that left the group may hold the output open for ever.
	cmd.WaitDelay = time.Second

	// The system ends the program when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := context.Cause(ctx); err != nil {
		return true, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	group := -cmd.Process.Pid
	exited, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-exited:
			return
		case <-ctx.Done():
		case <-stop:
		}
		ended = true
		syscall.Kill(group, syscall.SIGTERM)
		patience := time.NewTimer(grace)
		defer patience.Stop()
		select {
		case <-exited:
		case <-patience.C:
			syscall.Kill(group, syscall.SIGKILL)
		}
	}()
	err = wait(cmd, func() {
		close(exited)
		<-watched
		syscall.Kill(group, syscall.SIGKILL)
	})
	return ended && err != nil, err
}
