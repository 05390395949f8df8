//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// disk is a file system of its own below a data folder, so that it can be filled: an image
// in a file, mounted.
type disk struct {
	folder, image, ballast string
}

const diskSize = 1 << 30

// newDisk mounts one; nil without an error: that takes root, and who runs this is not.
func newDisk(dir, folder string) (*disk, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	d := &disk{folder: folder, image: filepath.Join(dir, "disk.img"), ballast: filepath.Join(folder, "ballast")}
	f, err := os.Create(d.image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(diskSize), f.Close()); err != nil {
		return nil, err
	}
	for _, line := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", d.image}, {"mount", "-o", "loop", d.image, folder}} {
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", line, err, out)
		}
	}
	return d, nil
}

// fill leaves nothing on it.
func (d *disk) fill() error {
	f, err := os.Create(d.ballast)
	if err != nil {
		return err
	}
	defer f.Close()
	// In halves: what is left at the end is less than a block.
	for piece := int64(256 << 20); piece >= 4<<10; {
		end, err := f.Seek(0, 2)
		if err != nil {
			return err
		}
		if err := syscall.Fallocate(int(f.Fd()), 0, end, piece); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				return fmt.Errorf("fallocate: %w", err)
			}
			piece /= 2
		}
	}
	return nil
}

func (d *disk) free() error { return os.Remove(d.ballast) }

func (d *disk) close() {
	for range 50 { // what a killed process had open is gone in a moment
		if syscall.Unmount(d.folder, 0) == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "soak: cannot unmount", d.folder)
}

// slow makes each flush of a process take so much longer, until ctx ends. It takes strace, which
// stops the program at each flush, in the kernel's own way.
func slow(ctx context.Context, pid int, by time.Duration) error {
	cmd := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,sync_file_range",
		"-e", fmt.Sprintf("inject=fsync,fdatasync:delay_exit=%d", by.Microseconds()), "-p", strconv.Itoa(pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ended by our signal
		close(ended)
	}()
	<-ctx.Done()
	_ = cmd.Process.Signal(syscall.SIGTERM) // it lets go of the program, and ends
	select {
	case <-ended:
	case <-time.After(5 * time.Second): // a thread that ends just then can keep it; the kernel lets go of the rest
		_ = cmd.Process.Kill()
		<-ended
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
