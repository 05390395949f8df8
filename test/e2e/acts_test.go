//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A running program is cancelled from another process: it and what it started are
// gone, though they heed no signal that can be heeded.
func TestCancelOfARunningProgram(t *testing.T) {
	s := jobServer(t, script(t, "node", "handler.mjs")...)
	id := s.add("work", "node", options{"do": "hang"}, nil)
	pids := s.pids(id)
	if len(pids) != 2 {
		t.Fatalf("the processes are %v, want two", pids)
	}
	asked := time.Now()
	s.mustForebay("jobs", "cancel", id, "--reason", "not wanted")
	j := s.await(id, time.Minute, "cancelled", "completed", "dead")
	t.Logf("%s after the cancel", time.Since(asked))
	if j.State != "cancelled" || !strings.Contains(j.FailedReason, "not wanted") {
		t.Errorf("the job ended as %+v", j)
	}
	for _, pid := range pids {
		if !eventually(t, 10*time.Second, func() bool { return !alive(pid) }) {
			t.Errorf("process %d is still there", pid)
		}
	}
	if n := types(s.history(id)); n["cancelled"] != 1 || n["completed"]+n["dead"]+n["retry"] != 0 {
		t.Errorf("the history says %v", n)
	}

	polite := s.add("work", "node", options{"do": "talk", "n": 100_000, "pause": 10}, nil)
	if !eventually(t, time.Minute, func() bool { return types(s.history(polite))["log"] > 0 }) {
		t.Fatal("the second program did not begin")
	}
	asked = time.Now()
	s.mustForebay("jobs", "cancel", polite)
	s.await(polite, time.Minute, "cancelled")
	t.Logf("%s after the cancel of one that heeds it", time.Since(asked))
}

// A program does not outlive a server that is killed; its job begins again after the
// next start, and is charged no attempt.
func TestProgramDiesWithItsServer(t *testing.T) {
	s := jobServer(t, append(script(t, "node", "handler.mjs"), "queues.work.lease=1h")...)
	id := s.add("work", "node", options{"do": "hang", "alone": true}, nil)
	first := s.pids(id)[0]
	s.kill()
	if !eventually(t, 10*time.Second, func() bool { return !alive(first) }) {
		t.Errorf("process %d has outlived its server", first)
	}
	killed := time.Now()
	s.start()
	if !eventually(t, 30*time.Second, func() bool { return s.startedAfter(id, killed) }) {
		t.Errorf("the job did not begin again: %v", s.history(id))
	}
	if j := s.job(id); j.Attempts != 0 || j.Deliveries != 2 {
		t.Errorf("it was charged: %+v", j)
	}
}

// pids waits until a program that hangs has told its processes, all of which live.
func (s *server) pids(id string) []int {
	s.t.Helper()
	var pids []int
	told := func() bool {
		for _, word := range strings.Fields(s.job(id).Progress.Message) {
			pid, err := strconv.Atoi(word)
			if err != nil || !alive(pid) {
				s.t.Fatalf("process %s: %v; it must be there", word, err)
			}
			pids = append(pids, pid)
		}
		return pids != nil
	}
	if !eventually(s.t, time.Minute, told) {
		s.t.Fatalf("the program did not begin: %v", s.history(id))
	}
	return pids
}

// alive tells whether there is a process that has not ended; a zombie has.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// The same request with the same key is answered in the same way and adds nothing,
// also after the server was killed; another one with that key is refused.
func TestIdempotencyKey(t *testing.T) {
	s := jobServer(t)
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"order-42"}}
	send := func(body string) (int, string) {
		t.Helper()
		status, answer, err := post(t.Context(), s.url+"/api/jobs", []byte(body), header)
		if err != nil {
			t.Fatal(err)
		}
		return status, answer
	}
	const body = `{"queue":"orders","name":"order","data":{"n":42}}`
	status, first := send(body)
	if status != http.StatusAccepted {
		t.Fatalf("status %d: %s", status, first)
	}
	for n := range 3 {
		if n == 1 {
			s.kill()
			s.start()
		}
		if status, again := send(body); status != http.StatusAccepted || again != first {
			t.Errorf("the same again: status %d: %s; the first was answered %s", status, again, first)
		}
	}
	if status, other := send(strings.Replace(body, "42", "43", 1)); status != http.StatusUnprocessableEntity {
		t.Errorf("another body: status %d: %s", status, other)
	}
	if jobs := s.list("queue:orders"); len(jobs) != 1 {
		t.Errorf("there are %d jobs, want 1", len(jobs))
	}
}

// Dead jobs: an alert is in the inbox of the admin; those that a filter means are
// counted first, and then run again.
func TestDeadJobs(t *testing.T) {
	s := jobServer(t, append(script(t, "node", "handler.mjs"), "queues.work.backoff=10ms")...)
	var failed []string
	for range 5 {
		failed = append(failed, s.add("work", "node", options{"do": "fail"}, options{"attempts": 1, "tags": []string{"again"}}))
	}
	other := s.add("work", "node", options{"do": "fail"}, options{"attempts": 1})
	for _, id := range append(failed, other) {
		s.await(id, time.Minute, "dead")
	}

	var alert struct {
		Kind, Title string
		Data        struct {
			ID, Queue, Name, Error, Reason string
			Attempts                       int
		}
	}
	told := func() bool {
		var box struct {
			Messages []struct{ Message json.RawMessage }
		}
		s.must(http.StatusOK, http.MethodGet, "/api/inbox/admin", nil, &box)
		return len(box.Messages) > 0 && json.Unmarshal(box.Messages[0].Message, &alert) == nil
	}
	if !eventually(t, 30*time.Second, told) {
		t.Error("there is no alert in the inbox")
	}
	if d := alert.Data; alert.Kind != "alert" || d.Queue != "work" || d.Name != "node" || d.Reason != "dead" || d.Attempts != 1 || !strings.Contains(d.Error, "no such user") {
		t.Errorf("the alert is %+v", alert)
	}

	var dry struct{ Matched int }
	action := options{"action": "retry", "q": "queue:work state:dead tag:again"}
	s.must(http.StatusAccepted, http.MethodPost, "/api/jobs/actions", options{"action": "retry", "q": action["q"], "dryRun": true}, &dry)
	if dry.Matched != len(failed) {
		t.Errorf("a dry run means %d jobs, want %d", dry.Matched, len(failed))
	}
	if n := types(s.history(failed[0])); n["replayed"] != 0 {
		t.Errorf("a dry run did something: %v", n)
	}
	var bulk struct{ JobID string }
	s.must(http.StatusAccepted, http.MethodPost, "/api/jobs/actions", action, &bulk)
	j := s.await(bulk.JobID, time.Minute, "completed", "dead")
	var out struct{ Done, Failed int }
	if err := json.Unmarshal(j.Result, &out); err != nil || out.Done != len(failed) || out.Failed != 0 {
		t.Errorf("the action ended as %+v: %s", j, j.Result)
	}
	for _, id := range append(failed, other) {
		want := 2 // it is as good as before
		if id == other {
			want = 1
		}
		if !eventually(t, 30*time.Second, func() bool { return types(s.history(id))["dead"] == want }) {
			t.Errorf("job %s: %v, want dead %d times", id, types(s.history(id)), want)
		}
	}
}

// What watch ends with says how the job did.
func TestWatch(t *testing.T) {
	s := jobServer(t, script(t, "node", "handler.mjs")...)
	work := s.add("work", "node", options{"do": "work", "numbers": []int{1}}, nil)
	dead := s.add("work", "node", options{"do": "wrong"}, nil)
	cancelled := s.add("nobody", "node", nil, nil)
	s.mustForebay("jobs", "cancel", cancelled)
	expired := s.add("nobody", "node", nil, options{"expires": "1s"})
	for id, c := range map[string]struct {
		code int
		says string
	}{work: {0, "completed"}, dead: {1, "dead"}, cancelled: {4, "cancelled"}, expired: {5, "expired"}, "none": {1, ""}} {
		out, err := s.forebay("watch", id)
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("watch of the %s job: code %d, want %d: %v\n%s", c.says, code, c.code, err, out)
		}
	}
}
