//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task/exec"
	"github.com/forebayhq/forebay/worker"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// told collects what a handler tells.
type told struct {
	mu       sync.Mutex
	progress []forebay.Progress
	log      []string
}

func (l *told) job(data string) *worker.Job {
	return worker.NewJob(forebay.Delivery{
		Message: forebay.Message{ID: "job-1", Kind: "transcode", Queue: "media", Payload: []byte(data), Job: &forebay.JobOptions{Deadline: at}},
		Attempt: 3,
	}, func(p *forebay.Progress, line *forebay.LogLine) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if p != nil {
			p.At = time.Time{}
			l.progress = append(l.progress, *p)
		}
		if line != nil {
			l.log = append(l.log, line.Text)
		}
	})
}

// sh makes a handler of a shell script.
func sh(t *testing.T, script string, cfg exec.Config) *exec.Handler {
	t.Helper()
	cfg.Command = []string{"/bin/sh", "-c", script}
	h, err := exec.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAProgramGetsTheJobAndGivesTheResult(t *testing.T) {
	t.Parallel()
	var l told
	h := sh(t, `
		read -r job
		echo starting
		echo '{"progress":10,"stage":"read"}'
		echo '{"progress":60.5,"message":"half","data":{"file":2}}'
		echo '{"stage":"write"}'
		echo '{"level":"info","message":"a log of the program"}'
		echo 'a warning' >&2
		echo '{"result":1}'
		printf '{"result":%s}' "$job"`, exec.Config{})
	result, err := h.HandleJob(t.Context(), l.job("{\"file\":\n\"a b\"}"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"jobId":"job-1","name":"transcode","queue":"media","data":{"file":"a b"},"attempt":3,"deadline":"2026-05-04T03:02:01Z"}`
	if string(result) != want {
		t.Errorf("result\n%s\nwant\n%s", result, want)
	}
	wantProgress := []forebay.Progress{
		{Stage: "read", Percent: 10},
		{Stage: "read", Percent: 60.5, Message: "half", Data: []byte(`{"file":2}`)},
		{Stage: "write", Percent: 60.5},
	}
	if fmt.Sprint(l.progress) != fmt.Sprint(wantProgress) {
		t.Errorf("progress %v, want %v", l.progress, wantProgress)
	}
	log := strings.Join(l.log, "|")
	for _, line := range []string{"starting", `{"level":"info","message":"a log of the program"}`, "a warning"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log lacks %q: %q", line, log)
		}
	}
}

func TestWhatExitStatusesMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script    string
		code      string
		message   string
		permanent bool
		wait      time.Duration
	}{
		{`exit 3`, "exit_3", "exit status 3", false, 0},
		{`echo one >&2; echo two >&2; exit 1`, "exit_1", "two (exit status 1)", false, 0},
		{`echo '{"error":"no such user"}'; echo trace >&2; exit 65`, "exit_65", "no such user (exit status 65)", true, 0},
		{`exit 64`, "exit_64", "exit status 64", true, 0},
		{`exit 75`, "exit_75", "exit status 75", false, 0},
		{`echo '{"error":"busy","retryAfter":2.5}'; exit 75`, "exit_75", "busy (exit status 75)", false, 2500 * time.Millisecond},
		{`echo '{"error":"busy","retryAfter":1e300}'; exit 75`, "exit_75", "busy (exit status 75)", false, time.Hour},
		{`echo '{"error":"busy","retryAfter":9}'; exit 1`, "exit_1", "busy (exit status 1)", false, 0},
		{`kill -KILL $$`, "signal", "signal: killed", false, 0},
		{`kill -SEGV $$`, "signal", "signal: segmentation fault", false, 0},
	} {
		var l told
		result, err := sh(t, c.script, exec.Config{}).HandleJob(t.Context(), l.job(`{}`))
		if result != nil || err == nil {
			t.Errorf("%s: got %s, %v", c.script, result, err)
			continue
		}
		cause := forebay.CauseOf(err, at)
		wait, _ := forebay.RetryDelay(err)
		if cause.Code != c.code || !strings.HasPrefix(cause.Message, c.message) || forebay.IsPermanent(err) != c.permanent || wait != c.wait {
			t.Errorf("%s: cause %+v, permanent %t, wait %s", c.script, cause, forebay.IsPermanent(err), wait)
		}
	}
}

func TestAProgramThatIsNotThereIsTriedAgain(t *testing.T) {
	t.Parallel()
	notExecutable := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(notExecutable, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []exec.Config{
		{Command: []string{"no-such-program"}},
		{Command: []string{notExecutable}},
		{Command: []string{"/bin/sh", "-c", "true"}, Dir: "/no/such/folder"},
		{Command: []string{"no-such-program"}, OpenFiles: 64},
	} {
		h, err := exec.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var l told
		_, err = h.HandleJob(t.Context(), l.job(`{}`))
		if forebay.CauseOf(err, at).Code != "no_command" || forebay.IsPermanent(err) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestNothingOfAJobBecomesPartOfTheCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pwned")
	nasty := `$(touch ` + file + `) ; touch ` + file + ` "`
	h := sh(t, `cat >/dev/null; echo "{\"result\":$(env | grep -c ^FOREBAY_)}"`, exec.Config{OpenFiles: 64})
	data, _ := json.Marshal(nasty)
	var l told
	j := l.job(string(data))
	j.ID, j.Kind = nasty, nasty
	if result, err := h.HandleJob(t.Context(), j); err != nil || string(result) != "5" {
		t.Errorf("got %s, %v", result, err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a job ran a command: %v", err)
	}
}

func TestTheEnvironmentIsSmall(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SERVER", "hunter2")
	var l told
	h := sh(t, `env >&2`, exec.Config{Env: []string{"API_BASE=http://127.0.0.1", "LANG=de"}})
	if _, err := h.HandleJob(t.Context(), l.job(``)); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, line := range l.log {
		name, value, _ := strings.Cut(line, "=")
		got[name] = value
	}
	for _, own := range []string{"PWD", "_", "SHLVL", "OLDPWD"} { // the shell's
		delete(got, own)
	}
	want := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "de", "API_BASE": "http://127.0.0.1",
		"FOREBAY_JOB_ID": "job-1", "FOREBAY_JOB_NAME": "transcode", "FOREBAY_QUEUE": "media", "FOREBAY_ATTEMPT": "3",
		"FOREBAY_DEADLINE": "2026-05-04T03:02:01Z",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("environment %v\nwant %v", got, want)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, code string
		permanent    bool
		check        func(t *testing.T, l *told)
	}{
		"a flood": {script: `trap '' TERM; yes`, code: "output"},
		"a flood of errors": {script: `yes >&2`, code: "output", check: func(t *testing.T, l *told) {
			if len(l.log) > 10_001 || !strings.Contains(l.log[len(l.log)-1], "more lines were not kept") {
				t.Errorf("%d lines, the last %q", len(l.log), l.log[len(l.log)-1])
			}
		}},
		"one long line": {script: `head -c 3000000 /dev/zero | tr '\0' x; echo; echo '{"result":1}'`, check: func(t *testing.T, l *told) {
			if len(l.log) != 1 || len(l.log[0]) > forebay.MaxLogBytes || !strings.HasSuffix(l.log[0], "(cut)") {
				t.Errorf("%d lines", len(l.log))
			}
		}},
		"a result too large": {script: `printf '{"result":"'; head -c 1100000 /dev/zero | tr '\0' x; echo '"}'`, code: "bad_result", permanent: true},
		"large progress data": {script: `printf '{"progress":1,"data":"'; head -c 20000 /dev/zero | tr '\0' x; echo '"}'`, check: func(t *testing.T, l *told) {
			if len(l.progress) != 1 || l.progress[0].Data != nil || len(l.log) != 1 {
				t.Errorf("progress %v, log %q", l.progress, l.log)
			}
		}},
	} {
		var l told
		_, err := sh(t, c.script, exec.Config{MaxOutput: 8 << 20, Grace: time.Millisecond}).HandleJob(t.Context(), l.job(`{}`))
		switch {
		case c.code == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.code != "" && (err == nil || forebay.CauseOf(err, at).Code != c.code || forebay.IsPermanent(err) != c.permanent):
			t.Errorf("%s: %v", name, err)
		}
		if c.check != nil {
			t.Run(name, func(t *testing.T) { c.check(t, &l) })
		}
	}
}

func TestLimitsHoldFromTheStart(t *testing.T) {
	t.Parallel()
	var l told
	h := sh(t, `echo "{\"result\":\"$(ulimit -v) $(ulimit -t) $(ulimit -n) $(ulimit -f)\"}"`,
		exec.Config{Memory: 256 << 20, CPU: 7 * time.Second, OpenFiles: 33, FileBytes: 1 << 20})
	if result, err := h.HandleJob(t.Context(), l.job(`{}`)); err != nil || string(result) != `"262144 7 33 2048"` {
		t.Errorf("got %s, %v", result, err)
	}
	busy := sh(t, `while :; do :; done`, exec.Config{CPU: time.Second})
	_, err := busy.HandleJob(t.Context(), l.job(`{}`))
	if c := forebay.CauseOf(err, at); c.Code != "signal" {
		t.Errorf("more CPU than allowed: %+v", c)
	}
}

func TestWrongSettingsAreRefusedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := exec.New(exec.Config{Env: []string{"hunter2"}, Grace: -1, MaxOutput: -1, CPU: 1, Memory: -1, OpenFiles: -1, FileBytes: -1})
	for _, field := range []string{"command", "env", "grace", "maxOutput", "cpu", "memory", "openFiles", "fileBytes"} {
		if err == nil || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s is missing in %v", field, err)
		}
	}
	if forebay.CodeOf(err) != forebay.CodeInvalid || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestDataThatIsNoJSONIsADeadLetter(t *testing.T) {
	t.Parallel()
	var l told
	_, err := sh(t, `true`, exec.Config{}).HandleJob(t.Context(), l.job(`{`))
	if !forebay.IsPermanent(err) || forebay.CauseOf(err, at).Code != "bad_data" {
		t.Errorf("got %v", err)
	}
}

func TestAProgramNeedNotReadItsInput(t *testing.T) {
	t.Parallel()
	var l told
	result, err := sh(t, `echo '{"result":true}'`, exec.Config{}).HandleJob(t.Context(), l.job(`"`+strings.Repeat("x", 1<<20)+`"`))
	if err != nil || string(result) != "true" {
		t.Errorf("got %s, %v", result, err)
	}
}

func TestAJobThatIsCancelledBeforehandIsNotBegun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(forebay.ErrDraining)
	var l told
	_, err := sh(t, `echo begun`, exec.Config{}).HandleJob(ctx, l.job(`{}`))
	if !errors.Is(err, forebay.ErrDraining) || l.log != nil {
		t.Errorf("got %v, log %q", err, l.log)
	}
}
