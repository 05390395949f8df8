package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/task/notify"
	"github.com/forebayhq/forebay/worker"
)

var at = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func job(kind, id string, data any) *worker.Job {
	payload, ok := data.(string)
	if !ok {
		b, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		payload = string(b)
	}
	return worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: id, Kind: kind, Payload: []byte(payload)}, Attempt: 1},
		func(*forebay.Progress, *forebay.LogLine) {})
}

func mux(t *testing.T, cfg notify.Config) *task.Mux {
	t.Helper()
	n, err := notify.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var m task.Mux
	n.Register(&m)
	return &m
}

// over is the config of a server.
func over(s *server, mode string) notify.Config {
	return notify.Config{Mail: notify.MailConfig{
		Server: s.address, From: "Forebay <jobs@example.com>", TLS: mode, RootCAs: s.roots, User: "forebay", Password: "hunter2",
	}}
}

func TestAMailArrivesAsItWasMeant(t *testing.T) {
	t.Parallel()
	s := serve(t, true, false, nil)
	result, err := mux(t, over(s, "required")).HandleJob(t.Context(), job("mail", "job-1", map[string]any{
		"to": "Ann <ann@example.org>", "cc": []string{"bob@example.org", "Çelik <c@example.org>"}, "replyTo": "help@example.com",
		"subject": "Grüße, €5", "text": "Hällo\n.\nend", "html": "<b>Hällo</b>",
		"headers": map[string]string{"X-Campaign": "may", "List-Unsubscribe": "<https://example.com/u>"},
	}))
	if err != nil || string(result) != `{"messageId":"\u003cjob-1@example.com\u003e","recipients":3}` && string(result) != `{"messageId":"<job-1@example.com>","recipients":3}` {
		t.Fatalf("result %s, %v", result, err)
	}
	got := s.got()
	if len(got) != 1 || !got[0].encrypted || got[0].user != "forebay" || got[0].from != "jobs@example.com" ||
		fmt.Sprint(got[0].to) != "[ann@example.org bob@example.org c@example.org]" {
		t.Fatalf("got %+v", got)
	}
	m, err := mail.ReadMessage(strings.NewReader(string(got[0].text)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From": `"Forebay" <jobs@example.com>`, "To": `"Ann" <ann@example.org>`, "Reply-To": "<help@example.com>", "Subject": "Grüße, €5",
		"Message-Id": "<job-1@example.com>", "X-Campaign": "may", "List-Unsubscribe": "<https://example.com/u>", "Mime-Version": "1.0",
	} {
		if got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get(name)); got != want || err != nil {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := m.Header.Date(); err != nil {
		t.Error(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if kind != "multipart/alternative" || err != nil {
		t.Fatalf("%s, %v", kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []string{"text/plain Hällo\r\n.\r\nend", "text/html <b>Hällo</b>"} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		text, _ := io.ReadAll(quotedprintable.NewReader(p))
		if got := kind + " " + string(text); got != want {
			t.Errorf("part %q, want %q", got, want)
		}
	}
}

func TestHowTheConnectionIsProtected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		starttls, implicit bool
		mode               string
		noRoots            bool
		encrypted, ok      bool
	}{
		{starttls: true, mode: "required", encrypted: true, ok: true},
		{starttls: true, mode: "", encrypted: true, ok: true},
		{starttls: false, mode: "required"},
		{starttls: true, mode: "required", noRoots: true},
		{starttls: true, mode: "opportunistic", encrypted: true, ok: true},
		{starttls: true, mode: "opportunistic", noRoots: true},
		{starttls: false, mode: "opportunistic"}, // no way to sign in that hides the password
		{implicit: true, mode: "implicit", encrypted: true, ok: true},
		{implicit: true, mode: "implicit", noRoots: true},
		{starttls: true, mode: "none"},
	} {
		name := fmt.Sprintf("%+v", c)
		s := serve(t, c.starttls, c.implicit, nil)
		cfg := over(s, c.mode)
		if c.noRoots {
			cfg.Mail.RootCAs = nil
		}
		_, err := mux(t, cfg).HandleJob(t.Context(), job("mail", "job-1", map[string]any{"to": "ann@example.org", "subject": "s", "text": "t"}))
		if (err == nil) != c.ok || forebay.IsPermanent(err) {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.got(); len(got) > 0 && got[0].encrypted != c.encrypted || (len(got) > 0) != c.ok {
			t.Errorf("%s: got %+v", name, got)
		}
		s.mu.Lock()
		for _, n := range s.sessions {
			if _, safe := n.c.TLSConnectionState(); len(n.mech) > 0 && !safe && !c.implicit {
				t.Errorf("%s: the password was sent in the clear (%v)", name, n.mech)
			}
		}
		s.mu.Unlock()
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in %v", name, err)
		}
	}
	// Without a user, mail in the clear is what was asked for.
	s := serve(t, false, false, nil)
	cfg := over(s, "none")
	cfg.Mail.User, cfg.Mail.Password = "", ""
	if _, err := mux(t, cfg).HandleJob(t.Context(), job("mail", "job-1", map[string]any{"to": "ann@example.org", "subject": "s", "text": "t"})); err != nil {
		t.Error(err)
	}
}

func TestWhatRefusalsMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step      string
		code      int
		permanent bool
	}{
		{"mail", 450, false}, {"mail", 553, true},
		{"rcpt", 451, false}, {"rcpt", 550, true},
		{"data", 452, false}, {"data", 554, true},
	} {
		s := serve(t, true, false, func(step, who string) error {
			if step == c.step && who != "ann@example.org" {
				return &smtp.SMTPError{Code: c.code, EnhancedCode: smtp.EnhancedCode{c.code / 100, 1, 1}, Message: "not this one"}
			}
			return nil
		})
		_, err := mux(t, over(s, "required")).HandleJob(t.Context(), job("mail", "job-1", map[string]any{"to": []string{"ann@example.org", "bob@example.org"}, "subject": "s", "text": "t"}))
		cause := forebay.CauseOf(err, at)
		if forebay.IsPermanent(err) != c.permanent || cause.Code != fmt.Sprint("smtp_", c.code) || !strings.Contains(cause.Message, "not this one") {
			t.Errorf("%s %d: permanent %t, %+v", c.step, c.code, forebay.IsPermanent(err), cause)
		}
		if got := s.got(); len(got) != 0 {
			t.Errorf("%s %d: a part of it was sent: %+v", c.step, c.code, got)
		}
	}
	s := serve(t, true, false, nil)
	cfg := over(s, "required")
	cfg.Mail.Password = "wrong"
	_, err := mux(t, cfg).HandleJob(t.Context(), job("mail", "job-1", map[string]any{"to": "ann@example.org", "subject": "s", "text": "t"}))
	if err == nil || forebay.IsPermanent(err) {
		t.Errorf("a wrong password is no fault of the job: %v", err)
	}
}

func TestAMailCanBeCancelledWhileTheServerThinks(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := serve(t, true, false, func(step, _ string) error {
		if step == "data" {
			<-release
		}
		return nil
	})
	s.began = make(chan struct{}, 1)
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.began
		cancel(forebay.ErrCancelled)
	}()
	_, err := mux(t, over(s, "required")).HandleJob(ctx, job("mail", "job-1", map[string]any{"to": "ann@example.org", "subject": "s", "text": "t"}))
	if !errors.Is(err, forebay.ErrCancelled) {
		t.Errorf("got %v", err)
	}
}

func TestWhatAMailMayNotSay(t *testing.T) {
	t.Parallel()
	s := serve(t, true, false, nil)
	m := mux(t, over(s, "required"))
	good := map[string]any{"to": "ann@example.org", "subject": "s", "text": "t"}
	many := make([]string, 101)
	for i := range many {
		many[i] = "a@example.org"
	}
	for _, c := range []struct {
		field string
		name  string
		value any
	}{
		{"to", "to", nil},
		{"to", "to", []string{}},
		{"to", "to", many},
		{"to.0", "to", "nobody"},
		{"to.0", "to", "a@b.org\r\nBcc: c@d.org"},
		{"to.0", "to", "a@b.org>\r\nRCPT TO:<c@d.org"},
		{"to.0", "to", "a@b.org, c@d.org"},
		{"to.1", "to", []string{"a@b.org", ""}},
		{"to", "to", 7},
		{"cc.0", "cc", "x"},
		{"from", "from", "x\r\ny@z.org"},
		{"from", "from", "x"},
		{"replyTo", "replyTo", "x"},
		{"subject", "subject", "a\r\nBcc: c@d.org"},
		{"subject", "subject", "a\nb"},
		{"subject", "subject", "a\x00b"},
		{"subject", "subject", strings.Repeat("a", 901)},
		{"text", "text", ""},
		{"headers.X-A", "headers", map[string]string{"X-A": "1\r\nBcc: c@d.org"}},
		{"headers.X-A  b", "headers", map[string]string{"X-A\r\nb": "1"}},
		{"headers.X-A: b", "headers", map[string]string{"X-A: b": "1"}},
		{"headers.bCc", "headers", map[string]string{"bCc": "c@d.org"}},
		{"headers.Content-Type", "headers", map[string]string{"Content-Type": "text/html"}},
		{"headers.Message-ID", "headers", map[string]string{"Message-ID": "<1@2>"}},
		{"headers.Received", "headers", map[string]string{"Received": "x"}},
		{"headers.", "headers", map[string]string{"": "x"}},
	} {
		data := map[string]any{c.name: c.value}
		for name, value := range good {
			if name != c.name {
				data[name] = value
			}
		}
		_, err := m.HandleJob(t.Context(), job("mail", "job-1", data))
		cause := forebay.CauseOf(err, at)
		if !forebay.IsPermanent(err) || cause.Code != "bad_data" || cause.Detail["field"] != c.field {
			t.Errorf("%s %.60v: %v, cause %+v", c.name, c.value, err, cause)
		}
	}
	if got := s.got(); len(got) != 0 {
		t.Errorf("sent %+v", got)
	}
	// The id of a job may be anything; Message-ID may not.
	if _, err := m.HandleJob(t.Context(), job("mail", "order 7>\r\nBcc: c@d.org", good)); err != nil {
		t.Fatal(err)
	}
	msg, err := mail.ReadMessage(strings.NewReader(string(s.got()[0].text)))
	if err != nil || msg.Header.Get("Bcc") != "" || !strings.HasSuffix(msg.Header.Get("Message-Id"), "@example.com>") {
		t.Errorf("%v, %v", msg, err)
	}
}
