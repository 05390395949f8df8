//go:build e2e && linux

package e2e

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What an operator looks at, on the real binary: traces of one event across edge, queue and
// sink, and of one job; the audit log; health; how many workers are wanted.
func TestWhatAnOperatorSees(t *testing.T) {
	seen := &spans{}
	otlp := httptest.NewServer(seen)
	t.Cleanup(otlp.Close)
	s := newServer(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+otlp.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	s.args = []string{"--set", `handlers.shout.command=["sh","-c","cat >/dev/null; echo"]`, "--set", "handlers.shout.queue=shouts", "--set", "sink.batchAge=20ms"}
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
	for _, want := range []struct{ name, in string }{
		{"POST /ingest/event", event}, {"queue events", event}, {"write events", event},
		{"POST /api/jobs", job}, {"queue shouts", job}, {"handle shout", job},
	} {
		if !eventually(t, 20*time.Second, func() bool { return seen.find(want.name, want.in) != nil }) {
			t.Fatalf("no span %q of trace %s", want.name, want.in)
		}
	}
	if batch := seen.find("write events", event); hex.EncodeToString(batch.TraceId) == event {
		t.Error("a batch belongs to many traces: it is linked, and is in none of them")
	}
	if *picture != "" {
		draw(t, *picture, event, seen.find("POST /ingest/event", event), seen.find("queue events", event), seen.find("write events", event))
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
