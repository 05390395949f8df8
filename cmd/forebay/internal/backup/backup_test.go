package backup_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/backup"
)

const queue = "forebay.db"

// dataFolder is one with a database that is open, and what belongs to it or not.
func dataFolder(t *testing.T) (dir string, conn *sqlite.Conn) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	for name, text := range map[string]string{
		"keys.json": "{}", "files/originals/a": "picture", "files/b.lock": "also a name of an upload", "files/empty": "",
		"forebay.lock": "1", "server.json": "{}", "bad.db.damaged-1": "x", ".probe-1": "x",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, queue), sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	run(t, conn, `PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 7;
		CREATE TABLE row (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO row (text) VALUES ('one'), ('two');`)
	return dir, conn
}

func run(t *testing.T, conn *sqlite.Conn, script string) {
	t.Helper()
	for one := range strings.SplitSeq(strings.TrimSpace(script), ";") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		if err := sqlitex.ExecuteTransient(conn, one, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, dir, to string) *backup.Manifest {
	t.Helper()
	m, err := backup.Write(t.Context(), backup.Config{Folder: dir, Queue: queue, To: to, Program: "v1", Now: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func none(string) error { return nil }

// A copy in each of its forms, of a database whose newest rows are in its log only, gives
// back what belongs to the folder, and nothing else.
func TestThereAndBack(t *testing.T) {
	dir, _ := dataFolder(t)
	want := map[string]string{"keys.json": "{}", "files/originals/a": "picture", "files/b.lock": "also a name of an upload", "files/empty": ""}
	for _, name := range []string{"copy", "copy.tar", "copy.tar.zst"} {
		base := t.TempDir()
		to, back := filepath.Join(base, name), filepath.Join(base, "back")
		made := write(t, dir, to)
		if made.Files[0].Name != queue || made.Files[0].SQLite == nil || made.Files[0].SQLite.Version != 7 {
			t.Errorf("%s: %+v", name, made.Files[0])
		}
		m, err := backup.Restore(t.Context(), to, back, none)
		if err != nil || len(m.Files) != len(want)+1 {
			t.Fatalf("%s: %+v, %v", name, m, err)
		}
		for file, text := range want {
			if b, err := os.ReadFile(filepath.Join(back, filepath.FromSlash(file))); err != nil || string(b) != text {
				t.Errorf("%s: %s is %q, %v", name, file, b, err)
			}
		}
		if n := rows(t, filepath.Join(back, queue)); n != 2 {
			t.Errorf("%s: %d rows, want 2", name, n)
		}
		if left, err := filepath.Glob(filepath.Join(base, ".forebay-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		for _, path := range []string{to, back} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s can be read by others: %v, %v", path, info.Mode(), err)
			}
		}
	}
}

func rows(t *testing.T, path string) (n int64) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM row", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { n = s.ColumnInt64(0); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What is not as it was made is refused as a whole, and leaves nothing.
func TestDamagedCopies(t *testing.T) {
	dir, _ := dataFolder(t)
	made := filepath.Join(t.TempDir(), "copy")
	write(t, dir, made)
	tarred := filepath.Join(t.TempDir(), "copy.tar")
	write(t, dir, tarred)
	file := func(name string) string { return filepath.Join(made, name) }
	for name, one := range map[string]struct {
		code  forebay.Code
		spoil func(b []byte) []byte
		path  string
	}{
		"a bit":        {forebay.CodeDamaged, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, file(queue)},
		"shorter":      {forebay.CodeDamaged, func(b []byte) []byte { return b[:1] }, file("keys.json")},
		"gone":         {forebay.CodeDamaged, func([]byte) []byte { return nil }, file("keys.json")},
		"no manifest":  {forebay.CodeDamaged, func([]byte) []byte { return nil }, file("backup.json")},
		"outside":      {forebay.CodeDamaged, swap("keys.json", "../ys.json"), file("backup.json")},
		"newer":        {forebay.CodeUnsupported, swap(`"format": 1`, `"format": 9`), file("backup.json")},
		"tar, a bit":   {forebay.CodeDamaged, swap("picture", "picturE"), tarred},
		"tar, cut off": {forebay.CodeDamaged, func(b []byte) []byte { return b[:len(b)*2/3] }, tarred},
		"tar, outside": {forebay.CodeDamaged, swap("files/originals/a", "../../originals/a"), tarred},
	} {
		before, err := os.ReadFile(one.path)
		if err != nil {
			t.Fatal(err)
		}
		after := one.spoil(bytes.Clone(before))
		if bytes.Equal(before, after) {
			t.Fatalf("%s: nothing was broken", name)
		}
		err = os.WriteFile(one.path, after, 0o600)
		if after == nil {
			err = os.Remove(one.path)
		}
		from := made
		if one.path == tarred {
			from = tarred
		}
		back := filepath.Join(t.TempDir(), "back")
		_, got := backup.Restore(t.Context(), from, back, none)
		if forebay.CodeOf(got) != one.code {
			t.Errorf("%s: %v, want %s", name, got, one.code)
		}
		left, lerr := os.ReadDir(filepath.Dir(back))
		if len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
		if err := errors.Join(err, lerr, os.WriteFile(one.path, before, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func swap(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
}

// Nothing that is there is written over, and no copy is made into its own source.
func TestPlacesThatAreRefused(t *testing.T) {
	dir, _ := dataFolder(t)
	there := t.TempDir()
	for to, want := range map[string]forebay.Code{
		there: forebay.CodeConflict, filepath.Join(dir, "copy"): forebay.CodeInvalid, dir: forebay.CodeInvalid,
	} {
		if _, err := backup.Write(t.Context(), backup.Config{Folder: dir, Queue: queue, To: to}); forebay.CodeOf(err) != want {
			t.Errorf("to %s: %v, want %s", to, err, want)
		}
	}
	if _, err := backup.Write(t.Context(), backup.Config{Folder: there, Queue: queue, To: filepath.Join(t.TempDir(), "x")}); forebay.CodeOf(err) != forebay.CodeNotFound {
		t.Errorf("a folder without a queue: %v", err)
	}
	made := filepath.Join(t.TempDir(), "copy.tar.zst")
	write(t, dir, made)
	if _, err := backup.Restore(t.Context(), made, dir, none); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("into a folder in use: %v", err)
	}
	no := errors.New("not ready")
	if _, err := backup.Restore(t.Context(), made, filepath.Join(t.TempDir(), "x"), func(string) error { return no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
}

// A database that SQLite finds damaged is not copied as if it were whole.
func TestDamagedDatabaseIsTold(t *testing.T) {
	dir, conn := dataFolder(t)
	run(t, conn, "PRAGMA wal_checkpoint(TRUNCATE)")
	path := filepath.Join(dir, queue)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(b) - 64; i < len(b); i++ {
		b[i] = 0xff
	}
	other := filepath.Join(t.TempDir(), "data")
	if err := errors.Join(os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, queue), b, 0o600)); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := backup.Write(t.Context(), backup.Config{Folder: other, Queue: queue, To: to}); forebay.CodeOf(err) != forebay.CodeDamaged {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("a copy is there")
	}
}
