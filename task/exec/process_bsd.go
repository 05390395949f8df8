//go:build unix && !linux

package exec

import (
	"syscall"

	osexec "os/exec"
)

// dieWithUs has no means here.
func dieWithUs(*syscall.SysProcAttr) {}

// wait waits for a program's end, and calls ended then. Its number is free by then:
// that another process has it already would need all numbers to be used up between.
func wait(cmd *osexec.Cmd, ended func()) error {
	err := cmd.Wait()
	ended()
	return err
}
