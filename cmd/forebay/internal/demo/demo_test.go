package demo_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay/cmd/forebay/internal/demo"
)

var update = flag.Bool("update", false, "write the golden files")

// What a person sees: a frame in the middle and the last one, on a narrow terminal
// and without one.
func TestViews(t *testing.T) {
	t.Parallel()
	frames := []demo.Frame{
		{Phase: "a campaign", Elapsed: 2300 * time.Millisecond, Rate: 4980, Seen: demo.Seen{Accepted: 5012}, P50: time.Millisecond, P99: 9 * time.Millisecond,
			Counts: demo.Counts{Written: 4000, Waiting: 1012}},
		{Phase: "a campaign", Elapsed: 2500 * time.Millisecond, Seen: demo.Seen{Accepted: 5100}},
		{Elapsed: 4100 * time.Millisecond, Last: true, P50: time.Millisecond, P99: 9 * time.Millisecond,
			Seen:   demo.Seen{Accepted: 15013, Duplicate: 1, Rejected: 3, Reasons: []demo.Reason{{Code: "missing", Text: "eventType is missing;\na string is needed", Count: 2}, {Code: "wrong_type", Text: strings.Repeat("long ", 40), Count: 1}}},
			Counts: demo.Counts{Written: 15012, Dead: 1, Cause: "23514: total must not be negative"}},
	}
	var out bytes.Buffer
	screen := &demo.Screen{Out: &out, Width: 60, Paint: func(_, text string) string { return text }}
	lines := &demo.Lines{Out: &out}
	for _, f := range frames {
		screen.Show(f)
	}
	for _, f := range frames {
		lines.Show(f)
	}
	path := filepath.Join("testdata", "views.golden")
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("it differs (run with -update to accept):\n%s", &out)
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if text, ok := strings.CutPrefix(line, "\x1b[2K"); ok && len([]rune(text)) > 60 {
			t.Errorf("a line would wrap: %s", text)
		}
	}
}

// ledger is a server that accepts everything and says what a test wants it to say.
type ledger struct {
	mu       sync.Mutex
	accepted int64
	lost     int64
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted++
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte(`{"messageId":"x"}`))
}

func (l *ledger) Counts(context.Context) (demo.Counts, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return demo.Counts{Written: l.accepted + l.lost}, nil
}

// A server that wrote more than it accepted is found out; Ctrl-C ends the show.
func TestFindsWhatDoesNotAddUp(t *testing.T) {
	t.Parallel()
	run := func(ctx context.Context, lost int64) error {
		l := &ledger{lost: lost}
		s := httptest.NewServer(l)
		defer s.Close()
		_, err := demo.Run(ctx, demo.Config{URL: s.URL, Server: l, View: func(demo.Frame) {}, Each: 50 * time.Millisecond})
		return err
	}
	if err := run(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "do not add up") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
