// Package exec hands jobs to programs: one process per job, in any language.
//
// A program reads one JSON object from standard input:
//
//	{"jobId":"…","name":"…","queue":"…","data":…,"attempt":1,"deadline":"…"}
//
// and writes lines to standard output. A line that is a JSON object of these
// members, and of no others, is for Forebay; every other line, and all of standard
// error, goes to the job's log:
//
//	{"progress":40,"stage":"resize","message":"2 of 5","data":…}   needs progress or stage
//	{"result":…}                                                   the last one is the job's result
//	{"error":"no such user","retryAfter":30}                       why it will fail; seconds to wait
//
// Its exit status is the verdict:
//
//	0       done
//	64, 65  the data is wrong: a dead letter at once (EX_USAGE, EX_DATAERR)
//	75      not now: tried again, after retryAfter where it said so (EX_TEMPFAIL)
//	other   a failed attempt, as is the end by a signal
//
// It promises: the command is what the operator configured, and nothing of a job
// becomes part of it; the program and all that it started in its process group is
// gone when the attempt ends, also when this process is killed (on Linux, the
// program itself); what it writes is read as it comes and never kept as a whole.
//
// It refuses to hand on its own environment, to use a shell for the command, and to
// keep more output than is stated here. It is no sandbox: the program runs as the
// same user.
package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	osexec "os/exec"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// Exit statuses with a meaning of their own (sysexits.h).
const (
	exitUsage    = 64
	exitData     = 65
	exitTempFail = 75
)

// maxRetryAfter bounds what a program can ask for.
const maxRetryAfter = time.Hour

// Config of a Handler. Command is needed.
type Config struct {
	Command []string // the program, found in PATH as usual, and its arguments
	Dir     string   // where it runs; empty: where this process does
	Env     []string // NAME=value, beyond the few that it always gets (PATH, LANG, FOREBAY_*)

	Grace     time.Duration // from SIGTERM to SIGKILL when an attempt is ended; 0: 5 s
	MaxOutput int64         // bytes written on both streams before it is ended; 0: 64 MiB

	// Limits of each process, by the system's means. 0: none of ours.
	Memory    int64         // bytes of address space; some runtimes reserve much more than they use
	CPU       time.Duration // of CPU time, in whole seconds
	OpenFiles int64
	FileBytes int64 // size of a file that it writes
}

// Handler runs a program per job.
type Handler struct {
	cfg    Config
	limits string // a shell's words that set the limits; empty: there are none
}

var _ worker.JobHandler = (*Handler)(nil)

// New makes a handler. Whether the program is there shows when it is run, since a
// deploy may bring it.
func New(cfg Config) (*Handler, error) {
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	if cfg.MaxOutput == 0 {
		cfg.MaxOutput = 64 << 20
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Handler{cfg: cfg, limits: cfg.limits()}, nil
}

func (c *Config) check() error {
	var problems []error
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			e := forebay.Errorf(forebay.CodeInvalid, "exec", format, args...)
			e.Field = field
			problems = append(problems, e)
		}
	}
	wrong(len(c.Command) == 0 || c.Command[0] == "", "command", "no program is named")
	for _, v := range c.Env {
		// Its value may be a secret: it is not shown.
		name, _, ok := strings.Cut(v, "=")
		wrong(!ok || name == "" || strings.ContainsRune(v, 0), "env", "a variable is not of the form NAME=value")
	}
	wrong(c.Grace < 0, "grace", "%s; more than 0 is allowed", c.Grace)
	wrong(c.MaxOutput < 0, "maxOutput", "%d; more than 0 is allowed", c.MaxOutput)
	wrong(c.CPU < 0 || c.CPU%time.Second != 0, "cpu", "%s; whole seconds are allowed", c.CPU)
	for name, n := range map[string]int64{"memory": c.Memory, "openFiles": c.OpenFiles, "fileBytes": c.FileBytes} {
		wrong(n < 0, name, "%d; more than 0 is allowed, and 0 for no limit", n)
	}
	return errors.Join(problems...)
}

// limits are set by a shell in the new process, before it becomes the program: so
// they hold from its first instruction, and for all that it starts.
func (c *Config) limits() string {
	var words []string
	set := func(flag string, n, unit int64) {
		if n > 0 {
			words = append(words, fmt.Sprintf("ulimit -%s %d", flag, (n+unit-1)/unit))
		}
	}
	set("v", c.Memory, 1024)
	set("t", int64(c.CPU/time.Second), 1)
	set("n", c.OpenFiles, 1)
	set("f", c.FileBytes, 512)
	return strings.Join(words, " && ")
}

// HandleJob runs the program and waits for its end.
func (h *Handler) HandleJob(ctx context.Context, j *worker.Job) ([]byte, error) {
	call, err := task.NewCall(ctx, j)
	if err != nil {
		return nil, err
	}
	body, err := call.JSON()
	if err != nil {
		return nil, err
	}
	cmd, err := h.command()
	if err != nil {
		return nil, forebay.Because(forebay.Cause{Code: "no_command"}, err)
	}
	out := newOutput(j, h.cfg.MaxOutput)
	cmd.Stdin = bytes.NewReader(append(body, '\n'))
	cmd.Stdout = out.stream(maxLine, out.told)
	cmd.Stderr = out.stream(forebay.MaxLogBytes, out.stderr)
	cmd.Env = append(environment(call), h.cfg.Env...)

	ended, err := run(ctx, cmd, h.cfg.Grace, out.overflow)
	out.flush()
	if ended && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out.verdict(err)
}

// command is the program of a new process, with its limits.
func (h *Handler) command() (*osexec.Cmd, error) {
	program, err := osexec.LookPath(h.cfg.Command[0])
	if err != nil {
		return nil, err
	}
	args := h.cfg.Command[1:]
	if h.limits != "" {
		script := h.limits + ` || exit 125; exec "$@"`
		args = append([]string{"-c", script, "sh", program}, args...)
		program = "/bin/sh"
	}
	cmd := osexec.Command(program, args...)
	cmd.Dir = h.cfg.Dir
	return cmd, nil
}

// environment is all that a program inherits. The job's words are values only.
func environment(c task.Call) []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
		"FOREBAY_JOB_ID=" + c.JobID,
		"FOREBAY_JOB_NAME=" + c.Name,
		"FOREBAY_QUEUE=" + c.Queue,
		"FOREBAY_ATTEMPT=" + strconv.Itoa(c.Attempt),
	}
	if !c.Deadline.IsZero() {
		env = append(env, "FOREBAY_DEADLINE="+c.Deadline.Format(time.RFC3339Nano))
	}
	return env
}

// verdict says what the end of the program means.
func (o *output) verdict(err error) ([]byte, error) {
	var exit *osexec.ExitError
	switch {
	case o.overflowed():
		return nil, forebay.Because(forebay.Cause{Code: "output"}, fmt.Errorf("it wrote more than %d bytes and was ended", o.max))
	case o.lost:
		cause := forebay.Cause{Code: task.CodeBadResult}
		return nil, forebay.Permanent(forebay.Because(cause, fmt.Errorf("its result is larger than the %d bytes that are kept", forebay.MaxResultBytes)))
	case err == nil, errors.Is(err, osexec.ErrWaitDelay):
		return o.result, nil
	case errors.As(err, &exit):
		return nil, o.failed(exit.ProcessState)
	}
	return nil, forebay.Because(forebay.Cause{Code: "no_command"}, err)
}

func (o *output) failed(state *os.ProcessState) error {
	text := state.String() // "exit status 3", "signal: killed"
	cause := forebay.Cause{Code: "signal", Detail: map[string]string{"end": text}}
	if code := state.ExitCode(); code >= 0 {
		cause.Code = "exit_" + strconv.Itoa(code)
	}
	if o.why != "" {
		text = o.why + " (" + text + ")"
	}
	err := forebay.Because(cause, errors.New(text))
	switch state.ExitCode() {
	case exitUsage, exitData:
		return forebay.Permanent(err)
	case exitTempFail:
		if o.wait > 0 {
			return forebay.RetryAfter(o.wait, err)
		}
	}
	return err
}
