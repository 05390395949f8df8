package ingest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/keyring"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// recorder is a queue that keeps what it is sent, with the dedup of a real one.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
	msgs   []forebay.Message
	err    error
}

func (r *recorder) Send(_ context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	results := make([]forebay.SendResult, len(msgs))
	for i, m := range msgs {
		results[i].ID = m.ID
		if slices.ContainsFunc(r.msgs, func(have forebay.Message) bool { return have.ID == m.ID }) {
			results[i].Duplicate = true
			continue
		}
		e, err := event.Decode(slices.Clone(m.Payload))
		if err != nil {
			results[i].Err = err
			continue
		}
		m.Payload = slices.Clone(m.Payload)
		r.msgs, r.events = append(r.msgs, m), append(r.events, e)
	}
	return results, nil
}

// rig is an edge with its stores behind an HTTP server.
type rig struct {
	t     *testing.T
	queue *recorder
	bad   *badrow.Store
	keys  *keyring.Ring
	edge  *ingest.Edge
	mux   *http.ServeMux
	now   atomic.Int64 // nanoseconds after noon
	seen  seen
}

// seen counts what observers were told.
type seen struct {
	mu     sync.Mutex
	counts map[string]int
}

func (s *seen) add(words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[strings.Join(words, " ")]++
}

func (r *rig) pass(d time.Duration) { r.now.Add(int64(d)) }

func newRig(t *testing.T, change func(*ingest.Config)) *rig {
	t.Helper()
	r := &rig{t: t, queue: &recorder{}, mux: http.NewServeMux()}
	now := func() time.Time { return noon.Add(time.Duration(r.now.Load())) }
	var err error
	dir := t.TempDir()
	if r.bad, err = badrow.Open(filepath.Join(dir, "bad.db"), badrow.Config{Now: now}); err != nil {
		t.Fatal(err)
	}
	if r.keys, err = keyring.Open(filepath.Join(dir, "keys.json"), keyring.Config{Now: now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.bad.Close(); r.keys.Close() })
	cfg := ingest.Config{Sender: r.queue, Bad: r.bad, Keys: r.keys, Now: now, Observer: ingest.Observer{
		Request: func(dialect string, status int, _ time.Duration) { r.seen.add(dialect, strconv.Itoa(status)) },
		Verdict: func(dialect string, status ingest.Status, code string) { r.seen.add(dialect, string(status), code) },
	}}
	if change != nil {
		change(&cfg)
	}
	if r.edge, err = ingest.New(cfg); err != nil {
		t.Fatal(err)
	}
	r.edge.Register(r.mux)
	return r
}

// do sends one request; headers are "Name: value".
func (r *rig) do(method, path, body string, headers ...string) (int, http.Header, string) {
	r.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, req)
	res := w.Result()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, res.Header, strings.TrimSpace(string(b))
}

func (r *rig) post(path, body string, headers ...string) (int, string) {
	r.t.Helper()
	status, _, answer := r.do("POST", path, body, headers...)
	return status, answer
}

func (r *rig) badRows() []badrow.Row {
	r.t.Helper()
	rows, err := r.bad.List(r.t.Context(), badrow.Query{Limit: 1000})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Reverse(rows) // oldest first
	return rows
}

func TestOneEventIsQueuedAndAnsweredByItsID(t *testing.T) {
	r := newRig(t, nil)
	status, answer := r.post("/ingest/event", `{"eventType":"app_open","payload":{"screen": "home"},"userId":"u1","eventId":"e1"}`)
	if status != 202 || answer != `{"messageId":"e1"}` {
		t.Fatalf("got %d %s", status, answer)
	}
	m, e := r.queue.msgs[0], r.queue.events[0]
	if m.ID != "e1" || m.Queue != event.Queue || m.Kind != "app_open" || m.Group != "u1" {
		t.Errorf("message %+v", m)
	}
	if e.ID != "e1" || e.Type != "app_open" || e.UserID != "u1" || string(e.Payload) != `{"screen": "home"}` || !e.ReceivedAt.Equal(noon) || e.Source != "native" {
		t.Errorf("event %+v", e)
	}
	status, answer = r.post("/ingest/event", `{"eventType":"app_open","payload":{},"eventId":"e1"}`)
	if status != 202 || answer != `{"messageId":"e1","duplicate":true}` {
		t.Fatalf("again: got %d %s", status, answer)
	}
}

// key adds a key and gives its secret.
func (r *rig) key(spec keyring.Spec) (keyring.Key, string) {
	r.t.Helper()
	if spec.Name == "" {
		spec.Name = "ios"
	}
	k, secret, err := r.keys.Add(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	return k, secret
}

// Every way in that is promised, with the answer that its clients expect.
func TestEachRouteAnswersAsItsClientsExpect(t *testing.T) {
	segment := map[string]string{"batch": "", "b": "", "import": "", "track": "bought", "t": "bought", "identify": "identify", "i": "identify",
		"page": "page", "p": "page", "screen": "screen", "s": "screen", "group": "group", "g": "group", "alias": "alias", "a": "alias"}
	for name, kind := range segment {
		r := newRig(t, nil)
		body := `{"messageId":"m","event":"bought","userId":"u"}`
		if kind == "" {
			body, kind = `{"batch":[{"type":"track","messageId":"m","event":"bought","userId":"u"}]}`, "bought"
		}
		status, header, answer := r.do("POST", "/v1/"+name, body, "Content-Type: text/plain", "Origin: https://example.com")
		if status != 200 || answer != `{"success":true}` || header.Get("Content-Type") != "application/json" || header.Get("Access-Control-Allow-Origin") != "https://example.com" {
			t.Errorf("%s: got %d %s %v", name, status, answer, header)
		}
		if len(r.queue.msgs) != 1 || r.queue.msgs[0].Kind != kind || r.queue.msgs[0].ID != "m" || r.queue.msgs[0].Group != "u" {
			t.Errorf("%s: queued %+v", name, r.queue.msgs)
		}
		if status, header, answer := r.do("POST", "/v1/"+name, "[7]"); status != 200 || header.Get("X-Forebay-Rejected") != "1" {
			t.Errorf("%s: a bad one: got %d %s", name, status, answer)
		}
		if status, _, _ := r.do("OPTIONS", "/v1/"+name, "", "Origin: https://example.com"); status != 204 {
			t.Errorf("%s: preflight: got %d", name, status)
		}
	}
	for path, body := range map[string]string{
		"/ingest/event":       anEvent,
		"/ingest/batch":       anEvent + "\n" + anEvent,
		"/ingest/cloudevents": `{"specversion":"1.0","id":"1","source":"s","type":"a"}`,
		"/beacon/v1/batch":    `{"batch":[{"type":"page"}]}`,
	} {
		r := newRig(t, nil)
		if status, _, answer := r.do("POST", path, body); status/100 != 2 || len(r.queue.msgs) == 0 {
			t.Errorf("%s: got %d %s", path, status, answer)
		}
		if status, _, _ := r.do("OPTIONS", path, "", "Origin: https://example.com"); status != 204 {
			t.Errorf("%s: preflight: got %d", path, status)
		}
		if status, header, _ := r.do("GET", path, ""); status != 405 || header.Get("Allow") == "" {
			t.Errorf("GET %s: got %d", path, status)
		}
	}
	for _, path := range []string{"/v1/projects/key/settings", "/sourceConfig/?writeKey=key", "/sourceConfig?writeKey=key"} {
		status, header, answer := newRig(t, nil).do("GET", path, "", "Origin: https://example.com")
		if status != 200 || !strings.Contains(answer, `"key"`) || header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("%s: got %d %s", path, status, answer)
		}
	}
}

func TestOneBadEventNeverSpoilsTheOthers(t *testing.T) {
	r := newRig(t, nil)
	status, answer := r.post("/ingest/batch", `[{"eventType":"a","payload":{},"eventId":"1"}, {"eventType":"b"}, {"eventType":"c","payload":tru}, 5, {"eventType":"d","payload":{},"eventId":"2"}]`)
	t.Log(answer)
	if status != 202 || !strings.HasPrefix(answer, `{"accepted":2,"duplicate":0,"rejected":3,"results":[{"index":1,"status":"rejected","code":"missing","pointer":"/payload"`) {
		t.Fatalf("got %d %s", status, answer)
	}
	rows := r.badRows()
	if len(rows) != 3 || string(rows[0].Bytes) != `{"eventType":"b"}` || rows[1].Code != "invalid_json" || rows[2].Code != "not_an_object" {
		t.Fatalf("bad rows %+v", rows)
	}
}
