package api_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/keyring"
)

// open begins a stream and gives its status and first event.
func (s *server) open(t *testing.T, path string) (status int, first string) {
	t.Helper()
	resp := must[*http.Response](t)(http.Get(s.url + path))
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for resp.StatusCode == 200 && lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			return resp.StatusCode, name
		}
	}
	return resp.StatusCode, ""
}

func TestATicketIsGoodOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var mu sync.Mutex
	s := start(t, func(c *api.Config) { c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now } })
	k, secret, err := s.ring.Add(keyring.Spec{Name: "admin", Scopes: []keyring.Scope{keyring.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	c := s.with(t, secret)
	id := must[api.AddedJob](t)(c.AddJob(t.Context(), api.NewJob{ID: "a/b", Queue: "q", Name: "k"}, "")).JobID
	path := "/api/jobs/" + strings.ReplaceAll(id, "/", "%2F") + "/stream"
	get := func() api.Ticket { return must[api.Ticket](t)(c.NewTicket(t.Context(), path)) }

	if status, _ := s.open(t, path); status != 401 {
		t.Errorf("without a key: %d", status)
	}
	ticket := get()
	if status, first := s.open(t, ticket.URL); status != 200 || first != "snapshot" {
		t.Errorf("with a ticket: %d %s", status, first)
	}
	if status, _ := s.open(t, ticket.URL); status != 401 {
		t.Errorf("the second time: %d", status)
	}
	ticket = get()
	if status, _ := s.open(t, "/api/jobs/other/stream?ticket="+ticket.Ticket); status != 401 {
		t.Errorf("for another path: %d", status)
	}
	if status, _ := s.open(t, ticket.URL); status != 401 {
		t.Errorf("after it was shown elsewhere: %d", status)
	}
	ticket = get()
	if r := s.do(t, "POST", ticket.URL, "", nil); r.status != 401 {
		t.Errorf("to change something: %d", r.status)
	}
	ticket = get()
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	if status, _ := s.open(t, ticket.URL); status != 401 {
		t.Errorf("after its time: %d", status)
	}
	ticket = get()
	must[keyring.Key](t)(s.ring.Revoke(k.ID))
	if status, _ := s.open(t, ticket.URL); status != 401 {
		t.Errorf("after the key was revoked: %d", status)
	}
	c = s.with(t, token)
	for _, bad := range []string{"/other", "/api/x?y=1", "/api/%zz"} {
		_, err := c.NewTicket(t.Context(), bad)
		wantCode(t, err, forebay.CodeInvalid)
	}
}

// A ticket opens streams only, and only those that the key behind it opens.
func TestATicketIsNoKey(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	admin, guest := s.key(t, "admin", keyring.ScopeAdmin), s.key(t, "guest", keyring.ScopeView)
	mux := http.NewServeMux()
	yes := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, route := range []string{"GET /api/box/{user}", "GET /api/box/{user}/stream", "GET /api/box/{user}/socket"} {
		mux.Handle(route, s.api.Guard(keyring.ScopeAdmin)(yes))
	}
	show := func(path string, header map[string]string) int {
		ticket := must[api.Ticket](t)(s.with(t, strings.TrimPrefix(header["Authorization"], "Bearer ")).NewTicket(t.Context(), path))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+ticket.URL, nil))
		return w.Code
	}
	for path, want := range map[string][2]int{ // of an admin, of a guest
		"/api/box/ann":          {401, 401},
		"/api/box/ann%2Fstream": {401, 401},
		"/api/box/ann/stream":   {204, 401},
		"/api/box/ann/socket":   {204, 401},
	} {
		if got := [2]int{show(path, admin), show(path, guest)}; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	ticket := must[api.Ticket](t)(s.with(t, strings.TrimPrefix(admin["Authorization"], "Bearer ")).NewTicket(t.Context(), "/api/audit"))
	if r := s.do(t, "GET", ticket.URL, "", nil); r.status != 401 {
		t.Errorf("the audit log: %d %s", r.status, r.body)
	}
}

// The client of the API resumes, and knows the end.
func TestTheClientWatches(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.add(t, api.NewJob{Queue: "q", Name: "k"}).JobID
	var seen []string
	end, err := s.WatchJob(t.Context(), id, func(u api.JobUpdate) error {
		if seen = append(seen, u.Event); u.Event == "snapshot" {
			s.work(t, "q", forebay.Ack)
		}
		return nil
	})
	if err != nil || end.State != forebay.StateCompleted || strings.Join(seen, " ") != "snapshot state state done" {
		t.Errorf("%v %v %+v", err, seen, end)
	}
	_, err = s.WatchJob(t.Context(), "none", func(api.JobUpdate) error { return nil })
	wantCode(t, err, forebay.CodeNotFound)
}

func TestTheStreamOfAll(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if status, first := s.open(t, "/api/stream?queue=q&types=completed,dead"); status != 200 || first != "reset" {
		t.Errorf("%d %s", status, first)
	}
	for _, bad := range []string{"queue=a+b", "types=completed,odd"} {
		if r := s.do(t, "GET", "/api/stream?"+bad, "", nil); r.status != 400 || r.problem.Code != forebay.CodeInvalid {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}
