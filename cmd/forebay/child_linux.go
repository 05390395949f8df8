package main

import "syscall"

// childAttr keeps Ctrl-C away from the child, which is stopped in order, and ends
// the child when this process dies.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
