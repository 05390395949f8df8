package badrow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
)

var start = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

func open(t *testing.T, path string, cfg badrow.Config) *badrow.Store {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return start }
	}
	s, err := badrow.Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func row(i int) badrow.Row {
	return badrow.Row{
		At: start.Add(time.Duration(i) * time.Second), KeyID: "k1", Dialect: "native", Index: i, EventID: fmt.Sprint("e", i),
		Code: "invalid", Pointer: "/eventType", Reason: "eventType is missing", Bytes: []byte(fmt.Sprintf(`{"n":%d}`, i)),
	}
}

func put(t *testing.T, s *badrow.Store, rows ...badrow.Row) {
	t.Helper()
	if err := s.Put(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, s *badrow.Store, q badrow.Query) []badrow.Row {
	t.Helper()
	rows, err := s.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func stats(t *testing.T, s *badrow.Store) badrow.Stats {
	t.Helper()
	st, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func wantCode(t *testing.T, err error, code forebay.Code) {
	t.Helper()
	if got := forebay.CodeOf(err); got != code {
		t.Errorf("code %q, want %q: %v", got, code, err)
	}
}

func indexes(rows []badrow.Row) (n []int) {
	for _, r := range rows {
		n = append(n, r.Index)
	}
	return n
}

func TestRowsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bad.db")
	s := open(t, path, badrow.Config{})
	rows := []badrow.Row{
		row(1),
		{At: start, Code: "not_json", Bytes: []byte("\x00\xff{")},
		{At: start, Code: "empty"},
		{At: start, Code: "long", Reason: strings.Repeat("é", badrow.MaxTextBytes), Bytes: bytes.Repeat([]byte("x"), badrow.MaxRowBytes+1)},
	}
	put(t, s, rows...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, badrow.Config{})
	for i, want := range rows {
		got, err := s.Get(t.Context(), int64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		want.Seq = int64(i + 1)
		if want.Bytes == nil {
			want.Bytes = []byte{}
		}
		if want.Code == "long" {
			want.Bytes, want.Cut = want.Bytes[:badrow.MaxRowBytes], true
			want.Reason = want.Reason[:badrow.MaxTextBytes]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %.200v, want %.200v", got, want)
		}
	}
	_, err := s.Get(t.Context(), 99)
	wantCode(t, err, forebay.CodeNotFound)
	if r, err := s.ByEvent(t.Context(), "e1"); err != nil || r.Seq != 1 {
		t.Errorf("by event: %+v, %v", r, err)
	}
	_, err = s.ByEvent(t.Context(), "")
	wantCode(t, err, forebay.CodeNotFound)
}

func TestListPagesAndSelects(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "bad.db"), badrow.Config{})
	for i := 1; i <= 10; i++ {
		r := row(i)
		if i%2 == 0 {
			r.Code = "schema"
		}
		if i > 5 {
			r.KeyID = "k2"
		}
		put(t, s, r)
	}
	tests := []struct {
		q    badrow.Query
		want []int
	}{
		{badrow.Query{Limit: 3}, []int{10, 9, 8}},
		{badrow.Query{Limit: 3, Before: 8}, []int{7, 6, 5}},
		{badrow.Query{Code: "schema"}, []int{10, 8, 6, 4, 2}},
		{badrow.Query{KeyID: "k2"}, []int{10, 9, 8, 7, 6}},
		{badrow.Query{KeyID: "k2", Code: "schema", Before: 10}, []int{8, 6}},
		{badrow.Query{Code: "none"}, nil},
	}
	for _, tt := range tests {
		if got := indexes(list(t, s, tt.q)); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.q, got, tt.want)
		}
	}
	for _, limit := range []int{-1, 1001} {
		_, err := s.List(t.Context(), badrow.Query{Limit: limit})
		wantCode(t, err, forebay.CodeInvalid)
	}
}

func TestListIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "bad.db"), badrow.Config{})
	big := row(1)
	big.Bytes = make([]byte, badrow.MaxRowBytes)
	for range 20 {
		put(t, s, big)
	}
	seen, before := 0, int64(0)
	for {
		rows := list(t, s, badrow.Query{Before: before})
		if len(rows) == 0 {
			break
		}
		if len(rows) > badrow.MaxListBytes/badrow.MaxRowBytes {
			t.Errorf("%d large rows in one answer", len(rows))
		}
		seen, before = seen+len(rows), rows[len(rows)-1].Seq
	}
	if seen != 20 {
		t.Errorf("paging saw %d of 20", seen)
	}
}

func TestDeleteAndStats(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bad.db")
	s := open(t, path, badrow.Config{})
	schema := row(4)
	schema.Code = "schema"
	put(t, s, row(1), row(2), row(3), schema)
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	errs, err := s.Delete(t.Context(), []int64{1, 77, 4})
	if err != nil || len(errs) != 3 || errs[0] != nil || errs[2] != nil {
		t.Fatalf("%v, %v", errs, err)
	}
	wantCode(t, errs[1], forebay.CodeNotFound)
	check := func(st badrow.Stats) {
		t.Helper()
		if st.Rows != 2 || !reflect.DeepEqual(st.ByCode, map[string]int64{"invalid": 2}) ||
			!reflect.DeepEqual(st.Gone, map[badrow.Why]int64{badrow.GoneDeleted: 2}) || !st.Oldest.Equal(start.Add(2*time.Second)) || st.Bytes < 2*128 {
			t.Errorf("%+v", st)
		}
	}
	live := stats(t, s)
	check(live)
	s.Close()
	if again := stats(t, open(t, path, badrow.Config{})); !reflect.DeepEqual(again, live) {
		t.Errorf("counted at the start %+v, while running %+v", again, live)
	}
}

func TestSeqIsNeverReused(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "bad.db"), badrow.Config{})
	put(t, s, row(1), row(2))
	if _, err := s.Delete(t.Context(), []int64{1, 2}); err != nil {
		t.Fatal(err)
	}
	put(t, s, row(3))
	if got := list(t, s, badrow.Query{}); len(got) != 1 || got[0].Seq != 3 {
		t.Errorf("%+v", got)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	tests := map[string]struct {
		cfg  badrow.Config
		why  badrow.Why
		left int // rows of 1,500
	}{
		"rows":  {badrow.Config{MaxRows: 100}, badrow.GoneRows, 100},
		"bytes": {badrow.Config{MaxBytes: 200 * 250}, badrow.GoneBytes, -1},
		"age":   {badrow.Config{MaxAge: day, Now: func() time.Time { return start.Add(day + 1000*time.Second) }}, badrow.GoneAge, 500},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "bad.db")
			s := open(t, path, tt.cfg)
			var rows []badrow.Row
			for i := range 1500 {
				rows = append(rows, row(i))
			}
			put(t, s, rows...)
			s.Close() // the writer prunes after its answer; a start does as well
			s = open(t, path, tt.cfg)
			st := stats(t, s)
			if tt.left >= 0 && st.Rows != int64(tt.left) || tt.cfg.MaxBytes > 0 && (st.Bytes > tt.cfg.MaxBytes || st.Bytes < tt.cfg.MaxBytes/2) {
				t.Errorf("%+v", st)
			}
			if st.Rows+st.Gone[tt.why] != 1500 {
				t.Errorf("%d rows and %v gone are not 1500", st.Rows, st.Gone)
			}
			if newest := list(t, s, badrow.Query{Limit: 1}); newest[0].Index != 1499 {
				t.Errorf("the newest row is %d", newest[0].Index)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "bad.db"), badrow.Config{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 25 {
				r := row(i)
				r.KeyID = fmt.Sprint("k", w)
				if err := s.Put(t.Context(), []badrow.Row{r, r}); err != nil {
					t.Error(err)
				}
				if _, err := s.List(t.Context(), badrow.Query{KeyID: r.KeyID, Limit: 5}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if st := stats(t, s); st.Rows != 400 {
		t.Errorf("%d rows, want 400", st.Rows)
	}
}

func TestClosedAndCancelled(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "bad.db"), badrow.Config{})
	why := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := s.List(ctx, badrow.Query{}); !errors.Is(err, why) {
		t.Errorf("list: %v", err)
	}
	if err := s.Put(t.Context(), []badrow.Row{row(1)}); err != nil {
		t.Errorf("after a cancelled call: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, s.Put(t.Context(), []badrow.Row{row(2)}), forebay.CodeClosed)
	wantCode(t, s.Check(t.Context()), forebay.CodeClosed)
	_, err := s.List(t.Context(), badrow.Query{})
	wantCode(t, err, forebay.CodeClosed)
}

func BenchmarkPut(b *testing.B) {
	s, err := badrow.Open(filepath.Join(b.TempDir(), "bad.db"), badrow.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Put(b.Context(), []badrow.Row{row(1)}); err != nil {
				b.Error(err)
			}
		}
	})
}
