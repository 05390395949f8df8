package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/stream"
)

var update = flag.Bool("update", false, "write golden files")

const token = "the-token-of-this-start"

// server is a whole admin API over real parts.
type server struct {
	*api.Client
	api     *api.API
	broker  *broker.Broker
	streams *stream.Streams
	ring    *keyring.Ring
	bad     *badrow.Store
	url     string
	http    *http.Client
	log     *bytes.Buffer
}

// background runs something until the test ends.
func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func start(t *testing.T, change func(*api.Config)) *server {
	t.Helper()
	return startOn(t, newEngine(t), change)
}

func newEngine(t *testing.T) engine.Engine {
	return must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))
}

func startOn(t *testing.T, e engine.Engine, change func(*api.Config)) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{log: &bytes.Buffer{}}
	var err error
	if s.broker, err = broker.New(e, broker.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.broker.Close() })
	if s.ring, err = keyring.Open(filepath.Join(dir, "keys.json"), keyring.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.ring.Close() })
	if s.bad, err = badrow.Open(filepath.Join(dir, "bad.db"), badrow.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.bad.Close() })
	m, err := monitor.New(monitor.Config{Broker: s.broker, Bad: s.bad, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s.streams = must[*stream.Streams](t)(stream.New(stream.Config{Broker: s.broker, Watcher: s.broker.Watcher()}))
	background(t, s.broker.Watcher().Run)
	cfg := api.Config{
		Broker: s.broker, Ring: s.ring, Bad: s.bad, Monitor: m, Streams: s.streams, Loopback: true, Token: token, Version: "test",
	}
	if change != nil {
		change(&cfg)
	}
	if s.api, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.api.Register(mux)
	s.api.RegisterHealth(mux)
	h := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.streams.Close()
		h.Close()
	})
	s.url = h.URL
	s.http = &http.Client{Transport: newContract(t)}
	if s.Client, err = api.NewClient(h.URL, "", s.http); err != nil {
		t.Fatal(err)
	}
	return s
}

// die makes dead letters of messages m1 to mN on a queue.
func (s *server) die(t *testing.T, queue, code string, n int) {
	t.Helper()
	var msgs []forebay.Message
	for i := range n {
		msgs = append(msgs, forebay.Message{ID: fmt.Sprintf("%s-%s-%d", queue, code, i), Queue: queue, Kind: "k", Payload: []byte(`{"a":1e400}`)})
	}
	s.send(t, msgs...)
	ds, err := s.broker.Receive(t.Context(), engine.Receive{Queue: queue, Max: n})
	if err != nil || len(ds) != n {
		t.Fatalf("received %d of %d: %v", len(ds), n, err)
	}
	var settle []forebay.Settlement
	for _, d := range ds {
		settle = append(settle, forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Dead, Cause: forebay.Cause{
			Code: code, Message: "it does not fit", Detail: map[string]string{"column": "a"}, At: time.Now(),
		}})
	}
	errs, err := s.broker.Settle(t.Context(), settle)
	if err = errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
}

func (s *server) send(t *testing.T, msgs ...forebay.Message) {
	t.Helper()
	results, err := s.broker.Send(t.Context(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil || r.Duplicate {
			t.Fatalf("sent %+v", r)
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantCode(t *testing.T, err error, code forebay.Code) {
	t.Helper()
	if got := forebay.CodeOf(err); got != code {
		t.Errorf("code %q, want %q: %v", got, code, err)
	}
}

func TestOpenAPIIsAsTheGoldenFile(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	resp := must[*http.Response](t)(http.Get(s.url + "/openapi.json"))
	defer resp.Body.Close()
	var doc map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", doc["openapi"])
	}
	got := must[[]byte](t)(json.MarshalIndent(doc, "", "  "))
	path := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := must[[]byte](t)(os.ReadFile(path)); !bytes.Equal(got, want) {
		t.Error("the document has changed; if that is meant, run this test with -update")
	}
	for _, ref := range strings.Split(string(got), `"$ref": "#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(ref, `"`)
		if doc["components"].(map[string]any)["schemas"].(map[string]any)[name] == nil {
			t.Errorf("the schema %s is referred to and not there", name)
		}
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.die(t, "events", "x", 2)
	s.send(t, forebay.Message{Queue: "events", Kind: "k"}, forebay.Message{Queue: "mail", Kind: "k", NotBefore: time.Now().Add(time.Hour)})

	queues := must[[]api.Queue](t)(s.Queues(t.Context()))
	if len(queues) != 2 {
		t.Fatalf("%+v", queues)
	}
	q := must[api.Queue](t)(s.Queue(t.Context(), "events"))
	if q.Waiting != 1 || q.Dead != 2 || q.Sent != 3 || q.Limits == nil || q.Oldest.IsZero() {
		t.Errorf("%+v", q)
	}
	_, err := s.Queue(t.Context(), "none")
	wantCode(t, err, forebay.CodeNotFound)

	want := api.Limits{Active: 5, Rate: api.Rate{Count: 100, PerSeconds: 0.5, Burst: 10}, KeyActive: 1, KeyRate: api.Rate{Count: 1, PerSeconds: 60, Burst: 2}}
	if got := must[api.Limits](t)(s.SetLimits(t.Context(), "events", want)); got != want {
		t.Errorf("set %+v, got %+v", want, got)
	}
	if got := must[api.Limits](t)(s.Pause(t.Context(), "events")); !got.Paused || got.Rate != want.Rate {
		t.Errorf("paused: %+v", got)
	}
	if ds, err := s.broker.Receive(t.Context(), engine.Receive{Queue: "events", Max: 1}); err != nil || len(ds) != 0 {
		t.Errorf("a paused queue handed out %v, %v", ds, err)
	}
	must[api.Limits](t)(s.Resume(t.Context(), "events"))
	if got := must[api.Limits](t)(s.Limits(t.Context(), "events")); got != want {
		t.Errorf("resumed: %+v", got)
	}

	resp := s.do(t, "POST", "/api/queues/events/purge", `{"confirm":"mail"}`, nil)
	if resp.status != 400 || resp.problem.Field != "confirm" {
		t.Errorf("purge without confirmation: %+v", resp)
	}
	if got := must[api.Purged](t)(s.Purge(t.Context(), "events")); got.Dropped != 1 {
		t.Errorf("%+v", got)
	}
	if q := must[api.Queue](t)(s.Queue(t.Context(), "events")); q.Waiting != 0 || q.Dead != 2 {
		t.Errorf("after the purge: %+v", q)
	}
}

func TestKeysOverTheAPI(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	added := must[api.AddedKey](t)(s.AddKey(t.Context(), api.NewKey{Name: "ios", Rate: 10, Burst: 20, DailyQuota: 5, Origins: []string{"https://a.example"}}))
	if _, err := s.ring.Authenticate(added.Secret, keyring.ScopeIngest); err != nil {
		t.Error(err)
	}
	// From now on a secret is needed, and a write key is not enough.
	_, err := s.Keys(t.Context())
	wantCode(t, err, forebay.CodeUnauthorized)
	_, err = s.with(t, added.Secret).Keys(t.Context())
	wantCode(t, err, forebay.CodeUnauthorized)

	c := s.with(t, token)
	if _, err := s.ring.Spend(added.Key.ID, 3); err != nil {
		t.Fatal(err)
	}
	admin := must[api.AddedKey](t)(c.AddKey(t.Context(), api.NewKey{Name: "ops", Scopes: []keyring.Scope{"admin"}}))
	keys := must[[]api.Key](t)(s.with(t, admin.Secret).Keys(t.Context()))
	if len(keys) != 2 || keys[0].UsedToday != 3 || keys[0].Rate != 10 || strings.Contains(fmt.Sprint(keys), added.Secret) {
		t.Errorf("%+v", keys)
	}
	revoked := must[api.Key](t)(c.RevokeKey(t.Context(), admin.Key.ID))
	if revoked.Live() {
		t.Errorf("%+v", revoked)
	}
	_, err = s.with(t, admin.Secret).Keys(t.Context())
	wantCode(t, err, forebay.CodeUnauthorized)
	_, err = c.RevokeKey(t.Context(), "nobody")
	wantCode(t, err, forebay.CodeNotFound)
	_, err = c.AddKey(t.Context(), api.NewKey{Name: "x", Secret: "short"})
	wantCode(t, err, forebay.CodeInvalid)
	_, err = c.AddKey(t.Context(), api.NewKey{Name: "x", Scopes: []keyring.Scope{"root"}})
	wantCode(t, err, forebay.CodeInvalid)
}

// sink is a table of events, as a sink would find them.
type sink map[string]event.Event

func (s sink) Find(_ context.Context, id string) (event.Event, bool, error) {
	if id == "sink-away" {
		return event.Event{}, false, forebay.Errorf(forebay.CodeUnavailable, "sink", "no answer")
	}
	e, ok := s[id]
	return e, ok, nil
}

func TestWhereAnEventIs(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Sink = sink{"written": {ID: "written", Type: "t", Payload: []byte(`{"a":1}`)}}
	})
	s.die(t, "events", "22P02", 1)
	s.send(t, forebay.Message{ID: "done", Queue: "events", Kind: "k"})
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "events", Max: 1}))
	must[[]error](t)(s.broker.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Ack}}))
	s.send(t, forebay.Message{ID: "active", Queue: "events", Kind: "k"})
	must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "events", Max: 1}))
	s.send(t, forebay.Message{ID: "waiting", Queue: "events", Kind: "k"},
		forebay.Message{ID: "delayed", Queue: "events", Kind: "k", NotBefore: time.Now().Add(time.Hour)})
	if err := s.bad.Put(t.Context(), []badrow.Row{{EventID: "rejected", Reason: "eventType is missing"}}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		id    string
		state api.State
		place string
	}{
		{"written", api.StateWritten, "sink"},
		{"waiting", api.StateWaiting, "queue"},
		{"delayed", api.StateDelayed, "queue"},
		{"active", api.StateActive, "queue"},
		{"done", api.StateDone, "queue"},
		{"events-22P02-0", api.StateDead, "dead letters"},
		{"rejected", api.StateRejected, "bad rows"},
		{"never/seen", api.StateUnknown, ""},
	}
	for _, tt := range tests {
		v := must[api.EventPlace](t)(s.Event(t.Context(), tt.id))
		var names, found []string
		for _, p := range v.Places {
			names = append(names, p.Name)
			if p.Found {
				found = append(found, p.Name)
			}
			if p.Failed || p.Says == "" {
				t.Errorf("%s: %+v", tt.id, p)
			}
		}
		if v.State != tt.state || strings.Join(found, ",") != tt.place || v.ID != tt.id {
			t.Errorf("%s: %+v", tt.id, v)
		}
		if want := []string{"bad rows", "queue", "dead letters", "sink"}; !reflect.DeepEqual(names, want) {
			t.Errorf("looked at %v, want %v", names, want)
		}
		if (v.Event != nil) != (tt.state == api.StateWritten) || v.Event != nil && string(v.Event.Payload) != `{"a":1}` {
			t.Errorf("%s: event %v", tt.id, v.Event)
		}
	}
	if v := must[api.EventPlace](t)(s.Event(t.Context(), "sink-away")); !v.Places[3].Failed {
		t.Errorf("a sink that does not answer: %+v", v)
	}
}

type response struct {
	status  int
	header  http.Header
	body    string
	problem api.Problem
}

// do makes a plain request, as anybody could.
func (s *server) do(t *testing.T, method, path, body string, header map[string]string) response {
	t.Helper()
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body)))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		if req.Header.Set(k, v); k == "Host" {
			req.Host = v
		}
	}
	resp := must[*http.Response](t)(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	r := response{status: resp.StatusCode, header: resp.Header, body: string(must[[]byte](t)(io.ReadAll(resp.Body)))}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		if err := json.Unmarshal([]byte(r.body), &r.problem); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (s *server) with(t *testing.T, secret string) *api.Client {
	t.Helper()
	return must[*api.Client](t)(api.NewClient(s.url, secret, s.http))
}
