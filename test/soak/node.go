//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// node is one `forebay serve`, which is started, hurt and started again on the same
// address and data folder.
type node struct {
	name, binary string
	addr, sqs    string // sqs: "off", or the address of its SQS endpoint
	data, log    string
	roles        string
	env, args    []string
	far          bool // what keeps its queues is another process

	mu     sync.Mutex // guards all below
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	life   int
}

func (n *node) url() string { return "http://" + n.addr }

// spawn starts the process.
func (n *node) spawn() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	line := append([]string{"serve", "--data", n.data, "--listen", n.addr, "--sqs-listen", n.sqs, "--roles", n.roles}, n.args...)
	cmd := exec.Command(n.binary, line...)
	cmd.Env = append(cleanEnv(), n.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { // ends with the process; whoever ends it waits for exited
		_ = cmd.Wait()
		close(exited)
	}()
	n.cmd, n.exited = cmd, exited
	n.life++
	return nil
}

// start starts it and waits until it is alive. It may end at once, since what it stands on is
// away just now; then it is started again, as a supervisor does.
func (n *node) start(ctx context.Context) error {
	deadline := time.Now().Add(60 * time.Second)
	for {
		if err := n.spawn(); err != nil {
			return err
		}
		err := n.await(ctx, "/healthz", time.Until(deadline))
		if err == nil || time.Now().After(deadline) || !rest(ctx, 500*time.Millisecond) {
			return err
		}
	}
}

func (n *node) await(ctx context.Context, path string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		status, _, err := call(ctx, http.MethodGet, n.url()+path, nil)
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-n.exited:
			return fmt.Errorf("%s ended (%s): %s", n.name, n.cmd.ProcessState, tail(n.log))
		case <-ctx.Done():
			return fmt.Errorf("%s: %s is not 200 within %s: %v %v: %s", n.name, path, within, status, err, tail(n.log))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (n *node) process() (*exec.Cmd, chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd, n.exited
}

func (n *node) signal(sig syscall.Signal) {
	if cmd, _ := n.process(); cmd != nil {
		_ = cmd.Process.Signal(sig) // it may have ended
	}
}

// kill ends it as the loss of the process would.
func (n *node) kill() {
	cmd, exited := n.process()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill()
	<-exited
}

// terminate asks it to end; an error: it did not, or said that something went wrong. One whose
// queues are kept elsewhere may say that they were away until its time to drain was over, and
// so what could not be stored or given back.
func (n *node) terminate(within time.Duration) error {
	cmd, exited := n.process()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		<-exited
		return fmt.Errorf("it had ended by itself (%s): %w: %s", cmd.ProcessState, err, tail(n.log))
	}
	select {
	case <-exited:
	case <-time.After(within):
		n.signal(syscall.SIGQUIT) // the stacks of its goroutines
		rest(context.Background(), time.Second)
		n.kill()
		return fmt.Errorf("SIGTERM did not end it within %s; where its goroutines were is at the end of %s", within, n.log)
	}
	code, said := cmd.ProcessState.ExitCode(), tail(n.log)
	if code == 0 || code == 1 && n.far && strings.Contains(said[max(0, len(said)-600):], "their messages come again when their leases end") {
		return nil
	}
	return fmt.Errorf("SIGTERM ended it with code %d: %s", code, said)
}

func (n *node) pid() int {
	cmd, _ := n.process()
	return cmd.Process.Pid
}

// size is what a process holds.
type size struct {
	Life       int `json:"life"`
	RSS        int `json:"rssKiB"`
	Files      int `json:"files"`
	Goroutines int `json:"goroutines"`
}

// measure looks at the process; goroutines are what its metrics say, 0 where they are silent.
func (n *node) measure(ctx context.Context) (s size, err error) {
	proc := fmt.Sprintf("/proc/%d", n.pid())
	n.mu.Lock()
	s.Life = n.life
	n.mu.Unlock()
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return s, err
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			s.RSS, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		}
	}
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return s, err
	}
	s.Files = len(files)
	code, text, err := call(ctx, http.MethodGet, n.url()+"/metrics", nil)
	if err != nil || code != http.StatusOK {
		return s, nil
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			s.Goroutines, _ = strconv.Atoi(rest)
		}
	}
	return s, nil
}

// forebay runs a sub-command against the server.
func (n *node) forebay(ctx context.Context, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.binary, args...)
	cmd.Env = append(cleanEnv(), "FOREBAY_URL="+n.url(), "FOREBAY_DATA="+n.data)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s\nforebay %s: %v", out, strings.Join(args, " "), err)
	}
	return string(out)
}

// cleanEnv is the environment without settings of the program.
func cleanEnv() []string {
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		switch name {
		case "DATABASE_URL", "PORT", "REDIS_URL", "REDIS_HOST":
			continue
		}
		if !strings.HasPrefix(name, "FOREBAY_") && !strings.HasPrefix(name, "AWS_") {
			env = append(env, pair)
		}
	}
	return env
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(b[max(0, len(b)-3000):])
}

var client = &http.Client{Timeout: 70 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// call sends a request whose body, if any, is JSON.
func call(ctx context.Context, method, url string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, text, err
}

// ask is call for an answer that is JSON, with any status of 200 to 299.
func ask(ctx context.Context, method, url string, in, out any) error {
	var body []byte
	var err error
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	status, text, err := call(ctx, method, url, body)
	switch {
	case err != nil:
		return err
	case status < 200 || status > 299:
		return &answered{status, fmt.Sprintf("%s %s: %d: %.300s", method, url, status, text)}
	case out != nil:
		return json.Unmarshal(text, out)
	}
	return nil
}

// answered is an answer that says no.
type answered struct {
	status int
	text   string
}

func (a *answered) Error() string { return a.text }

// said tells the status of an error that is an answer; 0: there was none.
func said(err error) int {
	var a *answered
	if errors.As(err, &a) {
		return a.status
	}
	return 0
}
