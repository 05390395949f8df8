package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
)

// A disk that is full, which a bound of the file's pages stands for, pauses the
// sink; when there is room again the batch is written as a whole.
func TestFullDisk(t *testing.T) {
	states := make(chan sink.State, 100)
	s, err := Open(filepath.Join(t.TempDir(), "events.db"), Config{Config: sink.Config{
		PauseMin: time.Millisecond, PauseMax: 5 * time.Millisecond,
		OnState: func(st sink.State) { states <- st },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pages := func(n int) {
		conn := <-s.db.writer
		defer func() { s.db.writer <- conn }()
		if err := sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA max_page_count = %d", n), nil); err != nil {
			t.Error(err)
		}
	}
	pages(20)
	var ds []forebay.Delivery
	for i := range 100 {
		e := event.Event{ID: fmt.Sprint(i), Type: "t", ReceivedAt: time.Now(), Payload: []byte(`{"a":"` + strings.Repeat("x", 4000) + `"}`)}
		b, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		ds = append(ds, forebay.Delivery{Message: forebay.Message{ID: e.ID, Payload: b}})
	}
	done := make(chan []error, 1)
	go func() { done <- s.HandleBatch(t.Context(), ds) }()
	if st := <-states; !strings.Contains(st.Reason, "full") {
		t.Errorf("reason %q", st.Reason)
	}
	pages(10_000)
	if err := errors.Join(<-done...); err != nil {
		t.Fatal(err)
	}
	if st := <-states; st.Paused {
		t.Errorf("state %+v", st)
	}
	conn := <-s.db.reader
	defer func() { s.db.reader <- conn }()
	if n, err := number(conn, "SELECT count(*) FROM events"); err != nil || n != 100 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestClassOf(t *testing.T) {
	cases := map[sqlite.ResultCode]class{
		sqlite.ResultBusy: classOutage, sqlite.ResultIOErrFsync: classOutage, sqlite.ResultFull: classOutage,
		sqlite.ResultCorrupt: classOutage, sqlite.ResultReadOnlyDBMoved: classOutage,
		sqlite.ResultConstraintCheck: classData, sqlite.ResultTooBig: classData,
		sqlite.ResultError: classUnknown, sqlite.ResultMisuse: classUnknown,
	}
	for code, want := range cases {
		if got := classOf(fmt.Errorf("wrapped: %w", code.ToError())); got != want {
			t.Errorf("%s: class %d, want %d", code, got, want)
		}
	}
}
