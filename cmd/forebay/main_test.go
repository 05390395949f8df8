package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// quickEnd has a process with a race detector end without the second that it would sleep.
const quickEnd = "atexit_sleep_ms=10"

// The program is this test binary under the name forebay, so that scripts and tests
// start real processes with a race detector in them.
func TestMain(m *testing.M) {
	if err := os.Setenv("GORACE", quickEnd); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"forebay": main, askedProgram: asked})
}

// TestScripts runs what a user could type.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GORACE", quickEnd)
			env.Setenv("TZ", "UTC")
			env.Setenv("FOREBAY_SQSAPI_LISTEN", "off") // its default port is one for all tests
			return startAsking(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ask":        askCmd,
			"code":       codeCmd,
			"ready":      readyCmd,
			"post":       postCmd,
			"term":       termCmd,
			"eventually": eventuallyCmd,
			"hold":       holdCmd,
		},
	})
}

const patience = 30 * time.Second

// code N PROGRAM ARGS…: the program ends with the exit code N.
func codeCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args…")
	}
	a := runs(ts, args[1:])
	_, _ = ts.Stdout().Write(a.Out) // into memory
	_, _ = ts.Stderr().Write(a.Err)
	if want := args[0]; strconv.Itoa(a.Code) != want {
		ts.Fatalf("exit code %d, want %s", a.Code, want)
	}
}

// ready DIR: waits for the server of a data folder and sets $URL.
func readyCmd(ts *testscript.TestScript, neg bool, args []string) {
	until(ts, func() error {
		f, err := readServerFile(ts.MkAbs(args[0]))
		if err != nil {
			return err
		}
		ts.Setenv("URL", f.URL)
		resp, err := http.Get(f.URL + "/readyz")
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	})
}

// post STATUS URL BODY [HEADER…]: posts and checks the status; the answer becomes
// the standard output of a later `stdout`.
func postCmd(ts *testscript.TestScript, neg bool, args []string) {
	req, err := http.NewRequest(http.MethodPost, args[1], strings.NewReader(args[2]))
	ts.Check(err)
	for _, h := range args[3:] {
		name, v, _ := strings.Cut(h, ": ")
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s", body)
	if strconv.Itoa(resp.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s: %s", resp.StatusCode, args[0], body)
	}
}

// term DIR: sends SIGTERM to the server of a data folder.
func termCmd(ts *testscript.TestScript, neg bool, args []string) {
	f, err := readServerFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(syscall.Kill(f.PID, syscall.SIGTERM))
}

// eventually REGEXP PROGRAM ARGS…: runs the program until its output matches.
func eventuallyCmd(ts *testscript.TestScript, neg bool, args []string) {
	var a answer
	until(ts, func() error {
		a = runs(ts, args[1:])
		if !regexp.MustCompile(args[0]).Match(a.Out) {
			return fmt.Errorf("%q does not match %q, exit code %d: %s", args[0], a.Out, a.Code, a.Err)
		}
		return nil
	})
	_, _ = ts.Stdout().Write(a.Out) // into memory
	_, _ = ts.Stderr().Write(a.Err)
}

// hold VAR: takes a port for the rest of the script and puts its address into $VAR.
func holdCmd(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

func until(ts *testscript.TestScript, try func() error) {
	if err := repeatedly(context.Background(), try); err != nil {
		ts.Fatalf("%v", err)
	}
}

// repeatedly tries until it goes well, or patience ends.
func repeatedly(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("still after %s: %w", patience, err)
		}
	}
}

// process is a server that a test starts.
type process struct {
	cmd *exec.Cmd
	log bytes.Buffer
	dir string
	url string
}

func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startCommand(t, dir, exec.Command("forebay", append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0"}, args...)...))
}

func startCommand(t *testing.T, dir string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{dir: dir, cmd: cmd}
	p.cmd.Stderr = &p.log
	p.cmd.Env = append(append(os.Environ(), "PORT=", "DATABASE_URL=", "FOREBAY_SQSAPI_LISTEN=off"), cmd.Env...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%s", &p.log)
		}
	})
	err := repeatedly(t.Context(), func() error {
		f, err := readServerFile(dir)
		if err == nil && f.PID != p.cmd.Process.Pid {
			err = errors.New("the file of another server")
		}
		p.url = f.URL
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) signal(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// wait waits for the end, which must be a clean one.
func (p *process) wait(t *testing.T) {
	t.Helper()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v", err)
	}
}
