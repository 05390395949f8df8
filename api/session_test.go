package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/keyring"
)

const same, cross = "same-origin", "cross-site"

// A key is exchanged for a cookie; what the cookie opens is what the key opens, from
// pages of this server, and for as long as the key is live.
func TestSessions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	cookies, ids := s.signsIn(t)
	tests := []struct {
		scope, site, method, path, body string
		want                            int
	}{
		{"view", same, "GET", "/api/overview", "", 200},
		{"view", cross, "GET", "/api/jobs", "", 200}, // SameSite keeps the cookie away; an answer cannot be read
		{"view", same, "POST", "/api/queues/q/pause", "", 403},
		{"view", same, "POST", "/api/flows/validate", `{"source":"flow: f"}`, 200},
		{"view", same, "POST", "/api/flows/f/runs", "{}", 403},
		{"view", same, "POST", "/api/jobs", `{"queue":"q","name":"n"}`, 403},
		{"operate", same, "POST", "/api/queues/q/pause", "", 200},
		{"operate", same, "POST", "/api/jobs", `{"queue":"q","name":"n"}`, 202},
		{"operate", cross, "POST", "/api/jobs", `{"queue":"q","name":"n"}`, 403},
		{"operate", same, "POST", "/api/keys", `{"name":"x"}`, 403},
		{"operate", same, "POST", "/api/queues/q/purge", `{"confirm":"q"}`, 403},
		{"operate", same, "POST", "/api/encryption/rotate", "{}", 403},
		{"operate", same, "GET", "/api/encryption", "", 200},
		{"admin", same, "POST", "/api/encryption/rotate", "{}", 409}, // nothing is sealed here
		{"admin", cross, "POST", "/api/keys", `{"name":"x"}`, 403},
		{"admin", same, "POST", "/api/keys", `{"name":"x"}`, 201},
		{"nobody", same, "GET", "/api/overview", "", 401},
	}
	for _, tt := range tests {
		r := s.do(t, tt.method, tt.path, tt.body, map[string]string{"Cookie": cookies[tt.scope], "Sec-Fetch-Site": tt.site})
		if r.status != tt.want {
			t.Errorf("%+v: %d %s", tt, r.status, r.body)
		}
	}
	role := func(cookie string) api.Role {
		var v api.Session
		r := s.do(t, "GET", "/api/session", "", map[string]string{"Cookie": cookie})
		if err := json.Unmarshal([]byte(r.body), &v); err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		return v.Role
	}
	if role(cookies["operate"]) != api.RoleOperator || role("") != "" {
		t.Error("who is who is told wrongly")
	}
	if _, err := s.ring.Revoke(ids["view"]); err != nil {
		t.Fatal(err)
	}
	s.do(t, "DELETE", "/api/session", "", map[string]string{"Cookie": cookies["operate"]})
	for _, scope := range []string{"view", "operate"} {
		if r := s.do(t, "GET", "/api/overview", "", map[string]string{"Cookie": cookies[scope]}); r.status != http.StatusUnauthorized {
			t.Errorf("%s: a session without a live key, or after its end, opens: %d", scope, r.status)
		}
	}
}

// signsIn exchanges a key of each scope; it gives the cookies and the ids of the keys.
func (s *server) signsIn(t *testing.T) (cookies, ids map[string]string) {
	t.Helper()
	cookies, ids = map[string]string{}, map[string]string{}
	for _, scope := range []keyring.Scope{keyring.ScopeAdmin, keyring.ScopeOperate, keyring.ScopeView, keyring.ScopeIngest} {
		k, secret, err := s.ring.Add(keyring.Spec{Name: string(scope), Scopes: []keyring.Scope{scope}})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.do(t, "POST", "/api/session", `{"key":"`+secret+`"}`, map[string]string{"Sec-Fetch-Site": cross}); r.status != 403 || r.header.Get("Set-Cookie") != "" {
			t.Errorf("another site signs in: %d %s", r.status, r.body)
		}
		r := s.do(t, "POST", "/api/session", `{"key":"`+secret+`"}`, map[string]string{"Sec-Fetch-Site": same})
		set := r.header.Get("Set-Cookie")
		if scope == keyring.ScopeIngest {
			if r.status != 401 || set != "" {
				t.Errorf("a write key signs in: %d %q", r.status, set)
			}
			continue
		}
		if r.status != 200 || !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") {
			t.Fatalf("%s: %d %q %s", scope, r.status, set, r.body)
		}
		cookies[string(scope)], _, _ = strings.Cut(set, ";")
		ids[string(scope)] = k.ID
	}
	return cookies, ids
}

// Whoever holds a key ends his own oldest session by one too many, and nobody else's.
func TestSessionsOfOneKeyShutOutNobody(t *testing.T) {
	s := start(t, nil)
	cookies, _ := s.signsIn(t)
	_, secret, err := s.ring.Add(keyring.Spec{Name: "many", Scopes: []keyring.Scope{keyring.ScopeView}})
	if err != nil {
		t.Fatal(err)
	}
	first := ""
	for i := range 101 {
		r := s.do(t, "POST", "/api/session", `{"key":"`+secret+`"}`, map[string]string{"Sec-Fetch-Site": same})
		if r.status != 200 {
			t.Fatalf("sign-in %d: %d %s", i, r.status, r.body)
		}
		if first == "" {
			first, _, _ = strings.Cut(r.header.Get("Set-Cookie"), ";")
		}
	}
	for cookie, want := range map[string]int{first: 401, cookies["admin"]: 200, cookies["view"]: 200} {
		if r := s.do(t, "GET", "/api/overview", "", map[string]string{"Cookie": cookie}); r.status != want {
			t.Errorf("%d, want %d", r.status, want)
		}
	}
}
