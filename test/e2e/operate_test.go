//go:build e2e && linux

package e2e

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spans takes what is sent over OTLP, as a line each: its name, trace, and the traces that
// it links to.
type spans struct {
	mu    sync.Mutex
	lines []string
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in collector.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range in.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				line := span.Name + " in " + hex.EncodeToString(span.TraceId) + " links"
				for _, l := range span.Links {
					line += " " + hex.EncodeToString(l.TraceId)
				}
				s.lines = append(s.lines, line)
			}
		}
	}
}

// find gives the first line with all of these parts.
func (s *spans) find(parts ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return line
		}
	}
	return ""
}

// What an operator looks at, on the real binary: traces of one event across edge, queue and
// sink, and of one job; the audit log; health; how many workers are wanted.
func TestWhatAnOperatorSees(t *testing.T) {
	seen := &spans{}
	otlp := httptest.NewServer(seen)
	t.Cleanup(otlp.Close)
	s := newServer(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+otlp.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	s.args = []string{"--set", `handlers.shout.command=["sh","-c","cat >/dev/null; echo"]`, "--set", "handlers.shout.queue=shouts"}
	s.start()
	const event, job = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
	send := func(path, trace, body string) {
		t.Helper()
		header := http.Header{"Content-Type": {"application/json"}, "Traceparent": {"00-" + trace + "-00f067aa0ba902b7-01"}}
		if status, answer, err := post(t.Context(), s.url+path, []byte(body), header); err != nil || status >= 300 {
			t.Fatalf("%s: %d %s %v", path, status, answer, err)
		}
	}
	send("/ingest/event", event, `{"eventId":"e1","eventType":"x","payload":{}}`)
	send("/api/jobs", job, `{"queue":"shouts","name":"shout","data":{}}`)
	for _, want := range [][]string{
		{"POST /ingest/event in " + event}, {"queue events in " + event + " links "}, {"write events in ", "links " + event},
		{"POST /api/jobs in " + job}, {"queue shouts in " + job}, {"handle shout in " + job},
	} {
		if !eventually(t, 20*time.Second, func() bool { return seen.find(want...) != "" }) {
			t.Errorf("no span %q", want)
		}
	}

	s.mustForebay("queues", "pause", "shouts")
	if out := s.mustForebay("audit", "--json", "--action", "shouts"); !strings.Contains(out, `"POST /api/queues/{name}/pause"`) || !strings.Contains(out, `"via": "cli"`) {
		t.Errorf("the audit log: %s", out)
	}
	if out := s.mustForebay("health", "--fail", "critical"); !strings.HasPrefix(out, "healthy") {
		t.Errorf("health: %s", out)
	}
	if out := s.mustForebay("alerts"); !strings.Contains(out, "disk_free") {
		t.Errorf("alerts: %s", out)
	}
	if out := s.mustForebay("alerts", "mute", "disk", "--reason", "a bigger one comes"); !strings.Contains(out, "nothing is told of disk until") {
		t.Errorf("a mute: %s", out)
	}
	status, body, err := get(t.Context(), s.url+"/api/scaling/events")
	if err != nil || status != http.StatusOK || !strings.Contains(body, `"desiredWorkers":0`) {
		t.Errorf("scaling: %d %s %v", status, body, err)
	}
}
