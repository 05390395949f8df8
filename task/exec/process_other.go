//go:build !unix

package exec

import (
	"context"
	"time"

	osexec "os/exec"

	"github.com/forebayhq/forebay"
)

// run has no way here to end all that a program started.
func run(context.Context, *osexec.Cmd, time.Duration, <-chan struct{}) (bool, error) {
	return false, forebay.Errorf(forebay.CodeUnsupported, "exec", "programs as handlers need a Unix system")
}
