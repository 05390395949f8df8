package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/inbox"
	"github.com/forebayhq/forebay/task/notify"
	"github.com/forebayhq/forebay/task/push"
	"github.com/forebayhq/forebay/worker"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func poster(t *testing.T, reach push.Reach) *push.Client {
	t.Helper()
	c, err := push.NewClient(push.ClientConfig{Secrets: []string{secret}, Reach: reach})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// hook is a receiver of webhooks that checks signatures.
type hook struct {
	address string
	mu      sync.Mutex
	got     []string
	status  int
}

func listen(t *testing.T) *hook {
	t.Helper()
	verify, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{status: 200}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := verify.Verify(body, r.Header); err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, r.Header.Get("Webhook-Id")+" "+string(body))
		w.WriteHeader(h.status)
		io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(s.Close)
	h.address = s.URL
	return h
}

func (h *hook) answer(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

func (h *hook) calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}

// store is a broker on a real engine, and an inbox on it.
func store(t *testing.T) (*broker.Broker, *inbox.Inbox) {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{Path: t.TempDir() + "/queue.db"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{Policy: broker.Policy{Base: time.Millisecond, Cap: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	box, err := inbox.New(inbox.Config{Documents: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.Close)
	return b, box
}

// titles of a user's inbox.
func titles(t *testing.T, box *inbox.Inbox, user string) (list []string) {
	t.Helper()
	p, err := box.Newest(t.Context(), user, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Messages {
		var n struct{ Kind, Title string }
		if err := json.Unmarshal(m.Message, &n); err != nil {
			t.Fatal(err)
		}
		list = append(list, m.ID+" "+n.Kind+" "+n.Title)
	}
	return list
}

func TestAWebhookIsPostedSigned(t *testing.T) {
	t.Parallel()
	h := listen(t)
	m := mux(t, notify.Config{Webhook: poster(t, push.Private)})
	result, err := m.HandleJob(t.Context(), job("webhook", "job-1", `{"url":"`+h.address+`/x","body":{"type":"order.paid", "n":1}}`))
	if err != nil || string(result) != `{"ok":true}` || fmt.Sprint(h.calls()) != `[job-1 {"type":"order.paid", "n":1}]` {
		t.Errorf("result %s, %v, calls %q", result, err, h.calls())
	}
	for _, c := range []struct{ data, code, field string }{
		{`{}`, "bad_data", "url"},
		{`{"url":"https://a.example"}`, "bad_data", "body"},
		{`{"url":"ftp://a.example","body":1}`, "bad_url", ""},
		{`{"url":"https://u:p@a.example","body":1}`, "bad_url", ""},
		{`{"url":7}`, "bad_data", "url"},
	} {
		_, err := m.HandleJob(t.Context(), job("webhook", "job-1", c.data))
		cause := forebay.CauseOf(err, at)
		if !forebay.IsPermanent(err) || cause.Code != c.code || cause.Detail["field"] != c.field {
			t.Errorf("%s: %v, %+v", c.data, err, cause)
		}
	}
}

func TestAJobCannotReachThisMachineByAWebhook(t *testing.T) {
	t.Parallel()
	h := listen(t)
	m := mux(t, notify.Config{Webhook: poster(t, push.Public)})
	for _, address := range []string{h.address, strings.Replace(h.address, "127.0.0.1", "localhost", 1), "http://169.254.169.254/latest/meta-data", "http://[::1]:1/"} {
		_, err := m.HandleJob(t.Context(), job("webhook", "job-1", map[string]any{"url": address, "body": 1}))
		if !forebay.IsPermanent(err) || forebay.CauseOf(err, at).Code != "address_refused" || len(h.calls()) > 0 {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAnInboxGetsItOnce(t *testing.T) {
	t.Parallel()
	_, box := store(t)
	m := mux(t, notify.Config{Inbox: box})
	for range 2 { // delivered twice
		result, err := m.HandleJob(t.Context(), job("inbox", "job-1", `{"user":"ann","users":["bob"],"title":"Report ready","url":"/reports/1","data":{"id":1}}`))
		if err != nil || string(result) != `{"users":2}` {
			t.Errorf("result %s, %v", result, err)
		}
	}
	for _, user := range []string{"ann", "bob"} {
		if got := titles(t, box, user); fmt.Sprint(got) != "[job-1 inbox Report ready]" {
			t.Errorf("%s has %q", user, got)
		}
	}
	for _, c := range []struct{ data, field string }{
		{`{"title":"x"}`, "user"},
		{`{"user":"a\nb","title":"x"}`, "user"},
		{`{"users":[` + strings.Repeat(`"a",`, 100) + `"a"],"title":"x"}`, "users"},
		{`{"user":"ann"}`, "title"},
		{`{"user":"ann","title":"` + strings.Repeat("x", 201) + `"}`, "title"},
		{`{"user":"ann","title":"x","text":"` + strings.Repeat("x", 4097) + `"}`, "text"},
		{`{"user":"ann","title":"x","url":"javascript:alert(1)"}`, "url"},
		{`{"user":"ann","title":"x","url":"//evil.example"}`, "url"},
		{`{"user":"ann","title":"x","url":"/\\evil.example"}`, "url"},
		{`{"user":"ann","title":"x","url":"data:text/html,x"}`, "url"},
		{`{"user":"ann","title":"x","data":"` + strings.Repeat("x", 17_000) + `"}`, "user"},
	} {
		_, err := m.HandleJob(t.Context(), job("inbox", "job-2", c.data))
		cause := forebay.CauseOf(err, at)
		if !forebay.IsPermanent(err) || cause.Code != "bad_data" || cause.Detail["field"] != c.field {
			t.Errorf("%.60s: %v, %+v", c.data, err, cause)
		}
	}
}

// An alert of a queue as a whole names no job, and arrives all the same.
func TestAnAlertOfAQueue(t *testing.T) {
	t.Parallel()
	_, box := store(t)
	s := serve(t, true, false, nil)
	cfg := over(s, "required")
	cfg.Inbox = box
	cfg.Alerts = notify.AlertConfig{Mail: []string{"ops@example.org"}}
	m := mux(t, cfg)
	for _, reason := range []string{broker.AlertGrowth, broker.AlertDropped} {
		payload, err := json.Marshal(broker.Alert{Queue: "work", Reason: reason, Code: reason, Count: 7, At: at, Error: "7 more"})
		if err != nil {
			t.Fatal(err)
		}
		j := worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: "alert-" + reason, Kind: "alert", Payload: payload}}, func(*forebay.Progress, *forebay.LogLine) {})
		if _, err := m.HandleJob(t.Context(), j); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if got := fmt.Sprint(titles(t, box, "admin")); !strings.Contains(got, "growth: dead letters of work (7)") || !strings.Contains(got, "dropped: dead letters of work (7)") {
		t.Errorf("the inbox has %s", got)
	}
	if got := s.got(); len(got) != 2 || strings.Contains(string(got[0].text), "Job:") {
		t.Errorf("mails %+v", got)
	}
}

// An alert goes everywhere, and what fails is tried again without the rest: here by
// a real worker, which remembers what has been had.
func TestAnAlertReachesEverybodyOnce(t *testing.T) {
	t.Parallel()
	b, box := store(t)
	h, s := listen(t), serve(t, true, false, nil)
	cfg := over(s, "required")
	cfg.Inbox = box
	cfg.Alerts = notify.AlertConfig{Mail: []string{"ops@example.org"}, Webhook: h.address, Poster: poster(t, push.Anywhere)}
	m := mux(t, cfg)
	h.answer(503)

	payload, err := json.Marshal(broker.Alert{ID: "job-9", Queue: "mail", Name: "email.send", Error: "no\r\nBcc: x", Code: "smtp_550", Attempts: 3, Reason: "dead", Owner: "ann", Count: 2, At: at})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := b.Send(t.Context(), []forebay.Message{{ID: "alert-1", Queue: "notifications", Kind: "alert", Payload: payload}})
	if err != nil || sent[0].Err != nil {
		t.Fatal(err, sent)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	attempts := 0
	w, err := worker.New(b, worker.Config{Queue: "notifications", Jobs: worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
		attempts++
		if attempts == 2 {
			h.answer(200)
		}
		result, err := m.HandleJob(ctx, j)
		if attempts == 1 && (err == nil || forebay.IsPermanent(err) || forebay.CauseOf(err, at).Code != "http_503") {
			t.Errorf("the first attempt: %v", err)
		}
		if err == nil {
			stop()
		}
		return result, err
	})})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if attempts != 2 || len(h.calls()) != 2 || h.calls()[1] != "alert-1 "+string(payload) {
		t.Errorf("%d attempts, the webhook got %q", attempts, h.calls())
	}
	if got := s.got(); len(got) != 1 || !strings.Contains(string(got[0].text), "Subject: [forebay] dead: email.send in mail (2 times)") || !strings.Contains(string(got[0].text), "job-9") {
		t.Errorf("mails %+v", got)
	}
	for _, user := range []string{"ann", "admin"} {
		if got := titles(t, box, user); fmt.Sprint(got) != "[alert-1 alert dead: email.send in mail (2 times)]" {
			t.Errorf("%s has %q", user, got)
		}
	}
}

func TestWhatIsNotConfiguredSaysSo(t *testing.T) {
	t.Parallel()
	m := mux(t, notify.Config{})
	for kind, data := range map[string]string{
		"mail":    `{"to":"a@b.org","text":"x"}`,
		"webhook": `{"url":"https://a.example","body":1}`,
		"inbox":   `{"user":"ann","title":"x"}`,
	} {
		_, err := m.HandleJob(t.Context(), job(kind, "job-1", data))
		if forebay.IsPermanent(err) || forebay.CauseOf(err, at).Code != "not_configured" {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := m.HandleJob(t.Context(), job("alert", "job-1", `{"id":"1","queue":"q"}`)); err != nil {
		t.Errorf("an alert that nobody wants: %v", err)
	}
	if _, err := m.HandleJob(t.Context(), job("alert", "job-1", `{}`)); !forebay.IsPermanent(err) {
		t.Errorf("an alert of nothing: %v", err)
	}
}

func TestWrongSettingsAreRefusedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := notify.New(notify.Config{Alerts: notify.AlertConfig{Mail: []string{"x"}, Webhook: "nowhere"}})
	for _, field := range []string{"alerts.mail", "alerts.webhook", "alerts.poster"} {
		if err == nil || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s is missing in %v", field, err)
		}
	}
	for field, c := range map[string]notify.MailConfig{
		"mail.server":  {Server: "nowhere"},
		"mail.from":    {Server: "a:25", From: "x"},
		"mail.tls":     {Server: "a:25", TLS: "maybe"},
		"mail.user":    {Server: "a:25", Password: "hunter2"},
		"mail.timeout": {Server: "a:25", Timeout: -1},
	} {
		_, err := notify.New(notify.Config{Mail: c})
		var e *forebay.Error
		if !errors.As(err, &e) || e.Field != field || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
