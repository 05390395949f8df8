//go:build unix

package backup

import (
	"io/fs"
	"os"
	"syscall"
)

// giveTo gives a file the owner that another has.
func giveTo(path string, other fs.FileInfo) error {
	if s, ok := other.Sys().(*syscall.Stat_t); ok {
		return os.Lchown(path, int(s.Uid), int(s.Gid))
	}
	return nil
}
