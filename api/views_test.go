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

// Whoever may look keeps views of their own, which nobody else sees or drops; those who may
// change things share some. Names, sizes and numbers have bounds, and changes are audited.
func TestViews(t *testing.T) {
	t.Parallel()
	log := must[*audit.Log](t)(audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"), audit.Config{}))
	t.Cleanup(func() { log.Close() })
	s := start(t, func(c *api.Config) { c.Audit = log })
	cookies, _ := s.signsIn(t)
	ask := func(who, method, path, body string) (int, string) {
		r := s.do(t, method, path, body, map[string]string{"Cookie": cookies[who], "Sec-Fetch-Site": same})
		return r.status, string(r.body)
	}
	save := func(who, name, query string, shared bool) (int, api.View) {
		t.Helper()
		body := fmt.Sprintf(`{"screen":"jobs","name":%q,"query":%q,"shared":%t}`, name, query, shared)
		status, answer := ask(who, http.MethodPost, "/api/views", body)
		var v api.View
		if status == 200 {
			if err := json.Unmarshal([]byte(answer), &v); err != nil {
				t.Fatal(err)
			}
		}
		return status, v
	}
	names := func(who, screen string) string {
		t.Helper()
		var l api.ViewList
		status, answer := ask(who, http.MethodGet, "/api/views?screen="+screen, "")
		if err := json.Unmarshal([]byte(answer), &l); status != 200 || err != nil {
			t.Fatal(status, answer)
		}
		var all []string
		for _, v := range l.Items {
			all = append(all, v.Name+"="+v.Query)
		}
		return strings.Join(all, " ")
	}
	_, own := save("view", "mine", "q=state:dead", false)
	save("view", "mine", "q=state:active", false) // in its place
	_, ours := save("operate", "all", "q=queue:mail", true)
	if status, _ := save("view", "no", "", true); status != 403 {
		t.Errorf("a viewer shares: %d", status)
	}
	if got := names("view", "jobs"); got != "mine=q=state:active all=q=queue:mail" {
		t.Errorf("a viewer sees %q", got)
	}
	if got := names("operate", "jobs") + names("operate", "dead"); got != "all=q=queue:mail" {
		t.Errorf("another sees %q", got)
	}
	for _, tt := range []struct {
		who, id string
		want    int
	}{{"operate", own.ID, 404}, {"view", ours.ID, 403}, {"view", "shared-x", 403}, {"admin", "shared-x", 404}, {"view", own.ID, 200}, {"operate", ours.ID, 200}, {"operate", ours.ID, 404}} {
		if status, answer := ask(tt.who, http.MethodDelete, "/api/views/"+tt.id, ""); status != tt.want {
			t.Errorf("%+v: %d %s", tt, status, answer)
		}
	}
	for _, body := range []string{`{"screen":"jobs","name":"  ","query":""}`, `{"screen":"jobs","name":"n","query":"q=%zz"}`, `{"screen":"moon","name":"n","query":""}`, `{"screen":"jobs","name":"n","query":"` + strings.Repeat("x", 2001) + `"}`} {
		if status, answer := ask("view", http.MethodPost, "/api/views", body); status < 400 || status > 422 {
			t.Errorf("%.60s: %d %s", body, status, answer)
		}
	}
	for n := range 50 {
		if status, _ := save("view", fmt.Sprint("v", n), "", false); status != 200 {
			t.Fatalf("view %d is refused: %d", n, status)
		}
	}
	if status, _ := save("view", "one more", "", false); status != 503 {
		t.Errorf("a view over the bound: %d", status)
	}
	if status, _ := save("view", "v7", "q=x", false); status != 200 {
		t.Errorf("one that is there is not replaced: %d", status)
	}
	entries := must[[]audit.Entry](t)(log.List(audit.Query{Action: "views", Limit: 1000}))
	if e := entries[len(entries)-1]; e.Action != "POST /api/views" || e.Asked["name"] != "mine" || e.Asked["screen"] != "jobs" || e.Asked["query"] != nil || !strings.Contains(e.Actor, "(view)") {
		t.Errorf("the first change is noted as %+v", e)
	}
	// A key for some queues keeps its own, and sees none of the shared ones.
	save("operate", "secret", "q=queue:other", true)
	_, some, err := s.ring.Add(keyring.Spec{Name: "some", Scopes: []keyring.Scope{keyring.ScopeOperate}, Queues: []string{"mine"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.do(t, http.MethodGet, "/api/views", "", map[string]string{"Authorization": "Bearer " + some}); r.status != 200 || strings.Contains(string(r.body), "secret") {
		t.Errorf("a key of one queue sees %d %s", r.status, r.body)
	}
}
