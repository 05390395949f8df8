//go:build !linux

package bench

import "os"

func flush(f *os.File) error { return f.Sync() }
