package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/audit"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/keyring"
)

// key makes a key and gives the header that shows it.
func (s *server) key(t *testing.T, name string, scopes ...keyring.Scope) map[string]string {
	t.Helper()
	_, secret, err := s.ring.Add(keyring.Spec{Name: name, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"Authorization": "Bearer " + secret}
}

// Whoever lacks the right sees no hidden part of a payload, by no way.
func TestPayloadsAreMasked(t *testing.T) {
	t.Parallel()
	e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Age: time.Hour, MaxBytes: 1 << 20}}))
	s := startOn(t, e, func(c *api.Config) { c.Mask = []string{"password", "user.email", "items.*.card"} })
	boss, guest := s.key(t, "boss", keyring.ScopeAdmin), s.key(t, "guest", keyring.ScopeView)
	clerk, auditor := s.key(t, "clerk", keyring.ScopeOperate), s.key(t, "auditor", keyring.ScopeView, keyring.ScopePayload)
	const data = `{"user":{"email":"secret1@x.y","name":"Ann"},"items":[{"card":"secret2","n":1}],"deep":[{"Password":"secret3"}],"email":"open"}`
	s.send(t, forebay.Message{ID: "j1", Queue: "mail", Kind: "k", Payload: []byte(data), Job: &forebay.JobOptions{}},
		forebay.Message{ID: "m1", Queue: "plain", Kind: "k", Payload: []byte(data)}, forebay.Message{ID: "b1", Queue: "plain", Kind: "k", Payload: []byte("secret4 is no JSON")})
	for _, path := range []string{"/api/jobs/j1", "/api/jobs", "/api/queues/plain/messages", "/api/history?of=messages&queue=plain"} {
		for who, header := range map[string]map[string]string{"guest": guest, "clerk": clerk} {
			r := s.do(t, "GET", path, "", header)
			if r.status != 200 || strings.Contains(r.body, "secret") {
				t.Errorf("%s for %s: %d %s", path, who, r.status, r.body)
			}
			if path != "/api/jobs" && (!strings.Contains(r.body, "Ann") || !strings.Contains(r.body, "***") || !strings.Contains(r.body, "open")) {
				t.Errorf("%s for %s hides too much: %s", path, who, r.body)
			}
		}
		for who, header := range map[string]map[string]string{"boss": boss, "auditor": auditor} {
			if r := s.do(t, "GET", path, "", header); path != "/api/jobs" && !strings.Contains(r.body, "secret2") {
				t.Errorf("%s for %s: %d %s", path, who, r.status, r.body)
			}
		}
	}
	for _, way := range []struct{ method, path, body string }{
		{"GET", "/api/jobs?q=payload.user.email:secret1@x.y", ""},
		{"GET", "/api/jobs/j1/stream", ""},
		{"GET", "/api/stream", ""},
		{"GET", "/api/history?of=messages&queue=plain", ""},
		{"PATCH", "/api/jobs/j1", `{"data":{"password":"***"}}`},
		{"POST", "/api/dead/1/replay", `{"data":{"password":"***"}}`},
	} {
		header := map[string]string{"Accept": "application/x-ndjson", "Authorization": clerk["Authorization"]}
		if r := s.do(t, way.method, way.path, way.body, header); r.status != 403 || !strings.Contains(r.body, "payload") {
			t.Errorf("%s %s: %d %s", way.method, way.path, r.status, r.body)
		}
	}
	// A ticket sees no more than who asked for it.
	r := s.do(t, "POST", "/api/stream-tickets", `{"path":"/api/jobs/j1/stream"}`, guest)
	_, rest, _ := strings.Cut(r.body, `"url":"`)
	address, _, _ := strings.Cut(rest, `"`)
	if r := s.do(t, "GET", address, "", nil); r.status != 403 {
		t.Errorf("with a ticket: %d", r.status)
	}
	// Work is done with whole payloads.
	if r := s.do(t, "POST", "/api/queues/mail/lease", `{"max":1}`, clerk); r.status != 200 || !strings.Contains(r.body, "secret1") {
		t.Errorf("a lease: %d %s", r.status, r.body)
	}
}

// A path with dots means what it ends with, so that it holds inside of an event too.
func TestMaskedPathsInsideOfEvents(t *testing.T) {
	t.Parallel()
	e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Age: time.Hour, MaxBytes: 1 << 20}}))
	s := startOn(t, e, func(c *api.Config) { c.Mask = []string{"user.card", "items.*.pin"} })
	guest := s.key(t, "guest", keyring.ScopeView)
	const data = `{"eventType":"a","payload":{"user":{"card":"secret1","name":"Ann"},"users":[{"card":"open1"}],"items":[[{"pin":"secret2"}]],"user2":{"user":[{"Card":"secret3"}]},"card":"open2","x":[{"card":"open3"}]}}`
	s.send(t, forebay.Message{ID: "d1", Queue: "events", Kind: "a", Payload: []byte(data)})
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "events", Max: 1}))
	must[[]error](t)(s.broker.Settle(t.Context(), []forebay.Settlement{{Receipt: ds[0].Receipt, Queue: "events", Verdict: forebay.Dead, Cause: forebay.Cause{Code: "x", At: time.Now()}}}))
	s.send(t, forebay.Message{ID: "m1", Queue: "events", Kind: "a", Payload: []byte(data)})
	if err := s.bad.Put(t.Context(), []badrow.Row{{EventID: "b1", Reason: "r", Bytes: []byte(data)}}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/queues/events/messages", "/api/bad/1", "/api/history?of=messages", "/api/dead/1"} {
		r := s.do(t, "GET", path, "", guest)
		if r.status != 200 || strings.Contains(r.body, "secret") || !strings.Contains(r.body, "***") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
		for _, open := range []string{"Ann", "open1", "open2", "open3"} {
			if !strings.Contains(r.body, open) {
				t.Errorf("%s hides %s too: %s", path, open, r.body)
			}
		}
	}
}

// Wherever a filter is taken, it does not tell what is hidden, and what others have
// searched for is told nowhere.
func TestNobodySearchesByWhatIsHidden(t *testing.T) {
	t.Parallel()
	log := must[*audit.Log](t)(audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"), audit.Config{}))
	t.Cleanup(func() { log.Close() })
	var lines bytes.Buffer
	s := start(t, func(c *api.Config) {
		c.Mask, c.Audit, c.Logger = []string{"user.card", "userId"}, log, slog.New(slog.NewTextHandler(&lines, nil))
	})
	boss, clerk := s.key(t, "boss", keyring.ScopeAdmin), s.key(t, "clerk", keyring.ScopeOperate)
	for _, way := range []struct{ method, path, body string }{
		{"GET", "/api/jobs?q=" + url.QueryEscape("state:dead payload.user.card:4111"), ""},
		{"POST", "/api/jobs/actions", `{"action":"cancel","q":"payload.user.card:4111","dryRun":true}`},
		{"POST", "/api/jobs/actions", `{"action":"cancel","q":"p\u0061yload.user.card:4111"}`},
		{"GET", "/api/history?of=messages&key=4111", ""},
		{"POST", "/api/history/replay", `{"key":"4111","into":"queue","dryRun":true}`},
	} {
		r := s.do(t, way.method, way.path, way.body, clerk)
		if r.status != 403 || r.problem.Code != forebay.CodeUnauthorized || !strings.Contains(r.body, "scope payload") {
			t.Errorf("%s %s %s: %d %s", way.method, way.path, way.body, r.status, r.body)
		}
	}
	if r := s.do(t, "GET", "/api/jobs?q=error:payload", "", clerk); r.status != 200 {
		t.Errorf("what is no search by payload: %d %s", r.status, r.body)
	}
	r := s.do(t, "POST", "/api/jobs/actions", `{"action":"cancel","q":"queue:mail payload.user.card:4111 since:1h"}`, boss)
	if r.status != 202 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	list := must[api.JobList](t)(s.with(t, strings.TrimPrefix(boss["Authorization"], "Bearer ")).Jobs(t.Context(), "queue:"+api.BulkQueue, "", 1))
	if r := s.do(t, "GET", "/api/jobs/"+list.Items[0].JobID, "", clerk); r.status != 200 || strings.Contains(r.body, "4111") || !strings.Contains(r.body, "payload.user.card:***") {
		t.Errorf("the job of an action: %d %s", r.status, r.body)
	}
	s.do(t, "POST", "/api/jobs/actions", `{"action":"cancel","q":"payload.user.card:4111 odd"}`, boss)
	s.do(t, "POST", "/api/jobs/actions", `{"action":"cancel","filter":"payload.user.card:4111"}`, boss) // there is no such field
	s.do(t, "POST", "/api/jobs/actions?q=payload.user.card:4111", `{"action":"cancel","all":true}`, boss)
	entries := must[[]audit.Entry](t)(log.List(audit.Query{Action: "jobs/actions", Limit: 10}))
	told := fmt.Sprint(entries)
	if len(entries) < 4 || strings.Contains(told, "4111") || !strings.Contains(told, "queue:mail payload.user.card:*** since:") {
		t.Errorf("the audit log: %s", told)
	}
	if text := lines.String(); strings.Contains(text, "4111") || !strings.Contains(text, "payload.user.card:***") {
		t.Errorf("the log: %s", text)
	}
}

// written is a sink that has one event.
type written struct{ event.Event }

func (w written) Find(context.Context, string) (event.Event, bool, error) { return w.Event, true, nil }

// What the sink has of an event is masked as its payload is, what stands beside it too.
func TestWrittenEventsAreMasked(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Mask = []string{"userId", "card"}
		c.Sink = written{event.Event{ID: "e1", Type: "buy", UserID: "secret1", Payload: []byte(`{"card":"secret2","n":1}`), Source: "shop"}}
	})
	boss, guest := s.key(t, "boss", keyring.ScopeAdmin), s.key(t, "guest", keyring.ScopeView)
	if r := s.do(t, "GET", "/api/events/e1", "", guest); r.status != 200 || strings.Contains(r.body, "secret") || !strings.Contains(r.body, `"source":"shop"`) || !strings.Contains(r.body, `"n":1`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.do(t, "GET", "/api/events/e1", "", boss); !strings.Contains(r.body, "secret1") || !strings.Contains(r.body, "secret2") {
		t.Errorf("%d %s", r.status, r.body)
	}
}
