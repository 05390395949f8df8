package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/keyring"
)

// TestWhoIsLetIn is the whole matrix of listener, keys, what is shown and from where.
func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	setup := func(loopback, keys bool) (*server, map[string]string) {
		s := start(t, func(c *api.Config) { c.Loopback = loopback })
		secrets := map[string]string{"token": token, "wrong": "wrong", "nothing": ""}
		if keys {
			for name, scope := range map[string]keyring.Scope{"admin": keyring.ScopeAdmin, "ingest": keyring.ScopeIngest, "revoked": keyring.ScopeAdmin} {
				k, secret, err := s.ring.Add(keyring.Spec{Name: name, Scopes: []keyring.Scope{scope}})
				if err != nil {
					t.Fatal(err)
				}
				secrets[name] = secret
				if name == "revoked" {
					must[keyring.Key](t)(s.ring.Revoke(k.ID))
				}
			}
		}
		return s, secrets
	}
	tests := []struct {
		loopback, keys bool
		shows          string
		want           int
	}{
		{true, false, "nothing", 200},
		{true, false, "token", 200},
		{true, false, "wrong", 401},
		{true, true, "nothing", 401},
		{true, true, "token", 200},
		{true, true, "admin", 200},
		{true, true, "ingest", 401},
		{true, true, "revoked", 401},
		{true, true, "wrong", 401},
		{false, false, "nothing", 401},
		{false, false, "token", 200},
		{false, true, "nothing", 401},
		{false, true, "admin", 200},
		{false, true, "ingest", 401},
	}
	for _, tt := range tests {
		s, secrets := setup(tt.loopback, tt.keys)
		header := map[string]string{}
		if secret := secrets[tt.shows]; secret != "" {
			header["Authorization"] = "bearer " + secret
		}
		for _, path := range []string{"/api/overview", "/api/keys", "/metrics", "/api/nothing"} {
			want := tt.want
			if path == "/api/nothing" && want == 200 {
				want = 404
			}
			r := s.do(t, "GET", path, "", header)
			if r.status != want {
				t.Errorf("%+v: %s answers %d: %s", tt, path, r.status, r.body)
			}
			if r.status == 401 && (r.header.Get("WWW-Authenticate") == "" || r.problem.Code != forebay.CodeUnauthorized) {
				t.Errorf("%+v: %s: %v %s", tt, path, r.header, r.body)
			}
		}
		s.addsJobs(t, header, tt.want)
		// What a load balancer asks for is open.
		for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
			if r := s.do(t, "GET", path, "", nil); r.status != 200 {
				t.Errorf("%s answers %d", path, r.status)
			}
		}
	}
}

// addsJobs asks the route that adds jobs, which has a guard of its own. Whoever is let
// in hears what is wrong with the job.
func (s *server) addsJobs(t *testing.T, header map[string]string, want int) {
	t.Helper()
	if want == 200 {
		want = 400
	}
	r := s.do(t, "POST", "/api/jobs", "{}", header)
	if r.status != want || r.status == 401 && r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("adding a job answers %d, want %d: %s", r.status, want, r.body)
	}
}

// Without keys, web pages in a browser on this machine must get nothing.
func TestPagesAreKeptOut(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	host := strings.TrimPrefix(s.url, "http://")
	tests := []struct {
		what, method string
		header       map[string]string
		want         int
	}{
		{"curl", "POST", nil, 200},
		{"own console", "POST", map[string]string{"Origin": s.url, "Sec-Fetch-Site": "same-origin"}, 200},
		{"localhost", "GET", map[string]string{"Host": "localhost:8080"}, 200},
		{"a name under localhost", "GET", map[string]string{"Host": "forebay.localhost"}, 200},
		{"::1", "GET", map[string]string{"Host": "[::1]:8080"}, 200},
		{"rebound name", "GET", map[string]string{"Host": "evil.example:8080"}, 403},
		{"rebound name that looks like us", "GET", map[string]string{"Host": "localhost.evil.example"}, 403},
		{"rebound name, writing", "POST", map[string]string{"Host": "evil.example", "Origin": "http://evil.example"}, 403},
		{"another address", "GET", map[string]string{"Host": "192.0.2.1:8080"}, 403},
		{"cross-site form", "POST", map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403},
		{"another port of this machine", "POST", map[string]string{"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, 403},
		{"old browser", "POST", map[string]string{"Origin": "https://evil.example"}, 403},
		{"sandboxed page", "POST", map[string]string{"Origin": "null"}, 403},
		{"cross-site page with the token", "POST", map[string]string{"Origin": "https://evil.example", "Authorization": "Bearer " + token}, 200},
	}
	for _, tt := range tests {
		path := "/api/overview"
		if tt.method == "POST" {
			path = "/api/queues/none/pause"
		}
		r := s.do(t, tt.method, path, "", tt.header)
		if r.status != tt.want {
			t.Errorf("%s (to %s): %d, want %d: %s", tt.what, host, r.status, tt.want, r.body)
		}
		if tt.method == "POST" {
			if r := s.do(t, "POST", "/api/jobs", "{}", tt.header); (r.status == 403) != (tt.want == 403) || r.header.Get("Cache-Control") != "no-store" && r.status == 400 {
				t.Errorf("%s (to %s) adds a job: %d, %s", tt.what, host, r.status, r.body)
			}
		}
		if r.status == 200 && r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other pages may read the answer", tt.what)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	var broken error
	now := time.Now()
	s := start(t, func(c *api.Config) {
		c.Now = func() time.Time { return now }
		c.Checks = []api.Check{
			{Name: "engine", Run: func(context.Context) error { return broken }},
			{Name: "sink", Optional: true, Run: func(context.Context) error {
				return forebay.Errorf(forebay.CodeUnavailable, "postgres", "db.internal:5432 does not answer")
			}},
		}
	})
	ready := must[api.Readiness](t)(s.Ready(t.Context()))
	if !ready.Ready || !ready.Checks[0].OK || ready.Checks[1].OK || ready.Checks[1].Code != forebay.CodeUnavailable {
		t.Errorf("%+v", ready)
	}
	if len(ready.Checks) != 3 || ready.Checks[2].Name != "bad rows" || !ready.Checks[2].OK {
		t.Errorf("%+v", ready)
	}
	broken = forebay.Errorf(forebay.CodeFull, "engine", "no space left in /data")
	if v := must[api.Readiness](t)(s.Ready(t.Context())); !v.Ready {
		t.Errorf("within a second of the last look: %+v", v)
	}
	now = now.Add(time.Second)
	r := s.do(t, "GET", "/readyz", "", nil)
	if r.status != 503 || !strings.Contains(r.body, "no space left") {
		t.Errorf("%d %s", r.status, r.body)
	}
	// The client takes a 503 for the answer that it is.
	if v, err := s.Ready(t.Context()); err != nil || v.Ready || v.Checks[0].Code != forebay.CodeFull {
		t.Errorf("%+v, %v", v, err)
	}
	// Whoever shows nothing, where something is needed, gets names only.
	must[api.AddedKey](t)(s.AddKey(t.Context(), api.NewKey{Name: "k"}))
	if r := s.do(t, "GET", "/readyz", "", nil); r.status != 503 || strings.Contains(r.body, "/data") || !strings.Contains(r.body, "engine") {
		t.Errorf("%d %s", r.status, r.body)
	}
	broken = nil
	now = now.Add(time.Second)
	s.api.Drain()
	if v, err := s.Ready(t.Context()); err != nil || v.Ready || !v.Draining {
		t.Errorf("draining: %+v, %v", v, err)
	}
	if r := s.do(t, "GET", "/healthz", "", nil); r.status != 200 {
		t.Errorf("draining, and not alive: %d", r.status)
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Monitor.Edge().Request("native", 202, time.Millisecond) })
	s.die(t, "events", "x", 1)
	v := must[api.Overview](t)(s.Overview(t.Context()))
	if v.Version != "test" || len(v.Queues) != 1 || v.Queues[0].Dead != 1 || v.Accepted.Count != 1 || v.Accepted.P99ms < 0.9 || v.StartedAt.IsZero() || !v.Readiness.Ready || v.Bad.ByCode == nil {
		t.Errorf("%+v", v)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	tests := []struct {
		method, path, body string
		status             int
		code               forebay.Code
		pointer            string
	}{
		{"GET", "/api/none", "", 404, forebay.CodeNotFound, ""},
		{"PATCH", "/api/queues", "", 405, forebay.CodeInvalid, ""},
		{"GET", "/api/dead?limit=0", "", 422, forebay.CodeInvalid, "query /limit"},
		{"GET", "/api/dead?limt=5", "", 422, forebay.CodeInvalid, "query /limt"},
		{"GET", "/api/dead/x", "", 422, forebay.CodeInvalid, "path /seq"},
		{"POST", "/api/dead/replay", `{"seqs":[1,"x"]}`, 422, forebay.CodeInvalid, "body /seqs/1"},
		{"POST", "/api/dead/replay", `{"seq":[1]}`, 422, forebay.CodeInvalid, "body /seq"},
		{"POST", "/api/dead/replay", `{"seqs":`, 400, forebay.CodeInvalid, "body "},
		{"POST", "/api/dead/replay", ``, 400, forebay.CodeInvalid, ""},
		{"POST", "/api/dead/discard", `{"all":true}`, 422, forebay.CodeInvalid, "body "},
		{"POST", "/api/keys", `{"name":"` + strings.Repeat("x", 2<<20) + `"}`, 413, forebay.CodeTooLarge, ""},
		{"PUT", "/api/queues/a%20b/limits", `{}`, 400, forebay.CodeInvalid, ""},
		{"PUT", "/api/queues/q/limits", `{"rate":{"count":1e18}}`, 422, forebay.CodeInvalid, "body /rate/count"},
		{"PUT", "/api/queues/q/limits", `{"rate":{"count":1,"perSeconds":1e300}}`, 400, forebay.CodeInvalid, ""},
		{"PUT", "/api/queues/q/limits", `{"keyRate":{"count":1,"perSeconds":1e-10}}`, 400, forebay.CodeInvalid, ""},
	}
	for _, tt := range tests {
		r := s.do(t, tt.method, tt.path, tt.body, nil)
		pointers := ""
		for _, w := range r.problem.Errors {
			pointers += w.In + " " + w.Pointer
		}
		if r.status != tt.status || r.problem.Status != tt.status || r.problem.Code != tt.code || r.problem.Detail == "" || pointers != tt.pointer || strings.Contains(r.body, "Go struct") {
			t.Errorf("%s %s %.40s: %d, pointers %q: %s", tt.method, tt.path, tt.body, r.status, pointers, r.body)
		}
	}
}

func TestClientSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := api.NewClient("localhost:8080", "", nil)
	wantCode(t, err, forebay.CodeInvalid)

	gone := httptest.NewServer(http.NotFoundHandler())
	c := must[*api.Client](t)(api.NewClient(gone.URL, "", nil))
	_, err = c.Queues(t.Context())
	wantCode(t, err, forebay.CodeUnavailable)
	gone.Close()
	_, err = c.Queues(t.Context())
	if wantCode(t, err, forebay.CodeUnavailable); err == nil || !strings.Contains(err.Error(), gone.URL) {
		t.Errorf("%v does not name the address", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user left"))
	if _, err := c.Queues(ctx); err == nil {
		t.Error("a cancelled call succeeded")
	}
}

// answerer is a server that answers one thing.
type answerer struct {
	status int
	media  string
	body   []byte
}

func (a answerer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Status: http.StatusText(a.status), Header: http.Header{"Content-Type": {a.media}}, Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// Whatever a server answers, the client gives a value or an error with a code.
func FuzzClientAnswer(f *testing.F) {
	f.Add(200, true, []byte(`{"items":[{"seq":1,"message":{"payload":{"json":{}}}}],"next":7}`))
	f.Add(404, false, []byte(`{"type":"about:blank","status":404,"code":"not_found","detail":"no","errors":[{"in":"body","pointer":"/a"}]}`))
	f.Add(502, false, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, plain bool, body []byte) {
		media := map[bool]string{true: "application/json", false: "application/problem+json"}[plain]
		c, err := api.NewClient("http://localhost", "", &http.Client{Transport: answerer{status, media, body}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Dead(t.Context(), api.DeadFilter{}, 0, 0)
		var e *forebay.Error
		if err != nil && (!errors.As(err, &e) || e.Code == "") {
			t.Fatalf("%v has no code", err)
		}
		if err == nil && !plain {
			t.Fatal("a problem was taken for an answer")
		}
	})
}
