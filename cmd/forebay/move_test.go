package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/internal/redistest"
)

// Jobs of a data folder are on Redis, or on PostgreSQL, after a move, for a server that has
// it in its settings.
func TestMove(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		moveTo(t, "redis", "REDIS_URL", redistest.Start(t, redistest.Config{}).URL(0))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		moveTo(t, "postgres", "FOREBAY_POSTGRES_URL", pgtest.Start(t, pgtest.Config{}).Database(t))
	})
}

func moveTo(t *testing.T, to, env, url string) {
	t.Helper()
	dir := t.TempDir()
	move := func(code int, says string, args ...string) {
		t.Helper()
		cmd := exec.Command("forebay", append([]string{"move", "--data", dir, "--from", "sqlite", "--to"}, args...)...)
		cmd.Env = append(os.Environ(), env+"="+url)
		out, _ := cmd.CombinedOutput() // its exit code is looked at
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), says) {
			t.Errorf("move %v: exit code %d, want %d: %s", args, cmd.ProcessState.ExitCode(), code, out)
		}
	}
	move(exitUsage, "allowed: --from sqlite --to redis", "sqs")
	p := start(t, dir)
	addLater(t, p.url)
	move(exitStart, "in use", to)
	p.signal(t)
	p.wait(t)
	move(exitDone, "1 jobs (1 delayed) would be moved", to, "--dry-run")
	move(exitDone, "1 jobs (1 delayed) were moved and compared", to)
	move(exitDone, "0 jobs were moved and compared\n1 more were moved before", to)

	again := start(t, dir, "--set", to+".url="+url)
	if j, err := jobAt(again.url, "later"); err != nil || !strings.Contains(j, `"delayed"`) || !strings.Contains(j, `"kept"`) {
		t.Errorf("%s, %v", j, err)
	}
	again.signal(t)
	again.wait(t)
	if log := again.log.String(); strings.Contains(log, "wait in the data folder") {
		t.Errorf("jobs were left behind: %s", log)
	}
}
