//go:build unix

package main

import "golang.org/x/sys/unix"

// freeSpace is how many bytes this user may still write on the disk of a folder.
func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// openFiles is how many files and connections this process may have.
func openFiles() (uint64, error) {
	var r unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
	return uint64(r.Cur), err
}

// keepPrivate makes what this process creates readable by its owner only: a data
// folder that others may enter still holds what users did.
func keepPrivate() { unix.Umask(0o077) }
