package push_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task/push"
	"github.com/forebayhq/forebay/worker"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the published example
	second = "whsec_c2Vjb25kIHNlY3JldCBvZiBhIHJvdGF0aW9uIQ=="
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// told collects what a handler tells.
type told struct {
	mu  sync.Mutex
	log []string
}

func (l *told) job(data string) *worker.Job {
	return worker.NewJob(forebay.Delivery{
		Message: forebay.Message{ID: "job-1", Kind: "crm-sync", Queue: "jobs", Payload: []byte(data), Job: &forebay.JobOptions{Deadline: at}},
		Receipt: "r-1",
		Attempt: 2,
	}, func(_ *forebay.Progress, line *forebay.LogLine) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if line != nil {
			l.log = append(l.log, line.Text)
		}
	})
}

func handler(t *testing.T, cfg push.Config) *push.Handler {
	t.Helper()
	cfg.Secrets = append(cfg.Secrets, secret)
	h, err := push.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

func TestAJobIsPostedSignedAndItsAnswerIsTheResult(t *testing.T) {
	t.Parallel()
	verify := func(s string) *webhooks.Webhook {
		w, err := webhooks.NewWebhook(s)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	var got map[string]any
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, s := range []string{secret, second} {
			if err := verify(s).Verify(body, r.Header); err != nil {
				t.Errorf("a receiver with %s: %v", s, err)
			}
		}
		if err := verify("whsec_"+strings.Repeat("A", 32)).Verify(body, r.Header); err == nil {
			t.Error("a receiver with another secret takes it")
		}
		if id := r.Header.Get("Webhook-Id"); id != "job-1" || r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s of %v", r.Method, id, r.Header)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		io.WriteString(w, `{"synced": 3}`)
	})
	var l told
	h := handler(t, push.Config{URL: address + "/jobs", Secrets: []string{second}, ProgressURL: "http://here/api/leases/progress"})
	result, err := h.HandleJob(t.Context(), l.job(`{"user": 7}`))
	if err != nil || string(result) != `{"synced": 3}` {
		t.Fatalf("got %s, %v", result, err)
	}
	want := map[string]any{
		"jobId": "job-1", "name": "crm-sync", "queue": "jobs", "attempt": 2.0, "data": map[string]any{"user": 7.0},
		"deadline": "2026-05-04T03:02:01Z", "progressUrl": "http://here/api/leases/progress", "receipt": "r-1",
	}
	if a, b := asJSON(t, got), asJSON(t, want); a != b {
		t.Errorf("body\n%s\nwant\n%s", a, b)
	}
}

func asJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The vector that Standard Webhooks publishes.
func TestSignatureIsThePublishedOne(t *testing.T) {
	t.Parallel()
	var got http.Header
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	c, err := push.NewClient(push.ClientConfig{Secrets: []string{secret}, Reach: push.Anywhere, Now: func() time.Time { return time.Unix(1614265330, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Post(t.Context(), address, "msg_p5jXN8AQM9LWM0D4loKWxJek", []byte(`{"test": 2432232314}`)); err != nil {
		t.Fatal(err)
	}
	if s := got.Get("Webhook-Signature"); s != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" || got.Get("Webhook-Timestamp") != "1614265330" {
		t.Errorf("signature %s of %v", s, got)
	}
}

func TestWhatStatusesMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status    int
		retry     string // Retry-After
		permanent bool
		wait      time.Duration
	}{
		{status: 301, permanent: true},
		{status: 307, permanent: true},
		{status: 400, permanent: true},
		{status: 401, permanent: true},
		{status: 404, permanent: true},
		{status: 408},
		{status: 409},
		{status: 410, permanent: true},
		{status: 422, permanent: true, retry: "3"},
		{status: 425},
		{status: 429, retry: "7", wait: 7 * time.Second},
		{status: 429, retry: "999999", wait: time.Hour},
		{status: 429, retry: "-1"},
		{status: 429, retry: "soon"},
		{status: 500},
		{status: 501},
		{status: 503, retry: "Mon, 04 May 2099 03:02:01 GMT", wait: time.Hour},
		{status: 599},
	} {
		hits := 0
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			hits++
			w.Header().Set("Location", "/elsewhere")
			if c.retry != "" {
				w.Header().Set("Retry-After", c.retry)
			}
			w.WriteHeader(c.status)
			io.WriteString(w, "no\n\x00\xff such customer"+strings.Repeat("x", 10_000))
		})
		var l told
		result, err := handler(t, push.Config{URL: address + "/?token=hunter2"}).HandleJob(t.Context(), l.job(`{}`))
		if result != nil || err == nil || hits != 1 {
			t.Errorf("%d: got %s, %v after %d calls", c.status, result, err, hits)
			continue
		}
		cause := forebay.CauseOf(err, at)
		wait, _ := forebay.RetryDelay(err)
		if forebay.IsPermanent(err) != c.permanent || wait != c.wait {
			t.Errorf("%d, Retry-After %q: permanent %t, wait %s", c.status, c.retry, forebay.IsPermanent(err), wait)
		}
		if !strings.HasPrefix(cause.Code, "http_") || cause.Detail["status"] == "" || len(cause.Message) > 500 || strings.Contains(cause.Message, "hunter2") {
			t.Errorf("%d: cause %+v", c.status, cause)
		}
		if c.status >= 400 && !strings.Contains(cause.Message, "no such customer") {
			t.Errorf("%d: the target's words are missing: %s", c.status, cause.Message)
		}
	}
}

func TestAnAnswerThatCannotBeKeptIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   []byte
		result string
		log    string
	}{
		"none":      {nil, "", ""},
		"text":      {[]byte("OK"), "", "is not JSON and was not kept: OK"},
		"half":      {[]byte(`{"a":`), "", "not JSON"},
		"too large": {append(bytes.Repeat([]byte(" "), 64<<20), '1'), "", "larger than 1048576"},
		"largest":   {[]byte(`"` + strings.Repeat("a", forebay.MaxResultBytes-2) + `"`), `"` + strings.Repeat("a", forebay.MaxResultBytes-2) + `"`, ""},
	} {
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(c.body) })
		var l told
		result, err := handler(t, push.Config{URL: address}).HandleJob(t.Context(), l.job(`{}`))
		if err != nil || string(result) != c.result || !strings.Contains(strings.Join(l.log, "|"), c.log) || (c.log == "") != (l.log == nil) {
			t.Errorf("%s: %d bytes, %v, log %q", name, len(result), err, l.log)
		}
	}
}

func TestWaitsHaveAnEnd(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush() // headers come, the body does not
		<-release
	})
	t.Cleanup(func() { close(release) })
	var l told
	_, err := handler(t, push.Config{URL: address, Timeout: time.Millisecond}).HandleJob(t.Context(), l.job(`{}`))
	if forebay.CauseOf(err, at).Code != "timeout" || forebay.IsPermanent(err) {
		t.Errorf("its own timeout: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(forebay.ErrCancelled)
	if _, err := handler(t, push.Config{URL: address}).HandleJob(ctx, l.job(`{}`)); !errors.Is(err, forebay.ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCertificatesAreVerified(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "1") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of the client that hangs up
	s.StartTLS()
	t.Cleanup(s.Close)
	var l told
	_, err := handler(t, push.Config{URL: s.URL}).HandleJob(t.Context(), l.job(`{}`))
	if forebay.CauseOf(err, at).Code != "tls" || forebay.IsPermanent(err) {
		t.Errorf("an unknown authority: %v", err)
	}
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	if got, err := handler(t, push.Config{URL: s.URL, RootCAs: roots}).HandleJob(t.Context(), l.job(`{}`)); err != nil || string(got) != "1" {
		t.Errorf("a known authority: %s, %v", got, err)
	}
}

func TestATargetThatIsAwayIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	var l told
	_, err := handler(t, push.Config{URL: s.URL + "/?token=hunter2"}).HandleJob(t.Context(), l.job(`{}`))
	if c := forebay.CauseOf(err, at); c.Code != "unreachable" || forebay.IsPermanent(err) || strings.Contains(c.Message, "hunter2") {
		t.Errorf("cause %+v", c)
	}
}

func TestDataThatIsNoJSONIsADeadLetter(t *testing.T) {
	t.Parallel()
	var l told
	_, err := handler(t, push.Config{URL: "http://127.0.0.1:1"}).HandleJob(t.Context(), l.job(`{"a":`))
	if !forebay.IsPermanent(err) || forebay.CauseOf(err, at).Code != "bad_data" {
		t.Errorf("got %v", err)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg   push.Config
		field string
	}{
		{push.Config{}, "url"},
		{push.Config{URL: "ftp://a/b", Secrets: []string{secret}}, "url"},
		{push.Config{URL: "https://u:p@a/b", Secrets: []string{secret}}, "url"},
		{push.Config{URL: "https://", Secrets: []string{secret}}, "url"},
		{push.Config{URL: "https://a"}, "secrets"},
		{push.Config{URL: "https://a", Secrets: []string{"whsec_hunter2"}}, "secrets.0"},
		{push.Config{URL: "https://a", Secrets: []string{secret, "whsec_aHVudGVyMg=="}}, "secrets.1"},
		{push.Config{URL: "https://a", Secrets: []string{secret}, Timeout: -1}, "timeout"},
	} {
		_, err := push.New(c.cfg)
		var e *forebay.Error
		if !errors.As(err, &e) || e.Code != forebay.CodeInvalid || e.Field != c.field || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want field %s", c.cfg, err, c.field)
		}
	}
}
