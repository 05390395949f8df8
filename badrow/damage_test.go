package badrow_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
)

const many = 1000 // rows; enough for pages of every kind

// filled makes a closed store with many rows.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bad.db")
	s := open(t, path, badrow.Config{})
	for i := range many / 500 {
		var rows []badrow.Row
		for j := range 500 {
			rows = append(rows, row(i*500+j))
		}
		put(t, s, rows...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// spoil changes a file in place, so that open connections see it.
func spoil(t *testing.T, path string, change func([]byte) []byte) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = change(b)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	return b
}

func garble(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}

func TestDamagedFileIsSetAsideAtOpen(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func([]byte) []byte
		atLeast int // rows taken over
	}{
		"not a database": {func([]byte) []byte { return []byte(strings.Repeat("hello ", 1000)) }, 0},
		"header":         {func(b []byte) []byte { garble(b[:100]); return b }, many},
		"cut in half":    {func(b []byte) []byte { return b[:len(b)/2/4096*4096] }, 1},
		"a page in the middle": {func(b []byte) []byte {
			garble(b[len(b)/2/4096*4096:][:3*4096])
			return b
		}, many / 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			damaged := spoil(t, path, tt.change)
			var log bytes.Buffer
			s := open(t, path, badrow.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})

			// Whatever is read, the store works on.
			put(t, s, row(9999))
			seen, before, newest := 0, int64(0), false
			for {
				rows := list(t, s, badrow.Query{Before: before, Limit: 1000})
				if len(rows) == 0 {
					break
				}
				for _, r := range rows {
					newest = newest || r.Index == many-1
				}
				seen, before = seen+len(rows), rows[len(rows)-1].Seq
			}
			st := stats(t, s)
			if st.SetAside == "" || !strings.Contains(log.String(), st.SetAside) {
				t.Fatalf("set aside %q; the log says %s", st.SetAside, &log)
			}
			if int64(seen) != st.Rows || seen-1 < tt.atLeast {
				t.Errorf("%d rows seen, %d counted, at least %d wanted", seen, st.Rows, tt.atLeast+1)
			}
			if newest != (name == "a page in the middle" || name == "header") {
				t.Errorf("the newest row was taken over: %v", newest)
			}
			if kept, err := os.ReadFile(st.SetAside); err != nil || !bytes.Equal(kept, damaged) {
				t.Errorf("the copy differs from the damaged file: %v", err)
			}
			t.Logf("%d of %d rows taken over", seen-1, many)
		})
	}
}

func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*testing.T, *badrow.Store){
		"writer": func(t *testing.T, s *badrow.Store) { put(t, s, row(1)) },
		"reader": func(t *testing.T, s *badrow.Store) { list(t, s, badrow.Query{Limit: 1000}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			s := open(t, path, badrow.Config{})
			spoil(t, path, func(b []byte) []byte { garble(b[4096:]); return b })
			call(t, s)
			put(t, s, row(2))
			if st := stats(t, s); st.SetAside == "" || st.Rows == 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A recovery that cannot be done leaves the damaged file where it is; when it can,
// all is there.
func TestRecoveryFails(t *testing.T) {
	t.Parallel()
	path := filled(t)
	damaged := spoil(t, path, func(b []byte) []byte { garble(b[:100]); return b })
	inTheWay := filepath.Join(path+".recovering", "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := badrow.Open(path, badrow.Config{})
		wantCode(t, err, forebay.CodeUnavailable)
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, damaged) {
			t.Fatalf("the damaged file was changed: %v", err)
		}
	}
	if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
		t.Fatal(err)
	}
	if st := stats(t, open(t, path, badrow.Config{})); st.Rows != many || st.SetAside == "" {
		t.Errorf("%+v", st)
	}
}

// Sizes that are wrong would make the store drop rows that are within its bounds.
func TestDamagedSizesAreMended(t *testing.T) {
	t.Parallel()
	path := filled(t)
	want := stats(t, open(t, filled(t), badrow.Config{})).Bytes
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(conn, "UPDATE bad SET size = 1 << 40 WHERE seq % 7 = 0", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, func(b []byte) []byte { garble(b[:100]); return b })
	if st := stats(t, open(t, path, badrow.Config{})); st.Rows != many || st.Bytes != want {
		t.Errorf("%d bytes, want %d: %+v", st.Bytes, want, st)
	}
}

func TestForeignAndNewerFiles(t *testing.T) {
	t.Parallel()
	make := func(script string) string {
		path := filepath.Join(t.TempDir(), "bad.db")
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for statement := range strings.SplitSeq(script, ";") {
			if err := sqlitex.ExecuteTransient(conn, statement, nil); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	newer := make("PRAGMA application_id = 0x46424252; PRAGMA user_version = 2; CREATE TABLE later (x)")
	before, _ := os.ReadFile(newer)
	_, err := badrow.Open(newer, badrow.Config{})
	wantCode(t, err, forebay.CodeTooNew)
	if after, _ := os.ReadFile(newer); !bytes.Equal(before, after) {
		t.Error("a newer file was touched")
	}

	foreign := open(t, make("CREATE TABLE theirs (x)"), badrow.Config{})
	put(t, foreign, row(1))
	if st := stats(t, foreign); st.SetAside == "" || st.Rows != 1 {
		t.Errorf("foreign file: %+v", st)
	}
	bare := open(t, make("PRAGMA application_id = 0x46424252; PRAGMA user_version = 1; CREATE TABLE bad (x)"), badrow.Config{})
	put(t, bare, row(1))
	if st := stats(t, bare); st.SetAside == "" || st.Rows != 1 {
		t.Errorf("file without our tables: %+v", st)
	}
	// A crash between the first byte and the tables leaves a file that is ours.
	begun := open(t, make("PRAGMA journal_mode = wal"), badrow.Config{})
	if st := stats(t, begun); st.SetAside != "" {
		t.Errorf("a file that was only begun: %+v", st)
	}
}

// TestKill kills a process that stores rows, again and again, and checks that each
// row whose Put had returned is there once.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bad.db")
	told := 0
	for round := range 5 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
		cmd.Env = append(os.Environ(), "BADROW_KILL="+path, "BADROW_FROM="+strconv.Itoa(told))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); {
			i, err := strconv.Atoi(lines.Text())
			if err != nil {
				continue // what the test binary says itself
			}
			told = i + 1
			if n++; n == 20+7*round {
				cmd.Process.Kill()
			}
		}
		cmd.Wait() // its error is the kill
	}
	s := open(t, path, badrow.Config{})
	count := map[int]int{}
	for before := int64(0); ; {
		rows := list(t, s, badrow.Query{Before: before, Limit: 1000})
		if len(rows) == 0 {
			break
		}
		for _, r := range rows {
			count[r.Index]++
		}
		before = rows[len(rows)-1].Seq
	}
	for i := range told {
		if count[i] < 1 {
			t.Errorf("row %d was acknowledged and is lost", i)
		}
	}
	if st := stats(t, s); st.SetAside != "" || told < 100 {
		t.Errorf("%d acknowledged, %+v", told, st)
	}
}

// TestKillChild is the process that TestKill kills; it does nothing otherwise.
func TestKillChild(t *testing.T) {
	path := os.Getenv("BADROW_KILL")
	if path == "" {
		return
	}
	from, err := strconv.Atoi(os.Getenv("BADROW_FROM"))
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, path, badrow.Config{})
	for i := from; i < from+10_000; i++ {
		put(t, s, row(i))
		fmt.Println(i)
	}
}

// TestRandomDamage overwrites random pieces of a file and of its log. Whatever they
// are, the store opens, answers, and stores.
func TestRandomDamage(t *testing.T) {
	t.Parallel()
	seed := time.Now().UnixNano()
	if s := os.Getenv("BADROW_SEED"); s != "" {
		seed, _ = strconv.ParseInt(s, 10, 64)
	}
	t.Logf("again with BADROW_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))
	whole, err := os.ReadFile(filled(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		path := filepath.Join(t.TempDir(), "bad.db")
		b := bytes.Clone(whole)
		for range 1 + rnd.IntN(4) {
			at := rnd.IntN(len(b))
			for i := at; i < min(len(b), at+1+rnd.IntN(6000)); i++ {
				b[i] = byte(rnd.Uint32())
			}
		}
		if rnd.IntN(3) == 0 {
			b = b[:rnd.IntN(len(b))]
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, path, badrow.Config{})
		put(t, s, row(1))
		for before := int64(0); ; {
			rows := list(t, s, badrow.Query{Before: before, Limit: 1000})
			if len(rows) == 0 {
				break
			}
			if last := rows[len(rows)-1].Seq; before != 0 && last >= before {
				t.Fatalf("a page after %d ends with %d", before, last)
			} else {
				before = last
			}
		}
		if _, err := s.Delete(t.Context(), []int64{1, many / 2, many}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ByEvent(t.Context(), "e7"); err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
			t.Fatal(err)
		}
		put(t, s, row(2))
	}
}
