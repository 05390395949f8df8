//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// jobServer starts a server without a database, with settings of the form key=value.
func jobServer(t *testing.T, settings ...string) *server {
	t.Helper()
	s := newServer(t)
	for _, one := range settings {
		s.args = append(s.args, "--set", one)
	}
	s.start()
	return s
}

// script is the setting that makes a Node script of this folder the handler of a kind
// of jobs, on the queue work.
func script(t *testing.T, kind, file string) []string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	command, err := json.Marshal([]string{"node", path})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"handlers." + kind + ".queue=work", "handlers." + kind + ".command=" + string(command)}
}

// job is what the API shows of a job.
type job struct {
	JobID, Name, State, FailedReason string
	Attempts, Deliveries             int
	Progress                         progress
	Result                           json.RawMessage
	Cause                            *struct{ Code, Message string }
	Headers                          map[string]string
}

type progress struct {
	Stage, Message string
	Percent        float64
}

// happening is an event of a job's history.
type happening struct {
	ID, Type, State, Text string
	At                    time.Time
	Progress              *progress
}

// call sends a request with a body as JSON and reads the answer as JSON, each unless
// it is nil.
func (s *server) call(method, path string, in, out any) (int, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return 0, err
		}
	}
	status, answer, err := do(s.t.Context(), method, s.url+path, body, http.Header{"Content-Type": {"application/json"}})
	if err == nil && out != nil {
		if err = json.Unmarshal([]byte(answer), out); err != nil {
			err = fmt.Errorf("%s %s: %d: %w: %.300s", method, path, status, err, answer)
		}
	}
	return status, err
}

// must is call for an answer of a certain status.
func (s *server) must(want int, method, path string, in, out any) {
	s.t.Helper()
	var raw json.RawMessage
	status, err := s.call(method, path, in, &raw)
	if err == nil && status == want && out != nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil || status != want {
		s.t.Fatalf("%s %s: status %d, want %d; %v: %.500s", method, path, status, want, err, raw)
	}
}

// options of a new job, beside queue, name and data.
type options map[string]any

func (s *server) add(queue, name string, data any, more options) string {
	s.t.Helper()
	body := options{"queue": queue, "name": name, "data": data}
	for k, v := range more {
		body[k] = v
	}
	var added struct{ JobID string }
	s.must(http.StatusAccepted, http.MethodPost, "/api/jobs", body, &added)
	return added.JobID
}

func jobPath(id string) string { return "/api/jobs/" + url.PathEscape(id) }

func (s *server) job(id string) job {
	s.t.Helper()
	var j job
	s.must(http.StatusOK, http.MethodGet, jobPath(id), nil, &j)
	return j
}

// await polls until a job is in one of the states.
func (s *server) await(id string, within time.Duration, states ...string) job {
	s.t.Helper()
	var j job
	reached := func() bool {
		j = s.job(id)
		for _, state := range states {
			if j.State == state {
				return true
			}
		}
		return false
	}
	if !eventually(s.t, within, reached) {
		s.t.Fatalf("job %s is %s after %s, want %v: %+v", id, j.State, within, states, j)
	}
	return j
}

// history is all that happened to a job.
func (s *server) history(id string) []happening {
	s.t.Helper()
	var all []happening
	for after := int64(0); ; {
		var page struct {
			Items []happening
			Next  int64
			More  bool
		}
		s.must(http.StatusOK, http.MethodGet, fmt.Sprintf("%s/history?limit=1000&after=%d", jobPath(id), after), nil, &page)
		all = append(all, page.Items...)
		if after = page.Next; !page.More {
			return all
		}
	}
}

// types counts a history by what happened.
func types(history []happening) map[string]int {
	n := map[string]int{}
	for _, h := range history {
		n[h.Type]++
	}
	return n
}

// list is the first page of jobs that a filter means.
func (s *server) list(filter string) []job {
	s.t.Helper()
	var page struct{ Items []job }
	s.must(http.StatusOK, http.MethodGet, "/api/jobs?limit=1000&q="+url.QueryEscape(filter), nil, &page)
	return page.Items
}

// completedOnce checks that jobs complete, each exactly once and without a charged
// attempt; it gives how often they were interrupted.
func (s *server) completedOnce(ids []string, within time.Duration) (interrupted int) {
	s.t.Helper()
	deadline := time.Now().Add(within)
	for _, id := range ids {
		j := s.await(id, max(time.Until(deadline), time.Second), "completed", "dead", "cancelled", "expired")
		n := types(s.history(id))
		if j.State != "completed" || n["completed"] != 1 || n["added"] != 1 || j.Attempts != 0 || n["retry"] != 0 {
			s.t.Errorf("job %s: %+v: %v", id, j, n)
		}
		interrupted += n["lease_lost"] + n["released"]
	}
	return interrupted
}

// sseEvent is one event of a stream.
type sseEvent struct{ name, id, data string }

// parseSSE takes a stream apart, line by line; ready events are given to take.
type parseSSE struct {
	now  sseEvent
	take func(sseEvent) (more bool)
}

func (p *parseSSE) line(text string) (more bool) {
	if text == "" {
		e := p.now
		p.now = sseEvent{}
		return e.data == "" || p.take(e)
	}
	field, value, _ := strings.Cut(text, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "event":
		p.now.name = value
	case "id":
		p.now.id = value
	case "data":
		p.now.data += value
	}
	return true
}
