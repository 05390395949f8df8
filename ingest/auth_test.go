package ingest_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
)

const anEvent = `{"eventType":"a","payload":{}}`

func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestAKeyIsFoundWhereverClientsPutIt(t *testing.T) {
	r := newRig(t, nil)
	key, secret := r.key(keyring.Spec{})
	for _, c := range []struct {
		name, path, body string
		headers          []string
		status           int
	}{
		{"basic user", "/ingest/event", anEvent, []string{basic(secret, "")}, 202},
		{"basic password", "/ingest/event", anEvent, []string{basic("", secret)}, 202},
		{"bearer", "/ingest/event", anEvent, []string{"Authorization: Bearer " + secret}, 202},
		{"header", "/ingest/event", anEvent, []string{"X-Write-Key: " + secret}, 202},
		{"bearer in lower case", "/ingest/event", anEvent, []string{"Authorization: bearer " + secret}, 202},
		{"query", "/ingest/event?writeKey=" + secret, anEvent, nil, 202},
		{"single body", "/ingest/event", `{"eventType":"a","payload":{},"writeKey":"` + secret + `"}`, nil, 202},
		{"envelope", "/ingest/batch", `{"batch":[` + anEvent + `],"writeKey":"` + secret + `"}`, nil, 202},
		{"segment envelope", "/v1/b", `{"batch":[{"type":"page"}],"writeKey":"` + secret + `"}`, nil, 200},
		{"segment single", "/v1/p", `{"writeKey":"` + secret + `"}`, nil, 200},
		{"beacon", "/beacon/v1/batch?writeKey=" + secret, `{"batch":[{"type":"page"}]}`, nil, 200},
		{"none", "/ingest/event", anEvent, nil, 401},
		{"none for a batch", "/ingest/batch", "[" + anEvent + "]", nil, 401},
		{"unknown", "/ingest/event", anEvent, []string{"X-Write-Key: fb_nonsense"}, 401},
		{"unknown in the body", "/v1/p", `{"writeKey":"nonsense"}`, nil, 401},
		{"not text in the body", "/v1/p", `{"writeKey":{}}`, nil, 401},
	} {
		before := len(r.queue.msgs)
		status, answer := r.post(c.path, c.body, c.headers...)
		if status != c.status {
			t.Errorf("%s: got %d %s, want %d", c.name, status, answer, c.status)
		}
		if got := len(r.queue.msgs) - before; (got == 1) != (status < 300) {
			t.Errorf("%s: %d events queued", c.name, got)
		}
	}
	for _, m := range r.queue.events {
		if !strings.HasPrefix(m.Source, "ios/") || strings.Contains(string(m.Payload), secret) {
			t.Errorf("source %q, payload %s", m.Source, m.Payload)
		}
	}
	if _, err := r.keys.Revoke(key.ID); err != nil {
		t.Fatal(err)
	}
	status, header, answer := r.do("POST", "/ingest/event", anEvent, "X-Write-Key: "+secret)
	if status != 401 || header.Get("WWW-Authenticate") == "" || !strings.Contains(answer, "revoked") {
		t.Errorf("revoked: got %d %s", status, answer)
	}
	_, admin := r.key(keyring.Spec{Scopes: []keyring.Scope{keyring.ScopeAdmin}})
	if status, answer := r.post("/ingest/event", anEvent, "X-Write-Key: "+admin); status != 401 || !strings.Contains(answer, "scope") {
		t.Errorf("wrong scope: got %d %s", status, answer)
	}
}

// Segment's web SDK puts the key into each event of a batch, too.
func TestKeysAreNotStored(t *testing.T) {
	r := newRig(t, nil)
	_, secret := r.key(keyring.Spec{})
	auth := "X-Write-Key: " + secret
	for path, body := range map[string]string{
		"/v1/b":               `{"batch":[{"type":"page","writeKey":"KEY"},{"writeKey":"KEY","type":"nonsense"}],"writeKey":"KEY"}`,
		"/v1/batch":           `{"type":"page","writeKey":"KEY"}` + "\n" + `{"type":"page","writeKey":"KEY"}`,
		"/v1/p":               `{"writeKey":"KEY"}`,
		"/ingest/event":       `{"eventType":"a","payload":{},"writeKey":"KEY"}`,
		"/ingest/batch":       `[{"eventType":"a","writeKey":"KEY"}]`,
		"/ingest/cloudevents": `{"specversion":"1.0","id":"1","source":"s","type":"a","writeKey":"KEY"}`,
	} {
		if status, answer := r.post(path, strings.ReplaceAll(body, "KEY", secret), auth); status >= 300 {
			t.Errorf("%s: got %d %s", path, status, answer)
		}
	}
	if len(r.queue.msgs) != 6 || len(r.badRows()) != 2 {
		t.Errorf("%d queued, %d bad rows", len(r.queue.msgs), len(r.badRows()))
	}
	for _, m := range r.queue.msgs {
		if strings.Contains(string(m.Payload), secret) {
			t.Errorf("a key in %s", m.Payload)
		}
	}
	for _, row := range r.badRows() {
		if strings.Contains(string(row.Bytes), secret) {
			t.Errorf("a key in the bad row %s", row.Bytes)
		}
	}
}

func TestABadRowHoldsNoKey(t *testing.T) {
	r := newRig(t, nil)
	key, secret := r.key(keyring.Spec{})
	r.post("/ingest/event", `{"eventType":"a","writeKey":"`+secret+`"}`)
	rows := r.badRows()
	if len(rows) != 1 || rows[0].KeyID != key.ID || string(rows[0].Bytes) != `{"eventType":"a"}` {
		t.Errorf("rows %+v", rows)
	}
}

func TestOverItsRateAKeyIsTold429(t *testing.T) {
	r := newRig(t, nil)
	_, secret := r.key(keyring.Spec{Rate: 10, Burst: 10})
	post := func(n int) (int, http.Header) {
		status, header, _ := r.do("POST", "/ingest/batch", "["+strings.TrimSuffix(strings.Repeat(anEvent+",", n), ",")+"]", "X-Write-Key: "+secret)
		return status, header
	}
	if status, _ := post(10); status != 202 {
		t.Fatal(status)
	}
	status, header := post(5)
	if status != 429 || header.Get("Retry-After") != "1" {
		t.Fatalf("got %d, Retry-After %q", status, header.Get("Retry-After"))
	}
	if len(r.queue.msgs) != 10 {
		t.Fatalf("%d events queued", len(r.queue.msgs))
	}
	r.pass(400 * time.Millisecond)
	// On hold: a smaller batch would pass the bucket, but the body is not read.
	if status, header = post(1); status != 429 || header.Get("Retry-After") != "1" {
		t.Fatalf("on hold: got %d", status)
	}
	r.pass(200 * time.Millisecond)
	if status, _ = post(5); status != 202 {
		t.Fatalf("later: got %d", status)
	}
	if _, other := r.key(keyring.Spec{Name: "other"}); other != "" {
		if status, _ := r.post("/ingest/event", anEvent, "X-Write-Key: "+other); status != 202 {
			t.Errorf("another key: got %d", status)
		}
	}
}

func TestAnOutageUsesUpNoQuota(t *testing.T) {
	r := newRig(t, nil)
	_, secret := r.key(keyring.Spec{DailyQuota: 1})
	r.queue.err = forebay.Errorf(forebay.CodeFull, "engine: send", "full")
	for range 5 {
		if status, answer := r.post("/ingest/event", anEvent, "X-Write-Key: "+secret); status != 503 {
			t.Fatalf("got %d %s", status, answer)
		}
	}
	r.queue.err = nil
	for _, want := range []int{202, 429} {
		if status, answer := r.post("/ingest/event", anEvent, "X-Write-Key: "+secret); status != want {
			t.Errorf("got %d %s, want %d", status, answer, want)
		}
	}
}

func TestTheDailyQuotaIsTold429UntilMidnight(t *testing.T) {
	r := newRig(t, nil)
	_, secret := r.key(keyring.Spec{DailyQuota: 1})
	post := func() (int, http.Header, string) {
		return r.do("POST", "/ingest/event", anEvent, "X-Write-Key: "+secret)
	}
	post()
	if status, header, answer := post(); status != 429 || header.Get("Retry-After") != "43200" || !strings.Contains(answer, `"retryAfter":43200`) {
		t.Fatalf("got %d %v %s", status, header, answer)
	}
	r.pass(12 * time.Hour)
	if status, _, answer := post(); status != 202 {
		t.Fatalf("after midnight: got %d %s", status, answer)
	}
}

func TestBrowsersAreToldWhatTheyMayDo(t *testing.T) {
	r := newRig(t, nil)
	status, header, _ := r.do("OPTIONS", "/v1/t", "", "Origin: http://localhost:3000", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type")
	if status != 204 || header.Get("Access-Control-Allow-Origin") != "http://localhost:3000" || header.Get("Access-Control-Allow-Headers") != "authorization,content-type" || header.Get("Access-Control-Max-Age") == "" {
		t.Errorf("open: %d %v", status, header)
	}
	if header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("credentials are allowed")
	}
	_, secret := r.key(keyring.Spec{Origins: []string{"https://*.example.com"}})
	for origin, want := range map[string]int{"https://shop.example.com": 202, "https://example.org": 403} {
		_, header, _ := r.do("OPTIONS", "/ingest/event", "", "Origin: "+origin, "Access-Control-Request-Method: POST")
		if allowed := header.Get("Access-Control-Allow-Origin") != ""; allowed != (want == 202) {
			t.Errorf("preflight of %s: %v", origin, header)
		}
		status, header, answer := r.do("POST", "/ingest/event", anEvent, "Origin: "+origin, "X-Write-Key: "+secret)
		if status != want || (header.Get("Access-Control-Allow-Origin") == origin) != (want == 202) {
			t.Errorf("%s: got %d %s %v", origin, status, answer, header)
		}
	}
	// A refusal can be read by the page, too.
	if _, header, _ := r.do("POST", "/ingest/event", anEvent, "Origin: https://shop.example.com"); header.Get("Access-Control-Allow-Origin") == "" {
		t.Error("a 401 cannot be read by the page")
	}
	if len(r.queue.msgs) != 1 {
		t.Errorf("%d events queued", len(r.queue.msgs))
	}
}
