package console_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/console"
)

var script = regexp.MustCompile(`src="([^"]+)"`)

// Wherever the console is mounted and whatever the screen, the page finds its files.
func TestPagesFindTheirFiles(t *testing.T) {
	t.Parallel()
	h := console.New().Handler()
	for _, mount := range []string{"", "/ops/queues"} {
		mux := http.NewServeMux()
		mux.Handle(mount+"/", http.StripPrefix(mount, h))
		s := httptest.NewServer(mux)
		defer s.Close()
		for _, screen := range []string{"/", "/jobs", "/jobs/01a2", "/queues/a%2Fb/x"} {
			at := s.URL + mount + screen
			page, body := get(t, at, "")
			m := script.FindStringSubmatch(body)
			if page.StatusCode != 200 || m == nil || !strings.HasPrefix(page.Header.Get("Content-Security-Policy"), "default-src 'self'") {
				t.Fatalf("%s: %d %v %s", at, page.StatusCode, page.Header, body)
			}
			link, err := page.Request.URL.Parse(m[1])
			if err != nil {
				t.Fatal(err)
			}
			file, text := get(t, link.String(), "")
			if file.StatusCode != 200 || len(text) < 1000 || !strings.Contains(file.Header.Get("Cache-Control"), "immutable") {
				t.Errorf("%s leads to %s: %d %v", at, link, file.StatusCode, file.Header)
			}
		}
	}
}

func TestFilesArePackedForThoseWhoTakeThem(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(console.New().Handler())
	defer s.Close()
	_, body := get(t, s.URL+"/", "")
	at := s.URL + "/" + script.FindStringSubmatch(body)[1]
	_, plain := get(t, at, "identity")
	packed, text := get(t, at, "gzip, br")
	if packed.Header.Get("Content-Encoding") != "gzip" || len(text) >= len(plain) {
		t.Fatalf("%v: %d bytes of %d", packed.Header, len(text), len(plain))
	}
	r, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != plain {
		t.Errorf("what is packed is another file: %v", err)
	}
	// A page of another build gets no file that does not fit.
	if r, _ := get(t, regexp.MustCompile(`assets/[0-9a-f]+/`).ReplaceAllString(at, "assets/000000000000/"), ""); r.StatusCode != 404 {
		t.Errorf("another build: %d", r.StatusCode)
	}
}

// What is not a screen is answered as it was without the console.
func TestNothingElseIsAnswered(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ingest/event", func(http.ResponseWriter, *http.Request) {})
	console.New().Register(mux)
	for _, tt := range []struct {
		method, path string
		want         int
	}{{"GET", "/nothing", 404}, {"GET", "/ingest/event", 405}, {"POST", "/jobs", 405}, {"GET", "/assets/x/../../console.go", 404}, {"GET", "/jobs", 200}} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		if w.Code != tt.want && w.Code/100 != 3 {
			t.Errorf("%s %s: %d, not %d", tt.method, tt.path, w.Code, tt.want)
		}
	}
}

// The whole stays small, holds no source map, and names no other host to load from.
func TestWhatIsEmbedded(t *testing.T) {
	t.Parallel()
	whole := 0
	err := fs.WalkDir(os.DirFS("dist"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile("dist/" + name)
		whole += len(text)
		if strings.HasSuffix(name, ".map") || strings.Contains(string(text), "sourceMappingURL") {
			t.Errorf("%s is, or names, a source map", name)
		}
		return err
	})
	if err != nil || whole > 1<<20 || whole < 50_000 {
		t.Errorf("dist has %d bytes: %v", whole, err)
	}
}

func get(t *testing.T, url, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	if accept != "" {
		req.Header.Set("Accept-Encoding", accept)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(b)
}
