package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/keyring"
)

// Whoever lacks the right sees no hidden part of a payload, by no way.
func TestPayloadsAreMasked(t *testing.T) {
	t.Parallel()
	e := must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{Log: sqlite.LogConfig{Age: time.Hour, MaxBytes: 1 << 20}}))
	s := startOn(t, e, func(c *api.Config) { c.Mask = []string{"password", "user.email", "items.*.card"} })
	key := func(name string, scopes ...keyring.Scope) map[string]string {
		_, secret, err := s.ring.Add(keyring.Spec{Name: name, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"Authorization": "Bearer " + secret}
	}
	boss, guest, clerk, auditor := key("boss", keyring.ScopeAdmin), key("guest", keyring.ScopeView), key("clerk", keyring.ScopeOperate), key("auditor", keyring.ScopeView, keyring.ScopePayload)
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
