package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay/engine/sqlite"
)

// A recovery that fails, on a full disk, leaves all as it was for the next start.
func TestRecoveryTwice(t *testing.T) {
	whole := filled(t)
	path := filepath.Join(t.TempDir(), "forebay.db")
	failed := false
	for page := 2; page < len(whole)/4096 && !failed; page++ {
		b := append([]byte{}, whole...)
		clear(b[page*4096 : (page+1)*4096])
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := sqlite.Open(sqlite.Config{Path: path, MaxBytes: 300 << 10})
		if failed = err != nil; failed {
			if after, _ := os.ReadFile(path); string(after) != string(b) {
				t.Error("the damaged file was changed")
			}
			break
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !failed {
		t.Fatal("no recovery failed")
	}
	e := open(t, sqlite.Config{Path: path})
	if e.Recovery().Copy == "" {
		t.Error("the second start tells of nothing")
	}
	if n := len(receive(t, e, 1000)); n < 500 {
		t.Errorf("the second start has %d messages", n)
	}
}

// A recovery that was cut short between its renames is finished by the next start,
// and the log of the damaged file never meets the new one.
func TestRecoveryCutShort(t *testing.T) {
	good := filled(t)
	for name, left := range map[string]map[string]string{
		"before the first rename": {"": "damaged", "-wal": "log", ".recovered": string(good)},
		"the file is moved":       {"-wal": "log", ".recovered": string(good)},
		"file and log are moved":  {".recovered": string(good)},
		"an older one half-built": {"": string(good), ".recovering": "half", ".recovering-wal": "log"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forebay.db")
			for suffix, text := range left {
				if err := os.WriteFile(path+suffix, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e := open(t, sqlite.Config{Path: path})
			if n := len(receive(t, e, 2000)); n != 1890 {
				t.Errorf("%d messages", n)
			}
			kept := e.Recovery().Copy
			for _, suffix := range []string{"", "-wal"} {
				if left[suffix] == "" || left[".recovered"] == "" {
					continue
				}
				if b, err := os.ReadFile(kept + suffix); err != nil || string(b) != left[suffix] {
					t.Errorf("%q is not kept: %v", suffix, err)
				}
			}
		})
	}
}

// A run that met damage has the next start recover the file, once.
func TestMarked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	send(t, e, messages(3, "m")...)
	exec(t, e, "INSERT INTO meta (name, value) VALUES ('damaged', 1)") // as keepMark does
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, recovers := range []bool{true, false} {
		e := mustOpen(t, sqlite.Config{Path: path})
		if got := e.Recovery().Copy != ""; got != recovers {
			t.Errorf("recovered: %v, want %v", got, recovers)
		}
		if ds := receive(t, e, 3); len(ds) != 3 {
			t.Errorf("%d of 3 messages", len(ds))
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
