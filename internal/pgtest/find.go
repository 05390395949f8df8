//go:build linux

package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrMissing says that PostgreSQL is not installed.
var ErrMissing = errors.New("pgtest: no PostgreSQL server found in PATH or /usr/lib/postgresql/*/bin; " +
	"on Debian: apt-get install postgresql")

// findBin finds the folder with initdb and postgres: PATH first, then Debian's
// folders, the newest version first.
func findBin() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			if has(filepath.Dir(path), "postgres") {
				return filepath.Dir(path), nil
			}
		}
	}
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(dir string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range dirs {
		if has(dir, "initdb") && has(dir, "postgres") {
			return dir, nil
		}
	}
	return "", ErrMissing
}

func has(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// dirPrefix is followed by the id of the process that made the folder.
const dirPrefix = "forebay-pg-"

// removeStale removes the folders of processes that were killed before they
// could do it. What cannot be removed belongs to another user and is left.
func removeStale() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		rest := strings.TrimPrefix(filepath.Base(dir), dirPrefix)
		owner, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || alive(pid) || serverAlive(dir) {
			continue
		}
		_ = os.RemoveAll(dir)
	}
}

// serverAlive tells whether the folder's server still runs: it is told to end
// when its parent dies, and needs a moment for that.
func serverAlive(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	return err == nil && alive(pid)
}
