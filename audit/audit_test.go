package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/audit"
)

func open(t *testing.T, path string, cfg audit.Config) *audit.Log {
	t.Helper()
	l, err := audit.Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func add(t *testing.T, l *audit.Log, entries ...audit.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, l *audit.Log, q audit.Query) string {
	t.Helper()
	all, err := l.List(q)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%d:%s ", e.Seq, e.Actor)
	}
	return strings.TrimSpace(b.String())
}

func TestEntriesAreKeptAndFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	l := open(t, path, audit.Config{Now: func() time.Time { at = at.Add(time.Minute); return at }})
	add(t, l,
		audit.Entry{Actor: "ann", Action: "POST /api/queues/{name}/pause", Target: "/api/queues/mail/pause", Reason: "flood"},
		audit.Entry{Actor: "bob", Action: "POST /api/dead/replay", Asked: map[string]any{"queue": "mail"}, Done: map[string]any{"done": 3}},
		audit.Entry{Actor: "ann", Action: "DELETE /api/keys/{id}"})
	if got := list(t, l, audit.Query{}); got != "3:ann 2:bob 1:ann" {
		t.Error(got)
	}
	if got := list(t, l, audit.Query{Limit: 2}) + "|" + list(t, l, audit.Query{Before: 2}); got != "3:ann 2:bob|1:ann" {
		t.Error(got)
	}
	if got := list(t, l, audit.Query{Actor: "ann", Action: "mail"}) + "|" + list(t, l, audit.Query{Since: at}); got != "1:ann|3:ann" {
		t.Error(got)
	}
	l.Close()
	if err := l.Add(audit.Entry{}); forebay.CodeOf(err) != forebay.CodeClosed {
		t.Error(err)
	}

	// A crash in the middle of a line, and bytes that are none of ours.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("what?\n{\"seq\":4,\"act"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l = open(t, path, audit.Config{})
	add(t, l, audit.Entry{Actor: "cyd", Asked: map[string]any{"x": strings.Repeat("y", 100_000)}})
	all, err := l.List(audit.Query{Limit: 2})
	if err != nil || len(all) != 2 || all[0].Actor != "cyd" || all[0].Seq != 4 || all[0].Asked["cut"] == nil || all[1].Reason != "" || all[1].Seq != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestTheFilesAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, audit.Config{MaxBytes: 10_000})
	for i := range 200 {
		add(t, l, audit.Entry{Actor: fmt.Sprint("a", i), Reason: strings.Repeat("r", 100)})
	}
	all, err := l.List(audit.Query{})
	if err != nil || len(all) < 20 || len(all) > 60 || all[0].Actor != "a199" {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	for i, e := range all {
		if want := int64(200 - i); e.Seq != want {
			t.Fatalf("entry %d has the number %d, want %d", i, e.Seq, want)
		}
	}
	var size int64
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 10_000 {
		t.Errorf("%d bytes", size)
	}
	l.Close()
	l = open(t, path, audit.Config{MaxBytes: 10_000})
	add(t, l, audit.Entry{Actor: "next"})
	if got := list(t, l, audit.Query{Limit: 1}); got != "201:next" {
		t.Error(got)
	}
}
