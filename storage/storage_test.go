package storage_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
)

func open(t *testing.T) (*storage.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := storage.Open(t.Context(), storage.Config{Address: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func put(t *testing.T, s *storage.Store, name, kind, text string) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, kind, strings.NewReader(text), 0); err != nil {
		t.Fatal(err)
	}
}

func code(t *testing.T, err error, want forebay.Code) {
	t.Helper()
	if got := forebay.CodeOf(err); got != want {
		t.Errorf("code %q, want %q: %v", got, want, err)
	}
}

func TestPutGetDelete(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	put(t, s, "a/b.txt", "text/plain", "one")
	put(t, s, "a/b.txt", "text/plain", "second") // in place of the first
	r, o, err := s.Get(t.Context(), "a/b.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "second" || o.Size != 6 || o.ContentType != "text/plain" || o.Modified.IsZero() {
		t.Errorf("got %q, %+v, %v", got, o, err)
	}
	for range 2 { // the second time it is not there, which is no error
		if err := s.Delete(t.Context(), "a/b.txt"); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = s.Get(t.Context(), "a/b.txt")
	code(t, err, forebay.CodeNotFound)
}

func TestTooLargeLeavesNothing(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	_, err := s.Put(t.Context(), "new", "text/plain", strings.NewReader("12345"), 4)
	code(t, err, forebay.CodeTooLarge)
	put(t, s, "old", "text/plain", "1234")
	_, err = s.Put(t.Context(), "old", "text/plain", strings.NewReader("12345"), 4)
	code(t, err, forebay.CodeTooLarge)
	if got, err := os.ReadFile(filepath.Join(dir, "old")); err != nil || string(got) != "1234" {
		t.Errorf("what was there is %q now, %v", got, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 { // old and its note
		t.Errorf("left: %v, %v", files, err)
	}
}

type broken struct{ r io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("the connection broke")
	}
	return n, err
}

func TestBrokenReaderLeavesNothing(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	_, err := s.Put(t.Context(), "x", "text/plain", broken{strings.NewReader("half of")}, 0)
	if err == nil || !strings.Contains(err.Error(), "the connection broke") {
		t.Errorf("got %v", err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 0 {
		t.Errorf("left: %v", files)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = s.Put(ctx, "y", "text/plain", strings.NewReader("z"), 0); err == nil {
		t.Error("a put whose context had ended was stored")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	outside := filepath.Join(filepath.Dir(dir), "outside")
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", "..", "../outside", "a/../../outside", ".hidden", "a/.b", "a b", `a\b`, "a\x00b", "ä", "a%2e", "a..b",
		"a.attrs", strings.Repeat("a", 129), strings.Repeat("abcdefg/", 65) + "a",
	} {
		_, err := s.Put(t.Context(), name, "text/plain", strings.NewReader("x"), 0)
		code(t, err, forebay.CodeInvalid)
		_, _, err = s.Get(t.Context(), name)
		code(t, err, forebay.CodeInvalid)
		code(t, s.Delete(t.Context(), name), forebay.CodeInvalid)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a file outside of the folder was written")
	}
	for _, id := range []string{"0197-ab", "../x", "", "a b", strings.Repeat("é", 100)} {
		if got := storage.Segment(id); storage.CheckName(got) != nil {
			t.Errorf("Segment(%q) = %q, which is no name", id, got)
		}
	}
	if storage.Segment("../x") == storage.Segment("../y") {
		t.Error("two ids share a segment")
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	if got := s.URL("a/b.jpg"); got != "/files/a/b.jpg" {
		t.Errorf("URL: %s", got)
	}
	if name, ok := s.NameOf("/files/a/b.jpg"); !ok || name != "a/b.jpg" {
		t.Errorf("NameOf: %s, %v", name, ok)
	}
	for _, url := range []string{"/files/../x", "/other/a", "http://example.com/files/a"} {
		if name, ok := s.NameOf(url); ok {
			t.Errorf("NameOf(%s) = %s", url, name)
		}
	}
	for _, address := range []string{"", "ftp://x", "http://x"} {
		_, err := storage.Open(t.Context(), storage.Config{Address: address})
		code(t, err, forebay.CodeInvalid)
	}
}

func TestListAndClean(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	now := time.Now()
	for _, name := range []string{"originals/a", "originals/b", "originals/c", "images/d"} {
		put(t, s, name, "image/png", name)
	}
	for _, name := range []string{"originals/a", "originals/c", "images/d"} {
		old := now.Add(-48 * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Clean(t.Context(), "originals/", now.Add(-24*time.Hour), 1); n != 1 || err != nil {
		t.Errorf("cleaned %d, %v; at most one was asked for", n, err)
	}
	if n, err := s.Clean(t.Context(), "originals/", now.Add(-24*time.Hour), 100); n != 1 || err != nil {
		t.Errorf("cleaned %d, %v; one was left", n, err)
	}
	var left []string
	for o, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if o.Size != int64(len(o.Name)) || o.Modified.IsZero() {
			t.Errorf("listed as %+v", o)
		}
		left = append(left, o.Name)
	}
	if got := strings.Join(left, " "); got != "images/d originals/b" {
		t.Errorf("left: %s", got)
	}
}

func serve(t *testing.T, s http.Handler, method, path, ranges string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if ranges != "" {
		r.Header.Set("Range", ranges)
	}
	w := httptest.NewRecorder()
	http.StripPrefix("/files/", s).ServeHTTP(w, r)
	return w.Result()
}

func TestServe(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	body := strings.Repeat("0123456789", 1000)
	put(t, s, "a.png", "image/png", body)
	put(t, s, "a.html", "text/html", "<script>alert(1)</script>")
	put(t, s, "a.svg", "image/svg+xml", "<svg/>")
	for _, c := range []struct {
		method, path, ranges string
		status               int
		kind, disposition    string
		length               int
	}{
		{"GET", "/files/a.png", "", 200, "image/png", "", len(body)},
		{"HEAD", "/files/a.png", "", 200, "image/png", "", 0},
		{"GET", "/files/a.png", "bytes=5-14", 206, "image/png", "", 10},
		{"GET", "/files/a.png", "bytes=-7", 206, "image/png", "", 7},
		{"GET", "/files/a.png", "bytes=99999-", 416, "text/plain; charset=utf-8", "", -1},
		{"GET", "/files/a.html", "", 200, "application/octet-stream", `attachment; filename="a.html"`, -1},
		{"GET", "/files/a.svg", "", 200, "application/octet-stream", `attachment; filename="a.svg"`, -1},
		{"GET", "/files/none", "", 404, "text/plain; charset=utf-8", "", -1},
		{"GET", "/files/..%2f..%2fetc/passwd", "", 404, "text/plain; charset=utf-8", "", -1},
		{"GET", "/files/a.png.attrs", "", 404, "text/plain; charset=utf-8", "", -1},
		{"DELETE", "/files/a.png", "", 405, "text/plain; charset=utf-8", "", -1},
	} {
		r := serve(t, s, c.method, c.path, c.ranges)
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		h := r.Header
		if r.StatusCode != c.status || h.Get("Content-Type") != c.kind || h.Get("Content-Disposition") != c.disposition || c.length >= 0 && len(got) != c.length {
			t.Errorf("%s %s %s: %d, %v, %d bytes", c.method, c.path, c.ranges, r.StatusCode, h, len(got))
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: headers %v", c.path, h)
		}
		if c.status == 206 && c.length == 10 && !bytes.Equal(got, []byte(body[5:15])) {
			t.Errorf("range: %q", got)
		}
	}
}
