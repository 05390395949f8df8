//go:build linux

package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The program is a static binary that reads the clock without asking the C library, so nothing
// can be put between the two from outside. What can: the same source, built with one line of
// the standard library's time.Now changed, which adds what a file holds. The wall clock moves
// then as an administrator or NTP moves it, for all of the program at once, and the monotonic
// clock does not, as on a real machine.

//go:embed clock.go.txt
var clockSource string

// clock is a wall clock that a server reads.
type clock struct{ file *os.File }

const clockVariable = "FOREBAY_SOAK_CLOCK"

func newClock(dir string) (*clock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "clock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	c := &clock{f}
	return c, c.set(0)
}

// set moves the clock that far from the machine's.
func (c *clock) set(d time.Duration) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(d))
	_, err := c.file.WriteAt(b[:], 0)
	return err
}

// buildWithClock builds the program so that its clock can be moved. The first time takes minutes,
// since all of the standard library is built anew.
func buildWithClock(ctx context.Context, dir, binary string) error {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return err
	}
	const before = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), before) != 1 {
		return fmt.Errorf("time.Now of this Go is not as expected: the clock cannot be moved; use --clock=false")
	}
	changed := strings.Replace(string(source), before, before+"\tsec, nsec = shifted(sec, nsec)\n", 1)
	files := map[string]string{"time.go": changed, "soak.go": clockSource}
	overlay := map[string]map[string]string{"Replace": {}}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		overlay["Replace"][filepath.Join(folder, name)] = path
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "nodynamic", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./cmd/forebay")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build with a clock: %w\n%s", err, out)
	}
	return nil
}
