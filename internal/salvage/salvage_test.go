package salvage_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/salvage"
)

const (
	page  = 4096
	many  = 1000
	setUp = `CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
CREATE INDEX t_by_body ON t (body);
CREATE TABLE counts (name TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID`
)

func run(t testing.TB, conn *sqlite.Conn, script string) {
	t.Helper()
	for sql := range strings.SplitSeq(script, ";\n") {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func connect(t testing.TB, path string) *sqlite.Conn {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// prepare is what a package does that owns such a file; twice does no harm.
func prepare(conn *sqlite.Conn) error {
	version := 0
	err := sqlitex.ExecuteTransient(conn, "PRAGMA user_version", &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		version = row.ColumnInt(0)
		return nil
	}})
	if err != nil || version > 0 {
		return err
	}
	for sql := range strings.SplitSeq("PRAGMA journal_mode = wal;\n"+setUp+";\nPRAGMA application_id = 7;\nPRAGMA user_version = 1", ";\n") {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return err
		}
	}
	return nil
}

// open opens the file as its owner would, and reads all of it.
func open(path string) func() error {
	return func() error {
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
		if err == nil {
			err = prepare(conn)
		}
		if err == nil {
			err = sqlitex.ExecuteTransient(conn, "PRAGMA integrity_check(1)", &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
				if text := row.ColumnText(0); text != "ok" {
					return forebay.Errorf(forebay.CodeDamaged, "open", "%s", text)
				}
				return nil
			}})
		}
		if conn != nil {
			err = errors.Join(err, conn.Close())
		}
		switch sqlite.ErrCode(err).ToPrimary() {
		case sqlite.ResultCorrupt, sqlite.ResultNotADB:
			return forebay.Errorf(forebay.CodeDamaged, "open", "%w", err)
		}
		return err
	}
}

func plan(log *bytes.Buffer) salvage.Plan {
	return salvage.Plan{Make: prepare, Logger: slog.New(slog.NewTextHandler(log, nil))}
}

func body(id int) string { return fmt.Sprintf("%d %s", id, strings.Repeat("x", id%300)) }

// filled makes a file of many rows; with extra statements at the end.
func filled(t testing.TB, extra string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "some.db")
	conn := connect(t, path)
	if err := prepare(conn); err != nil {
		t.Fatal(err)
	}
	run(t, conn, "BEGIN")
	for id := 1; id <= many; id++ {
		err := sqlitex.Execute(conn, "INSERT INTO t VALUES (?, ?, ?)", &sqlitex.ExecOptions{Args: []any{id, fmt.Sprint("n", id*7919%many), body(id)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, conn, "INSERT INTO counts VALUES ('a', 1), ('b', 2);\nCOMMIT")
	if extra != "" {
		run(t, conn, extra)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// number reads one number; what is there is checked through it.
func number(t testing.TB, path, sql string) (n int) {
	t.Helper()
	conn := connect(t, path)
	defer conn.Close()
	err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		n = row.ColumnInt(0)
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

const (
	rows  = "SELECT count(*) FROM t"
	wrong = "SELECT count(*) FROM t WHERE name <> 'n' || (id * 7919 % 1000) OR body <> id || ' ' || substr(printf('%.400c', 'x'), 1, id % 300)"
)

// leaf gives how many rows are on a page: of a table's leaf, else -1.
func leaf(b []byte) int {
	if b[0] != 13 {
		return -1
	}
	return int(b[3])<<8 | int(b[4])
}

// Whatever pages are destroyed: each row that is not on one of them, or behind one,
// is saved as it was, and what is lost is told.
func TestRandomPages(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("SALVAGE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("again with SALVAGE_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	whole := read(t, filled(t, ""))
	for range 6 {
		path := filepath.Join(t.TempDir(), "some.db")
		b := bytes.Clone(whole)
		most, bounded, hit := 0, true, map[int]bool{}
		for range 1 + rnd.IntN(5) {
			n := 1 + rnd.IntN(len(b)/page-1)
			if hit[n] {
				continue
			}
			hit[n] = true
			switch p := b[n*page : (n+1)*page]; leaf(p) {
			case -1:
				bounded = bounded && p[0] != 5 // an inner page hides those below it
			default:
				most += leaf(p)
			}
			fill := []byte{0, 0xa5}[rnd.IntN(2)]
			copy(b[n*page:], bytes.Repeat([]byte{fill}, page))
		}
		write(t, path, b)
		var log bytes.Buffer
		rep, err := salvage.Open(path, plan(&log), open(path))
		if err != nil {
			t.Fatal(err)
		}
		saved := number(t, path, rows)
		if n := number(t, path, wrong); n > 0 {
			t.Errorf("%d rows are not as they were", n)
		}
		if bounded && saved < many-most {
			t.Errorf("%d of %d rows saved, %d were on destroyed pages; %q", saved, many, most, rep.Lost)
		}
		if saved < many && len(rep.Lost) == 0 || !strings.Contains(log.String(), "copy="+rep.Copy) {
			t.Errorf("%d rows lost; told: %q; the log says %s", many-saved, rep.Lost, &log)
		}
		if got := read(t, rep.Copy); !bytes.Equal(got, b) {
			t.Error("the copy is not the damaged file")
		}
		if err := open(path)(); err != nil {
			t.Errorf("the new file: %v", err)
		}
	}
}

// Random bytes anywhere, in the log too: it opens, or says why not and changes nothing.
func TestRandomBytes(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("SALVAGE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("again with SALVAGE_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	src := filled(t, "")
	conn := connect(t, src) // keeps the log
	defer conn.Close()
	run(t, conn, "UPDATE t SET body = body || 'y' WHERE id % 3 = 0")
	whole, wal := read(t, src), read(t, src+"-wal")
	for range 6 {
		path := filepath.Join(t.TempDir(), "some.db")
		b, w := bytes.Clone(whole), bytes.Clone(wal)
		for range 1 + rnd.IntN(5) {
			in := [][]byte{b, b, w}[rnd.IntN(3)]
			at := rnd.IntN(len(in))
			for i := at; i < min(len(in), at+1+rnd.IntN(6000)); i++ {
				in[i] = byte(rnd.Uint32())
			}
		}
		if rnd.IntN(3) == 0 {
			b = b[:rnd.IntN(len(b))]
		}
		write(t, path, b)
		write(t, path+"-wal", w)
		var log bytes.Buffer
		rep, err := salvage.Open(path, plan(&log), open(path))
		if err != nil {
			t.Fatal(err)
		}
		if rep.Copy == "" {
			continue
		}
		if !bytes.Equal(read(t, rep.Copy), b) || !bytes.Equal(read(t, rep.Copy+"-wal"), w) {
			t.Error("the copy is not the damaged file and its log")
		}
	}
}

func TestFirstPage(t *testing.T) {
	whole := read(t, filled(t, ""))
	fill := func(n int) []byte {
		return append(bytes.Repeat([]byte{0xa5}, n), whole[n:]...)
	}
	for name, c := range map[string]struct {
		b           []byte
		least, most int
	}{
		"header":         {fill(100), many, many},
		"whole page":     {fill(page), many, many},
		"cut":            {whole[:len(whole)/2], many / 10, many - 1},
		"cut in a page":  {whole[:len(whole)/2+77], many / 10, many - 1},
		"no database":    {[]byte(strings.Repeat("no database. ", 1000)), 0, 0},
		"a few letters":  {[]byte("what?"), 0, 0},
		"header, cut":    {fill(100)[:len(whole)/2], many / 10, many - 1},
		"nothing but it": {whole[:page], 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "some.db")
			write(t, path, c.b)
			var log bytes.Buffer
			rep, err := salvage.Open(path, plan(&log), open(path))
			if err != nil {
				t.Fatal(err)
			}
			if n := number(t, path, rows); n < c.least || n > c.most {
				t.Errorf("%d rows, told %+v", n, rep)
			}
			if !bytes.Equal(read(t, rep.Copy), c.b) {
				t.Error("the copy is not the damaged file")
			}
			if names, _ := filepath.Glob(path + "*"); len(names) > 2 {
				t.Errorf("left behind: %q", names)
			}
		})
	}
}

// What people have added to the file stays.
func TestAdded(t *testing.T) {
	path := filled(t, `ALTER TABLE t ADD COLUMN note TEXT DEFAULT 'none' CHECK (note <> 'no');
UPDATE t SET note = 'n' || id;
CREATE TABLE theirs (a, b);
INSERT INTO theirs VALUES (1, x'00'), (NULL, 2.5), ('x', zeroblob(0));
CREATE VIEW v AS SELECT * FROM t;
CREATE TRIGGER refuse BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, 'no'); END;
CREATE INDEX by_note ON t (note);
DELETE FROM t WHERE id > 900`)
	b := read(t, path)
	for n := range len(b) / page {
		if p := b[n*page : (n+1)*page]; n > 0 && leaf(p) > 3 {
			clear(p)
			break
		}
	}
	write(t, path, b)
	var log bytes.Buffer
	rep, err := salvage.Open(path, plan(&log), open(path))
	if err != nil || len(rep.Lost) != 1 || !strings.Contains(rep.Lost[0], "of 900 rows cannot be read") {
		t.Fatalf("%v, %+v", err, rep)
	}
	for sql, want := range map[string]int{
		"SELECT count(*) FROM v WHERE note = 'n' || id":                                                     number(t, path, rows),
		"SELECT count(*) FROM theirs WHERE typeof(a) || typeof(b) IN ('integerblob','nullreal','textblob')": 3,
		"SELECT count(*) FROM sqlite_schema WHERE name IN ('by_note', 'refuse', 't_by_body')":               3,
		"SELECT sum(n) FROM counts":       3,
		"SELECT seq FROM sqlite_sequence": many,
	} {
		if n := number(t, path, sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
}

// A recovery that fails, at whatever point the disk gets full, leaves all as it was.
func TestFullDisk(t *testing.T) {
	path := filled(t, "")
	b := read(t, path)
	clear(b[len(b)/2/page*page:][:page])
	write(t, path, b)
	failed := 0
	for pages := 3; ; pages += 15 {
		var log bytes.Buffer
		p := plan(&log)
		p.Make = func(conn *sqlite.Conn) error {
			if err := sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA max_page_count = %d", pages), nil); err != nil {
				return err
			}
			return prepare(conn)
		}
		rep, err := salvage.Open(path, p, open(path))
		if err == nil {
			if rep.Saved < many/2 {
				t.Errorf("saved %d", rep.Saved)
			}
			break
		}
		failed++
		if forebay.CodeOf(err) != forebay.CodeFull {
			t.Errorf("error %v", err)
		}
		if !bytes.Equal(read(t, path), b) || log.Len() > 0 {
			t.Fatalf("changed by a recovery that failed; the log says %s", &log)
		}
		if names, _ := filepath.Glob(path + ".*"); len(names) > 0 {
			t.Fatalf("left behind: %q", names)
		}
	}
	if failed < 3 {
		t.Errorf("it failed %d times only", failed)
	}
}

// A recovery that is cut short anywhere is finished, or done anew, by the next start.
func TestCutShort(t *testing.T) {
	good := string(read(t, filled(t, "")))
	for name, left := range map[string]map[string]string{
		"half-built":              {"": good, ".recovering": "half", ".recovering-wal": "log", ".scratch": "half"},
		"before the first rename": {"": "damaged", "-wal": "log", "-shm": "x", ".is-damaged": "why", ".recovered": good},
		"the log is moved":        {"": "damaged", ".is-damaged": "why", ".recovered": good},
		"both are moved":          {".is-damaged": "why", ".recovered": good},
		"all but the last":        {".recovered": good},
		"marked":                  {"": good, ".is-damaged": "why"},
		"marked and half-built":   {"": good, ".is-damaged": "why", ".recovering": "half", ".recovering-wal": "log", ".scratch": "half", ".scratch-wal": "log"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "some.db")
			for suffix, text := range left {
				write(t, path+suffix, []byte(text))
			}
			var log bytes.Buffer
			rep, err := salvage.Open(path, plan(&log), open(path))
			if err != nil {
				t.Fatal(err)
			}
			if n := number(t, path, rows); n != many {
				t.Errorf("%d rows", n)
			}
			if (rep.Copy == "") != (name == "half-built") || (rep.Copy == "") != (log.Len() == 0) {
				t.Errorf("%+v; the log says %s", rep, &log)
			}
			for _, suffix := range []string{"", "-wal"} {
				if text, ok := left[suffix]; ok && rep.Copy != "" && string(read(t, rep.Copy+suffix)) != text {
					t.Errorf("%q is not kept", suffix)
				}
			}
			if rep, err = salvage.Open(path, plan(&log), open(path)); err != nil || rep.Copy != "" {
				t.Errorf("the next start: %+v, %v", rep, err)
			}
		})
	}
}

// A file whose owner refuses it for another reason is not touched.
func TestRefused(t *testing.T) {
	path := filled(t, "")
	b := read(t, path)
	want := forebay.Errorf(forebay.CodeTooNew, "open", "too new")
	var log bytes.Buffer
	rep, err := salvage.Open(path, plan(&log), func() error { return want })
	if err != want || rep.Copy != "" || !bytes.Equal(read(t, path), b) || log.Len() > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// A mark makes the next start recover once; one that was left alone says nothing.
func TestMark(t *testing.T) {
	path := filled(t, "")
	if err := salvage.Mark(path, errors.New("page 7 is strange")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		var log bytes.Buffer
		rep, err := salvage.Open(path, plan(&log), open(path))
		if err != nil || (rep.Copy != "") != want || strings.Contains(log.String(), "page 7 is strange") != want {
			t.Errorf("%+v, %v; the log says %s", rep, err, &log)
		}
	}
	if err := salvage.Mark(path, errors.New("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if rep, err := salvage.Open(path, plan(&log), open(path)); err != nil || rep.Copy != "" {
		t.Errorf("no file: %+v, %v", rep, err)
	}
}

// The log of a running program is read, and kept as it is.
func TestReplace(t *testing.T) {
	path := filled(t, "")
	conn := connect(t, path)
	run(t, conn, "INSERT INTO t VALUES (5000, 'newest', 'in the log only')")
	b, wal := read(t, path), read(t, path+"-wal")
	var log bytes.Buffer
	rep, err := salvage.Replace(path, plan(&log), errors.New("met"), func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil || rep.Saved != many+3 || len(rep.Lost) > 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	if !bytes.Equal(read(t, rep.Copy), b) || !bytes.Equal(read(t, rep.Copy+"-wal"), wal) {
		t.Error("the copy is not the file and its log")
	}
	if n := number(t, path, "SELECT count(*) FROM t WHERE id = 5000"); n != 1 {
		t.Error("the newest row is lost")
	}
}
