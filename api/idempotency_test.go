package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/keyring"
)

func key(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }

func TestTheSameKeyGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const body = `{"queue":"q","name":"k"}`
	first := s.do(t, "POST", "/api/jobs", body, key("a"))
	again := s.do(t, "POST", "/api/jobs", body, key("a"))
	if first.status != 202 || again.status != 202 || again.body != first.body || again.header.Get("Location") != first.header.Get("Location") ||
		again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if q := must[api.Queue](t)(s.Queue(t.Context(), "q")); q.Sent != 1 {
		t.Errorf("%d were sent", q.Sent)
	}
	if r := s.do(t, "POST", "/api/jobs", body, key("b")); r.body == first.body {
		t.Errorf("another key got the same job: %s", r.body)
	}
	for what, r := range map[string]response{
		"another body":   s.do(t, "POST", "/api/jobs", body+" ", key("a")),
		"another target": s.do(t, "POST", "/api/jobs/bulk", body, key("a")),
	} {
		if r.status != 422 || r.problem.Field != "Idempotency-Key" || r.problem.Status != 422 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for what, k := range map[string]string{"long": strings.Repeat("x", 256), "not ASCII": "ключ", "with a space": "a b"} {
		if r := s.do(t, "POST", "/api/jobs", body, key(k)); r.status != 400 || r.problem.Field != "Idempotency-Key" {
			t.Errorf("a key that is %s: %+v", what, r)
		}
	}
	refused := s.do(t, "POST", "/api/jobs", `{"queue":"q"}`, key("c")) // also a refusal is the answer
	if again := s.do(t, "POST", "/api/jobs", `{"queue":"q"}`, key("c")); again.status != 400 || again.body != refused.body || again.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a refusal: %+v", again)
	}
	if r := s.do(t, "GET", "/api/queues", "", key("a")); r.status != 200 || r.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a GET: %+v", r)
	}
}

func TestLargeAnswersAreKept(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var items []string
	for range 1000 {
		items = append(items, `{"queue":"q","name":"k"}`)
	}
	body := `{"items":[` + strings.Join(items, ",") + `]}`
	first := s.do(t, "POST", "/api/jobs/bulk", body, key("a"))
	if again := s.do(t, "POST", "/api/jobs/bulk", body, key("a")); first.status != 200 || again.body != first.body || len(first.body) < 100_000 || again.header.Get("Idempotent-Replayed") == "" {
		t.Errorf("%d bytes, then %d", len(first.body), len(again.body))
	}
}

func TestCallersHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	header := func(name string) map[string]string {
		_, secret, err := s.ring.Add(keyring.Spec{Name: name, Scopes: []keyring.Scope{keyring.ScopeAdmin}})
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"Idempotency-Key": "same", "Authorization": "Bearer " + secret}
	}
	a, b := header("a"), header("b")
	first := s.do(t, "POST", "/api/jobs", `{"queue":"q","name":"k"}`, a)
	other := s.do(t, "POST", "/api/jobs", `{"queue":"q","name":"other"}`, b)
	if first.status != 202 || other.status != 202 || first.body == other.body {
		t.Errorf("%+v %+v", first, other)
	}
}

// behind is the middleware before a handler of the test.
func behind(s *server, h http.HandlerFunc) func(k, body string) (int, string) {
	guarded := s.api.Guard(keyring.ScopeAdmin)(s.api.Idempotent(h))
	return func(k, body string) (int, string) {
		r, err := http.NewRequest("POST", "http://localhost/api/x", strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Idempotency-Key", k)
		w := &memory{header: http.Header{}}
		guarded.ServeHTTP(w, r)
		return w.status, w.body.String()
	}
}

type memory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (m *memory) Header() http.Header         { return m.header }
func (m *memory) WriteHeader(status int)      { m.status = status }
func (m *memory) Write(b []byte) (int, error) { return m.body.Write(b) }

func TestARequestUnderWayIsNotRunTwice(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	began, finish := make(chan struct{}), make(chan struct{})
	call := behind(s, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-finish
		w.Write([]byte("once"))
	})
	var running sync.WaitGroup
	running.Go(func() {
		if status, body := call("k", "b"); status != 200 || body != "once" {
			t.Errorf("the first: %d %s", status, body)
		}
	})
	<-began
	if status, body := call("k", "b"); status != 409 || !strings.Contains(body, "under way") {
		t.Errorf("in flight: %d %s", status, body)
	}
	if status, _ := call("k", "other"); status != 422 {
		t.Errorf("in flight, another body: %d", status)
	}
	close(finish)
	running.Wait()
	if status, body := call("k", "b"); status != 200 || body != "once" {
		t.Errorf("afterwards: %d %s", status, body)
	}
}

// What asks to come again, and what broke, does not hold the key.
func TestFailuresFreeTheKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	n := 0
	call := behind(s, func(w http.ResponseWriter, r *http.Request) {
		switch n++; n {
		case 1:
			w.WriteHeader(503)
		case 2:
			w.WriteHeader(429)
		case 3:
			panic("broken")
		default:
			fmt.Fprint(w, n)
		}
	})
	for _, want := range []int{503, 429} {
		if status, _ := call("k", "b"); status != want {
			t.Errorf("%d, want %d", status, want)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		call("k", "b")
	}()
	for range 2 {
		if status, body := call("k", "b"); status != 200 || body != "4" {
			t.Errorf("%d %s", status, body)
		}
	}
}

// A process that dies with a request under way holds its key for a minute or so; the
// request that runs again then adds no job twice.
func TestACrashInFlight(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	s := start(t, func(c *api.Config) { c.Now = clock })
	const body = `{"queue":"q","name":"k","data":{"n":1}}`
	first := s.do(t, "POST", "/api/jobs", body, key("a"))

	// As the document was when the process died: the job is sent, its answer is not.
	docs := must[[]engine.Document](t)(s.broker.Documents(t.Context(), "idempotency", "", 10))
	var kept map[string]any
	if err := json.Unmarshal(docs[0].Value, &kept); err != nil || len(docs) != 1 {
		t.Fatal(err, docs)
	}
	docs[0].Value = must[[]byte](t)(json.Marshal(map[string]any{"request": kept["request"], "until": now.Add(65 * time.Second)}))
	must[engine.Document](t)(s.broker.PutDocument(context.Background(), docs[0]))

	if r := s.do(t, "POST", "/api/jobs", body, key("a")); r.status != 409 || r.header.Get("Retry-After") == "" || r.problem.Code != forebay.CodeConflict {
		t.Errorf("while it may still run: %+v", r)
	}
	mu.Lock()
	now = now.Add(66 * time.Second)
	mu.Unlock()
	again := s.do(t, "POST", "/api/jobs", body, key("a"))
	if again.status != 202 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("it ran again:\n%+v\nfirst\n%+v", again, first)
	}
	if q := must[api.Queue](t)(s.Queue(t.Context(), "q")); q.Sent != 1 {
		t.Errorf("%d were sent", q.Sent)
	}
	if r := s.do(t, "POST", "/api/jobs", body, key("a")); r.header.Get("Idempotent-Replayed") != "true" || r.body != first.body {
		t.Errorf("afterwards: %+v", r)
	}
}
