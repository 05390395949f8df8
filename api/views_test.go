package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/audit"
	"github.com/forebayhq/forebay/keyring"
)

// viewers ask for views, each with the session of a role.
type viewers struct {
	*server
	t       *testing.T
	cookies map[string]string
	log     *audit.Log
}

func startViewers(t *testing.T) *viewers {
	t.Helper()
	log := must[*audit.Log](t)(audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"), audit.Config{}))
	t.Cleanup(func() { log.Close() })
	s := start(t, func(c *api.Config) { c.Audit = log })
	cookies, _ := s.signsIn(t)
	return &viewers{s, t, cookies, log}
}

func (v *viewers) ask(who, method, path, body string) (int, string) {
	v.t.Helper()
	r := v.do(v.t, method, path, body, map[string]string{"Cookie": v.cookies[who], "Sec-Fetch-Site": same})
	return r.status, r.body
}

func (v *viewers) save(who, name, query string, shared bool) (int, api.View) {
	v.t.Helper()
	body := fmt.Sprintf(`{"screen":"jobs","name":%q,"query":%q,"shared":%t}`, name, query, shared)
	status, answer := v.ask(who, http.MethodPost, "/api/views", body)
	var saved api.View
	if status == 200 {
		if err := json.Unmarshal([]byte(answer), &saved); err != nil {
			v.t.Fatal(err)
		}
	}
	return status, saved
}

func (v *viewers) names(who, screen string) string {
	v.t.Helper()
	var l api.ViewList
	status, answer := v.ask(who, http.MethodGet, "/api/views?screen="+screen, "")
	if err := json.Unmarshal([]byte(answer), &l); status != 200 || err != nil {
		v.t.Fatal(status, answer)
	}
	var all []string
	for _, one := range l.Items {
		all = append(all, one.Name+"="+one.Query)
	}
	return strings.Join(all, " ")
}

// Whoever may look keeps views of their own, which nobody else sees or drops; those who may
// change things share some.
func TestViewsAreOnesOwnOrShared(t *testing.T) {
	t.Parallel()
	s := startViewers(t)
	_, own := s.save("view", "mine", "q=state:dead", false)
	s.save("view", "mine", "q=state:active", false) // in its place
	_, ours := s.save("operate", "all", "q=queue:mail", true)
	if status, _ := s.save("view", "no", "", true); status != 403 {
		t.Errorf("a viewer shares: %d", status)
	}
	if got := s.names("view", "jobs"); got != "mine=q=state:active all=q=queue:mail" {
		t.Errorf("a viewer sees %q", got)
	}
	if got := s.names("operate", "jobs") + s.names("operate", "dead"); got != "all=q=queue:mail" {
		t.Errorf("another sees %q", got)
	}
	for _, tt := range []struct {
		who, id string
		want    int
	}{{"operate", own.ID, 404}, {"view", ours.ID, 403}, {"view", "shared-x", 403}, {"admin", "shared-x", 404}, {"view", own.ID, 200}, {"operate", ours.ID, 200}, {"operate", ours.ID, 404}} {
		if status, answer := s.ask(tt.who, http.MethodDelete, "/api/views/"+tt.id, ""); status != tt.want {
			t.Errorf("%+v: %d %s", tt, status, answer)
		}
	}
	// A key for some queues keeps its own, and sees none of the shared ones.
	s.save("operate", "secret", "q=queue:other", true)
	_, some, err := s.ring.Add(keyring.Spec{Name: "some", Scopes: []keyring.Scope{keyring.ScopeOperate}, Queues: []string{"mine"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.do(t, http.MethodGet, "/api/views", "", map[string]string{"Authorization": "Bearer " + some}); r.status != 200 || strings.Contains(string(r.body), "secret") {
		t.Errorf("a key of one queue sees %d %s", r.status, r.body)
	}
}

// Names, sizes and numbers of views have bounds, and changes are audited.
func TestViewsAreBoundedAndAudited(t *testing.T) {
	t.Parallel()
	s := startViewers(t)
	s.save("view", "mine", "q=state:dead", false)
	for _, body := range []string{`{"screen":"jobs","name":"  ","query":""}`, `{"screen":"jobs","name":"n","query":"q=%zz"}`, `{"screen":"moon","name":"n","query":""}`, `{"screen":"jobs","name":"n","query":"` + strings.Repeat("x", 2001) + `"}`} {
		if status, answer := s.ask("view", http.MethodPost, "/api/views", body); status < 400 || status > 422 {
			t.Errorf("%.60s: %d %s", body, status, answer)
		}
	}
	for n := range 49 {
		if status, _ := s.save("view", fmt.Sprint("v", n), "", false); status != 200 {
			t.Fatalf("view %d is refused: %d", n, status)
		}
	}
	if status, _ := s.save("view", "one more", "", false); status != 503 {
		t.Errorf("a view over the bound: %d", status)
	}
	if status, _ := s.save("view", "v7", "q=x", false); status != 200 {
		t.Errorf("one that is there is not replaced: %d", status)
	}
	entries := must[[]audit.Entry](t)(s.log.List(audit.Query{Action: "views", Limit: 1000}))
	if e := entries[len(entries)-1]; e.Action != "POST /api/views" || e.Asked["name"] != "mine" || e.Asked["screen"] != "jobs" || e.Asked["query"] != nil || !strings.Contains(e.Actor, "(view)") {
		t.Errorf("the first change is noted as %+v", e)
	}
}
