package badrow

import (
	"path/filepath"
	"strconv"
	"testing"

	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
)

// A file that cannot grow refuses rows, goes on answering, keeps what it has, and
// takes rows again as soon as there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "bad.db"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	most := func(pages int) { // the writer waits for calls, so its connection is free
		if err := sqlitex.ExecuteTransient(s.file.writer, "PRAGMA max_page_count = "+strconv.Itoa(pages), nil); err != nil {
			t.Fatal(err)
		}
	}
	most(64)
	big := Row{Code: "big", Bytes: make([]byte, 10_000)}
	stored := int64(0)
	for ; err == nil; stored++ {
		err = s.Put(t.Context(), []Row{big})
	}
	stored-- // the last one failed
	if forebay.CodeOf(err) != forebay.CodeFull || stored < 5 {
		t.Fatalf("%d stored, then %v", stored, err)
	}
	st, err := s.Stats(t.Context())
	rows, lerr := s.List(t.Context(), Query{})
	if err != nil || lerr != nil || st.Rows != stored || int64(len(rows)) != stored || st.SetAside != "" {
		t.Errorf("full: %+v, %v, %d rows, %v", st, err, len(rows), lerr)
	}
	most(1000)
	if err := s.Put(t.Context(), []Row{big}); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Rows != stored+1 {
		t.Errorf("%+v, %v", st, err)
	}
}
