//go:build e2e && linux

package e2e

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// node is a Node script that runs beside the server, until the end of the test.
type node struct {
	lines *bufio.Scanner
	stdin io.Closer
}

func runNode(t *testing.T, env []string, arguments ...string) *node {
	t.Helper()
	cmd := exec.Command("node", arguments...)
	cmd.Env = append(cleanEnv(), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("node %v: %v", arguments, err)
		}
	})
	return &node{bufio.NewScanner(out), in}
}

// A program in another language is the handler: progress, log, result, and what its
// exit status means.
func TestProgramAsHandler(t *testing.T) {
	s := jobServer(t, append(script(t, "node", "handler.mjs"), "queues.work.backoff=50ms")...)
	work := s.add("work", "node", options{"do": "work", "numbers": []int{1, 2, 39}}, nil)
	wrong := s.add("work", "node", options{"do": "wrong"}, options{"attempts": 5})
	later := s.add("work", "node", options{"do": "later"}, options{"attempts": 5})
	fail := s.add("work", "node", options{"do": "fail"}, options{"attempts": 2})

	j := s.await(work, time.Minute, "completed", "dead")
	if want := fmt.Sprintf(`{"id":%q,"attempt":1,"sum":42}`, work); string(j.Result) != want {
		t.Errorf("the result is %s, want %s: %+v", j.Result, want, j)
	}
	n, logged := types(s.history(work)), false
	for _, h := range s.history(work) {
		logged = logged || h.Type == "log" && h.Text == "a line of the log"
		if h.Type == "progress" && (h.Progress.Stage != "half" || h.Progress.Percent != 40) {
			t.Errorf("the progress is %+v", h.Progress)
		}
	}
	if n["progress"] == 0 || !logged {
		t.Errorf("the history has no progress or not the line of the log: %v", n)
	}
	if j := s.await(wrong, time.Minute, "completed", "dead"); j.State != "dead" || j.Attempts != 1 || j.Cause.Code != "exit_65" || !strings.Contains(j.FailedReason, "this is no order") {
		t.Errorf("exit status 65: %+v, %+v", j, j.Cause)
	}
	if j := s.await(later, time.Minute, "completed", "dead"); string(j.Result) != "2" || j.Attempts != 1 {
		t.Errorf("exit status 75: %+v", j)
	}
	if j := s.await(fail, time.Minute, "completed", "dead"); j.State != "dead" || j.Attempts != 2 || j.Cause.Code != "exit_3" || !strings.Contains(j.FailedReason, "no such user") {
		t.Errorf("exit status 3: %+v, %+v", j, j.Cause)
	}
}

// Jobs are pushed to a server in another language, which checks their signature by
// itself and tells progress while it works.
func TestPushedJobs(t *testing.T) {
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of 24 bytes, or more"))
	target := runNode(t, []string{"SECRET=" + secret}, "target.mjs")
	if !target.lines.Scan() {
		t.Fatal("the target does not listen: ", target.lines.Err())
	}
	address := target.lines.Text()
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret of the same length"))
	s := jobServer(t, "webhooks.secret="+secret, "queues.work.backoff=50ms",
		"handlers.push.queue=work", "handlers.push.url="+address,
		"handlers.forged.queue=work", "handlers.forged.url="+address, "handlers.forged.secret="+other)
	good := s.add("work", "push", options{"text": "Grüße"}, nil)
	busy := s.add("work", "push", options{"busy": 2}, options{"attempts": 5})
	refused := s.add("work", "push", options{"refuse": true}, options{"attempts": 5})
	forged := s.add("work", "forged", options{}, options{"attempts": 5})

	j := s.await(good, time.Minute, "completed", "dead")
	if string(j.Result) != `{"attempt":1,"data":{"text":"Grüße"}}` {
		t.Errorf("a pushed job: %+v, %s", j, j.Result)
	}
	told := map[string]bool{}
	for _, h := range s.history(good) {
		told[h.Text] = true
		if h.Type == "progress" {
			told[h.Progress.Stage] = true
		}
	}
	if !told["pushed"] || !told["from the target"] {
		t.Errorf("progress and log of the target are not in the history: %v", told)
	}
	if j := s.await(busy, time.Minute, "completed", "dead"); j.State != "completed" || j.Attempts != 2 {
		t.Errorf("twice 503: %+v", j)
	}
	for id, code := range map[string]string{refused: "http_422", forged: "http_401"} {
		if j := s.await(id, time.Minute, "completed", "dead"); j.State != "dead" || j.Attempts != 1 || j.Cause.Code != code {
			t.Errorf("%s: %+v, %+v", code, j, j.Cause)
		}
	}
}

// A worker in another language pulls 200 jobs, while the server is killed once. Each
// job is completed once.
func TestPulledJobsWhileServerIsKilled(t *testing.T) {
	const jobs = 200
	s := jobServer(t)
	var items []options
	for n := range jobs {
		items = append(items, options{"id": fmt.Sprintf("pulled-%03d", n), "queue": "pulled", "name": "double", "data": options{"n": n}})
	}
	var added struct{ Added int }
	s.must(200, "POST", "/api/jobs/bulk", options{"items": items}, &added)
	if added.Added != jobs {
		t.Fatalf("%d jobs were added, want %d", added.Added, jobs)
	}
	worker := runNode(t, nil, "puller.mjs", s.url, "pulled")
	late := time.AfterFunc(3*time.Minute, func() { _ = worker.stdin.Close() })
	defer late.Stop()
	killed, settled := false, 0
	last := ""
	for worker.lines.Scan() {
		last = worker.lines.Text()
		if _, err := fmt.Sscanf(last, "settled %d", &settled); err != nil {
			continue
		}
		switch {
		case !killed && settled >= jobs/3:
			s.kill()
			s.start()
			killed = true
		case settled >= jobs-8 && s.finished(items):
			_ = worker.stdin.Close()
		}
	}
	t.Log(last)
	if !killed {
		t.Error("the server was not killed")
	}
	for n, item := range items {
		id := item["id"].(string)
		s.completedOnce([]string{id}, 30*time.Second)
		if j := s.job(id); string(j.Result) != fmt.Sprintf(`{"doubled":%d}`, 2*n) || j.Progress.Stage != "pulled" {
			t.Errorf("job %s: %+v, %s", id, j, j.Result)
		}
	}
}

func (s *server) finished(items []options) bool {
	for _, item := range items {
		if s.job(item["id"].(string)).State != "completed" {
			return false
		}
	}
	return true
}
