package inbox_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/inbox"
)

func open(t *testing.T, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	if cfg.Documents == nil {
		cfg.Documents = documents(t)
	}
	b, err := inbox.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func put(t *testing.T, b *inbox.Inbox, user string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := b.Put(t.Context(), user, id, []byte(`{"title": "`+id+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
}

// ids of a page, those that are read in brackets.
func ids(p inbox.Page) string {
	var list []string
	for _, m := range p.Messages {
		if m.Read {
			m.ID = "(" + m.ID + ")"
		}
		list = append(list, m.ID)
	}
	return strings.Join(list, " ")
}

func newest(t *testing.T, b *inbox.Inbox, user string) inbox.Page {
	t.Helper()
	p, err := b.Newest(t.Context(), user, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAMessageIsStoredOnceAndRead(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{})
	put(t, b, "ann", "m1", "m2", "m1", "m3")
	put(t, b, "bob", "m1")
	p := newest(t, b, "ann")
	if ids(p) != "m1 m2 m3" || p.Unread != 3 || string(p.Messages[0].Message) != `{"title":"m1"}` || p.Messages[0].At.IsZero() {
		t.Errorf("page %+v", p)
	}
	if n, err := b.Mark(t.Context(), "ann", []string{"m2", "unknown"}, true); n != 2 || err != nil {
		t.Errorf("mark: %d, %v", n, err)
	}
	if p := newest(t, b, "ann"); ids(p) != "m1 (m2) m3" || p.Unread != 2 {
		t.Errorf("page %+v", p)
	}
	if n, err := b.Mark(t.Context(), "ann", nil, true); n != 0 || err != nil {
		t.Errorf("mark all: %d, %v", n, err)
	}
	if n, err := b.Mark(t.Context(), "ann", []string{"m3"}, false); n != 1 || err != nil {
		t.Errorf("unmark: %d, %v", n, err)
	}
	if p := newest(t, b, "bob"); ids(p) != "m1" {
		t.Errorf("another user's page %+v", p)
	}
	if p := newest(t, b, "carl"); len(p.Messages) != 0 || p.Unread != 0 {
		t.Errorf("nobody's page %+v", p)
	}
}

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{})
	put(t, b, "ann", "m1", "m2", "m3", "m4", "m5")
	var got []string
	place := "0"
	for range 10 {
		p, err := b.After(t.Context(), "ann", place, 2)
		if err != nil {
			t.Fatal(err)
		}
		got, place = append(got, ids(p)), p.Next
		if !p.More {
			break
		}
	}
	if fmt.Sprint(got) != "[m1 m2 m3 m4 m5]" || len(got) != 3 {
		t.Errorf("pages %q", got)
	}
	put(t, b, "ann", "m6")
	if p, err := b.After(t.Context(), "ann", place, 0); err != nil || ids(p) != "m6" {
		t.Errorf("after the end: %+v, %v", p, err)
	}
	for _, foreign := range []string{"other-3", strings.Split(place, "-")[0] + "-99"} {
		if p, err := b.After(t.Context(), "ann", foreign, 0); err != nil || !p.Reset || ids(p) != "m1 m2 m3 m4 m5 m6" {
			t.Errorf("after %s: %+v, %v", foreign, p, err)
		}
	}
	for _, wrong := range []string{"x", "-1", "a-b", "a--1", strings.Repeat("a", 17) + "-1"} {
		if _, err := b.After(t.Context(), "ann", wrong, 0); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("after %q: %v", wrong, err)
		}
	}
}

func TestAnInboxIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	m := &memory{}
	b := open(t, inbox.Config{Documents: m, MaxMessages: 3, Keep: time.Hour, Now: func() time.Time { return now }})
	put(t, b, "ann", "m1", "m2", "m3", "m4", "m5")
	if p := newest(t, b, "ann"); ids(p) != "m3 m4 m5" {
		t.Errorf("the newest three: %s", ids(p))
	}
	if n := len(m.docs); n != 4 { // three and the list
		t.Errorf("%d documents", n)
	}
	for key, d := range m.docs {
		if !d.Expires.Equal(now.Add(time.Hour)) {
			t.Errorf("%v expires %s", key, d.Expires)
		}
	}
	now = now.Add(40 * time.Minute)
	put(t, b, "ann", "m6")
	now = now.Add(20 * time.Minute)
	if p := newest(t, b, "ann"); ids(p) != "m6" || p.Unread != 1 {
		t.Errorf("after an hour: %s, %d", ids(p), p.Unread)
	}
}

// Two inboxes on one store are what two processes would be.
func TestTwoProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	a, b := open(t, inbox.Config{Documents: docs}), open(t, inbox.Config{Documents: docs})
	var g sync.WaitGroup
	for i := range 40 {
		g.Go(func() {
			// The same message from both, as after a lease that was lost.
			for _, one := range []*inbox.Inbox{a, b} {
				if err := one.Put(t.Context(), "ann", fmt.Sprint("m", i), []byte(`{}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	seen := map[string]bool{}
	p := newest(t, a, "ann")
	for _, m := range p.Messages {
		seen[m.ID] = true
	}
	if len(seen) != 40 || len(p.Messages) != 40 {
		t.Errorf("%d messages, %d different", len(p.Messages), len(seen))
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, inbox.Config{})
	for _, c := range []struct {
		user, id, message string
		field             string
		code              forebay.Code
	}{
		{"", "m", `{}`, "user", forebay.CodeInvalid},
		{strings.Repeat("u", 257), "m", `{}`, "user", forebay.CodeInvalid},
		{"a\nb", "m", `{}`, "user", forebay.CodeInvalid},
		{"\xff", "m", `{}`, "user", forebay.CodeInvalid},
		{"ann", "", `{}`, "id", forebay.CodeInvalid},
		{"ann", strings.Repeat("i", 257), `{}`, "id", forebay.CodeInvalid},
		{"ann", "m", ``, "message", forebay.CodeInvalid},
		{"ann", "m", `{"a":`, "message", forebay.CodeInvalid},
		{"ann", "m", `"` + strings.Repeat("x", 16<<10) + `"`, "message", forebay.CodeTooLarge},
	} {
		err := b.Put(t.Context(), c.user, c.id, []byte(c.message))
		var e *forebay.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Field != c.field {
			t.Errorf("%.10q %.10q %.10q: %v", c.user, c.id, c.message, err)
		}
	}
	_, err := inbox.New(inbox.Config{MaxMessages: -1, Keep: -1, Ping: -1, Write: -1, MaxStreams: -1, PerUser: -1})
	for _, field := range []string{"documents", "maxMessages", "keep", "ping", "write", "maxStreams", "perUser"} {
		if err == nil || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s is missing in %v", field, err)
		}
	}
}

func TestAStoreThatFailsIsToldOf(t *testing.T) {
	t.Parallel()
	m := &memory{}
	b := open(t, inbox.Config{Documents: m})
	put(t, b, "ann", "m1")
	m.fail = forebay.Errorf(forebay.CodeFull, "disk", "no room")
	if err := b.Put(t.Context(), "ann", "m2", []byte(`{}`)); forebay.CodeOf(err) != forebay.CodeFull {
		t.Errorf("put: %v", err)
	}
	if _, err := b.Newest(t.Context(), "ann", 0); forebay.CodeOf(err) != forebay.CodeFull {
		t.Errorf("read: %v", err)
	}
	m.fail = nil
	m.docs[[2]string{"inbox", "ann"}] = engine.Document{Value: []byte("{"), Rev: 1}
	if err := b.Put(t.Context(), "ann", "m2", []byte(`{}`)); forebay.CodeOf(err) != forebay.CodeDamaged {
		t.Errorf("a damaged list: %v", err)
	}
}
