package redis_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// node is a Node program with BullMQ, driven by lines of JSON (testdata/node/bull.mjs).
type node struct {
	t    testing.TB
	in   io.WriteCloser
	kill func() // and wait until it is gone

	mu      sync.Mutex // guards all below
	n       int
	answers map[int]chan map[string]any
	events  []map[string]any // what it says by itself, in order
	changed chan struct{}
}

// startNode starts one on a server's port. version is 5 or 6.
func startNode(t testing.TB, addr, version, prefix string) *node {
	t.Helper()
	dir := filepath.Join("testdata", "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal("the Node modules of engine/redis/testdata/node are missing: run make setup")
	}
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command("node", "bull.mjs", port, version, prefix)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, in: in, answers: make(map[int]chan map[string]any), changed: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.read(out)
	}()
	n.kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		<-done
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		n.kill()
		if t.Failed() && errs.Len() > 0 {
			t.Log(errs.String())
		}
	})
	n.event("it is ready", func(e map[string]any) bool { return e["ready"] == true })
	return n
}

func (n *node) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var m map[string]any
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			n.t.Errorf("node said %q", lines.Text())
			continue
		}
		n.mu.Lock()
		if id, ok := m["answer"].(float64); ok {
			n.answers[int(id)] <- m
		} else {
			n.events = append(n.events, m)
			close(n.changed)
			n.changed = make(chan struct{})
		}
		n.mu.Unlock()
	}
}

// begin sends a command, and gives where its answer comes.
func (n *node) begin(cmd string, args map[string]any) <-chan map[string]any {
	n.t.Helper()
	n.mu.Lock()
	n.n++
	c := map[string]any{"cmd": cmd, "n": n.n}
	for k, v := range args {
		c[k] = v
	}
	answer := make(chan map[string]any, 1)
	n.answers[n.n] = answer
	n.mu.Unlock()
	line, err := json.Marshal(c)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.in.Write(append(line, '\n')); err != nil {
		n.t.Fatal(err)
	}
	return answer
}

// do sends a command and waits for its answer.
func (n *node) do(cmd string, args map[string]any) map[string]any {
	n.t.Helper()
	return n.answer(cmd, n.begin(cmd, args))
}

func (n *node) answer(cmd string, c <-chan map[string]any) map[string]any {
	n.t.Helper()
	select {
	case m := <-c:
		if m["error"] != nil {
			n.t.Fatalf("node: %s: %v", cmd, m["error"])
		}
		return m
	case <-time.After(time.Minute):
		n.t.Fatalf("node: %s gave no answer in a minute", cmd)
	}
	return nil
}

// event waits for something that it says.
func (n *node) event(what string, is func(map[string]any) bool) map[string]any {
	n.t.Helper()
	end := time.After(time.Minute)
	for from := 0; ; {
		n.mu.Lock()
		all, changed := n.events, n.changed
		n.mu.Unlock()
		for ; from < len(all); from++ {
			if is(all[from]) {
				return all[from]
			}
		}
		select {
		case <-changed:
		case <-end:
			n.t.Fatalf("node did not say that %s; it said %v", what, all)
		}
	}
}

// saw waits for an event of the queue about a job.
func (n *node) saw(event, id string) map[string]any {
	n.t.Helper()
	return n.event(fmt.Sprint(event, " of ", id), func(e map[string]any) bool { return e["event"] == event && e["jobId"] == id })
}

// told gives what it said so far about jobs, by a field.
func (n *node) told(field string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for _, e := range n.events {
		if id, ok := e[field].(string); ok {
			out = append(out, id)
		}
	}
	return out
}
