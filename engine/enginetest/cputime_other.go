//go:build !unix

package enginetest

import "time"

// cpuTime is not known here.
func cpuTime() (used time.Duration, ok bool) { return 0, false }
