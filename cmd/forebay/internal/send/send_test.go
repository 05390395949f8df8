package send_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/forebayhq/forebay/cmd/forebay/internal/send"
)

// edge answers as a server does: it takes what is JSON with an eventType, knows ids
// again, and says no as often as it is told to.
type edge struct {
	mu      sync.Mutex
	ids     map[string]int
	order   []string
	refuse  []int // status codes to answer first
	largest int   // events per request
	posts   int
}

func (e *edge) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	e.serve(w, r)
	return w.Result(), nil
}

func (e *edge) serve(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.posts++
	if len(e.refuse) > 0 {
		code := e.refuse[0]
		e.refuse = e.refuse[1:]
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(code)
		io.WriteString(w, `{"title":"no","detail":"not now"}`)
		return
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var answer struct {
		Accepted  int   `json:"accepted"`
		Duplicate int   `json:"duplicate"`
		Rejected  int   `json:"rejected"`
		Results   []any `json:"results"`
	}
	var events []string
	for scan := bufio.NewScanner(z); scan.Scan(); {
		events = append(events, scan.Text())
	}
	if e.largest > 0 && len(events) > e.largest {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if !strings.HasPrefix(events[0], "{") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for i, text := range events {
		var one struct{ EventID, EventType string }
		switch err := json.Unmarshal([]byte(text), &one); {
		case err != nil || one.EventType == "":
			answer.Rejected++
			answer.Results = append(answer.Results, map[string]any{"index": i, "status": "rejected", "code": "invalid", "message": "no event"})
		case e.ids[one.EventID] > 0:
			answer.Duplicate++
			e.ids[one.EventID]++
		default:
			answer.Accepted++
			e.ids[one.EventID]++
			e.order = append(e.order, one.EventType)
		}
	}
	w.WriteHeader(http.StatusAccepted)
	json.NewEncoder(w).Encode(answer)
}

func newEdge() *edge { return &edge{ids: map[string]int{}} }

func (e *edge) config() send.Config {
	return send.Config{URL: "http://server/", Batch: 10, Client: &http.Client{Transport: e}}
}

func fileOf(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func numbered(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"eventType":"e%03d","payload":{}}`, i)
	}
	return lines
}

func TestAllOnceInOrder(t *testing.T) {
	t.Parallel()
	e := newEdge()
	path := fileOf(t, append(numbered(95), "", "  ", "not json", `{}`, `{"eventId":"mine","eventType":"last"}`)...)
	sum, err := send.File(t.Context(), path, e.config())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Accepted != 96 || sum.Rejected != 2 || sum.Duplicate != 0 || sum.Lines != 100 || sum.Offset != sum.Size {
		t.Errorf("unexpected summary: %+v", sum)
	}
	if len(sum.Rejections) != 2 || sum.Rejections[0].Line != 98 || sum.Rejections[1].Line != 99 {
		t.Errorf("rejections: %+v", sum.Rejections)
	}
	if e.ids["mine"] != 1 {
		t.Error("an id of the file's own was not kept")
	}
	for i := range 95 {
		if e.order[i] != fmt.Sprintf("e%03d", i) {
			t.Fatalf("event %d is %s", i, e.order[i])
		}
	}
	if again, err := send.File(t.Context(), path, e.config()); err != nil || again.Accepted != 0 || again.Duplicate != 96 {
		t.Errorf("sent again: %+v, %v", again, err)
	}
}

// A run that is interrupted is taken up at the last confirmed batch, and its state
// file goes when all is sent. A file that changed begins anew.
func TestResume(t *testing.T) {
	t.Parallel()
	e := newEdge()
	path := fileOf(t, numbered(100)...)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("ctrl-c")
	cfg := e.config()
	cfg.Progress = func(p send.Progress) {
		if p.Lines >= 40 {
			cancel(stop)
		}
	}
	if _, err := send.File(ctx, path, cfg); !errors.Is(err, stop) {
		t.Fatalf("got %v", err)
	}
	sum, err := send.File(t.Context(), path, e.config())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Resumed == 0 || sum.Accepted != 100 || sum.Duplicate != 0 || len(e.order) != 100 {
		t.Errorf("unexpected summary: %+v", sum)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left beside the file: %v, %v", left, err)
	}
}

func TestWaitsAsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEdge()
		e.refuse = []int{429, 503, 500}
		begun := time.Now()
		sum, err := send.File(t.Context(), fileOf(t, numbered(5)...), e.config())
		if err != nil {
			t.Fatal(err)
		}
		if sum.Retries != 3 || sum.Accepted != 5 || time.Since(begun) != 9*time.Second {
			t.Errorf("%+v after %s", sum, time.Since(begun))
		}
	})
}

func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEdge()
		for range 10_000 {
			e.refuse = append(e.refuse, 503)
		}
		cfg := e.config()
		cfg.Patience = time.Minute
		if _, err := send.File(t.Context(), fileOf(t, numbered(5)...), cfg); err == nil || !strings.Contains(err.Error(), "gave up") {
			t.Errorf("got %v", err)
		}
		e.refuse = []int{401}
		if _, err := send.File(t.Context(), fileOf(t, numbered(5)...), cfg); err == nil || !strings.Contains(err.Error(), "not now") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTooLargeIsHalved(t *testing.T) {
	t.Parallel()
	e := newEdge()
	e.largest = 3
	sum, err := send.File(t.Context(), fileOf(t, numbered(20)...), e.config())
	if err != nil || sum.Accepted != 20 {
		t.Errorf("%+v, %v", sum, err)
	}
	for i, name := range e.order {
		if name != fmt.Sprintf("e%03d", i) {
			t.Fatalf("event %d is %s", i, name)
		}
	}
}

// Lines of any content are sent as they are, but for the id; none is lost.
func FuzzFile(f *testing.F) {
	f.Add("{\"eventType\":\"a\"}\n{}\n\nx")
	f.Add("{ }\r\n{\"eventId\":null}\n{\"a\":1,}")
	f.Add("{\"eventType\":\"a\"}{\"eventType\":\"b\"}")
	f.Fuzz(func(t *testing.T, content string) {
		e := newEdge()
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		sum, err := send.File(t.Context(), path, e.config())
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, line := range strings.Split(content, "\n") {
			if strings.TrimSpace(line) != "" {
				want++
			}
		}
		if got := sum.Accepted + sum.Duplicate + sum.Rejected; got != want {
			t.Errorf("%d of %d lines were answered", got, want)
		}
	})
}
