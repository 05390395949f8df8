package postgres

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/forebayhq/forebay/event"
)

func copyEvents() []event.Event {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	return []event.Event{
		{ID: "e1", Type: "t", Payload: []byte(`{}`), ReceivedAt: at},
		{ID: "e2", Type: "t", UserID: "u", Source: "s", Payload: []byte(`{"a":1}`), ReceivedAt: at, OccurredAt: at, SentAt: at, OriginalAt: at},
		{ID: "e3", Type: "t", Payload: []byte(`{"a":"` + strings.Repeat("x", 200_000) + `"}`), ReceivedAt: at},
		{ID: "e4", Type: "t", Payload: []byte(`{}`), ReceivedAt: at},
	}
}

// The bytes must not depend on the buffers of who reads.
func TestCopySourceFillsAnyBuffer(t *testing.T) {
	t.Parallel()
	want := []byte(copyHead)
	for _, e := range copyEvents() {
		row := appendRow(nil, &e)
		if len(row) > rowSize(&e) {
			t.Errorf("%s: %d bytes, more than the %d that rowSize allows", e.ID, len(row), rowSize(&e))
		}
		want = append(want, row...)
	}
	want = append(want, copyTail...)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole":   func(r io.Reader) io.Reader { return r },
		"halves":  iotest.HalfReader,
		"bytes":   iotest.OneByteReader,
		"one row": func(r io.Reader) io.Reader { return &limited{r, 200} },
	} {
		got, err := io.ReadAll(wrap(&copySource{events: copyEvents()}))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
	if got, err := io.ReadAll(&copySource{}); err != nil || string(got) != copyHead+copyTail {
		t.Errorf("no events: %q, %v", got, err)
	}
}

// limited reads with a small buffer.
type limited struct {
	r io.Reader
	n int
}

func (l *limited) Read(p []byte) (int, error) { return l.r.Read(p[:min(len(p), l.n)]) }

// A reader that the driver has left behind must not see events that are used again.
func TestCopySourceEnds(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int{"at once": 0, "after the head": 10, "within a row": 60} {
		s := &copySource{events: copyEvents()}
		if _, err := io.ReadFull(&limited{s, 10}, make([]byte, before)); err != nil {
			t.Fatal(err)
		}
		s.end()
		if n, err := s.Read(make([]byte, 1000)); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: read %d, %v", name, n, err)
		}
	}
}
