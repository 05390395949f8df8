package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/internal/redistest"
)

// Jobs of a data folder are on Redis after a move, for a server that has it in its settings.
func TestMove(t *testing.T) {
	t.Parallel()
	dir, redis := t.TempDir(), redistest.Start(t, redistest.Config{}).URL(0)
	move := func(code int, says string, args ...string) {
		t.Helper()
		cmd := exec.Command("forebay", append([]string{"move", "--data", dir, "--from", "sqlite", "--to"}, args...)...)
		cmd.Env = append(os.Environ(), "REDIS_URL="+redis)
		out, _ := cmd.CombinedOutput() // its exit code is looked at
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), says) {
			t.Errorf("move %v: exit code %d, want %d: %s", args, cmd.ProcessState.ExitCode(), code, out)
		}
	}
	move(exitUsage, "allowed: --from sqlite --to redis", "postgres")
	p := start(t, dir)
	addLater(t, p.url)
	move(exitStart, "in use", "redis")
	p.signal(t)
	p.wait(t)
	move(exitDone, "1 jobs (1 delayed) would be moved", "redis", "--dry-run")
	move(exitDone, "1 jobs (1 delayed) were moved and compared", "redis")
	move(exitDone, "0 jobs were moved and compared\n1 more were moved before", "redis")

	again := start(t, dir, "--set", "redis.url="+redis)
	if j, err := jobAt(again.url, "later"); err != nil || !strings.Contains(j, `"delayed"`) || !strings.Contains(j, `"kept"`) {
		t.Errorf("%s, %v", j, err)
	}
	again.signal(t)
	again.wait(t)
	if log := again.log.String(); strings.Contains(log, "wait in the data folder") {
		t.Errorf("jobs were left behind: %s", log)
	}
}
