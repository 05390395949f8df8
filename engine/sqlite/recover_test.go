package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// A recovery that fails, on a full disk, leaves all as it was for the next start.
func TestRecoveryTwice(t *testing.T) {
	whole := filled(t)
	path := filepath.Join(t.TempDir(), "forebay.db")
	failed := false
	for page := 2; page < len(whole)/pageSize && !failed; page++ {
		b := append([]byte{}, whole...)
		clear(b[page*pageSize : (page+1)*pageSize])
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

// pointless makes the overflow chain of the first large block point outside the file.
func pointless(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = pageSize
	for page := size; page < len(b); page += size {
		if p := b[page:]; p[4] == 'x' && p[size-1] == 'x' && (p[0]|p[1]|p[2]|p[3]) != 0 {
			p[0], p[1] = 0x7f, 0xff
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no overflow page")
}

// A block that cannot be read costs its own messages only, also when they come again.
func TestUnreadableBlock(t *testing.T) {
	for name, group := range map[string]string{"single": "", "in a group": "g"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forebay.db")
			e := mustOpen(t, sqlite.Config{Path: path})
			big := strings.Repeat("x", 100<<10)
			for _, id := range []string{"a", "b", "c"} {
				send(t, e, forebay.Message{ID: id, Queue: "q", Group: group, Payload: []byte(big)})
			}
			settle(t, e, forebay.Retry, receive(t, e, 3)...)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			pointless(t, path)
			e = mustOpen(t, sqlite.Config{Path: path})
			if ds := receive(t, e, 3); len(ds) != 2 {
				t.Errorf("%d of the 2 readable messages came", len(ds))
			} else {
				settle(t, e, forebay.Ack, ds...)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, sqlite.Config{Path: path})
			if rec := e.Recovery(); len(rec.Lost) == 0 {
				t.Errorf("the next start tells nothing: %+v", rec)
			}
			if ds := receive(t, e, 3); len(ds) != 0 {
				t.Errorf("%d messages came again", len(ds))
			}
		})
	}
}

// Of a message whose data cannot be read any more there is no dead letter; the other
// settlements of the call are done.
func TestUnreadableDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path})
	send(t, e, messages(2, "m")...)
	ds := receive(t, e, 2)
	e.ForgetData()
	exec(t, e, "UPDATE block SET data = zeroblob(length(data))")
	errs, err := e.Settle(context.Background(), []forebay.Settlement{
		{Receipt: ds[0].Receipt, Verdict: forebay.Dead}, {Receipt: ds[1].Receipt, Verdict: forebay.Ack},
	})
	if err != nil || forebay.CodeOf(errs[0]) != forebay.CodeDamaged || errs[1] != nil {
		t.Error(errs, err)
	}
}
