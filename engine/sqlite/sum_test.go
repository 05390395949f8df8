package sqlite_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// A value that is valid to SQLite, but was changed, is told, and its messages come:
// again rather than never.
func TestChangedValues(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		want int  // of the 9 that are left, of 10
		copy bool // the file is recovered
	}{
		"nothing":     {"UPDATE again SET due = due", 9, false},
		"settled":     {"UPDATE part SET settled = x'ff03' || substr(settled, 3)", 10, true},
		"settled, no": {"UPDATE part SET settled = x''", 10, true},
		"due":         {"UPDATE again SET due = due + 1000000000000000000", 9, true},
		"attempts":    {"UPDATE again SET attempts = 1000", 9, true},
		"group":       {"UPDATE again SET grp = 1", 9, true},
		"lease":       {"UPDATE lease SET items = x'00' || items", 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forebay.db")
			e := open(t, sqlite.Config{Path: path})
			send(t, e, messages(10, "m")...)
			ds := receive(t, e, 3)
			settle(t, e, forebay.Ack, ds[0])
			settle(t, e, forebay.Retry, ds[1])
			if err := e.Exec(c.sql); err != nil {
				t.Fatal(err)
			}
			var told bytes.Buffer
			again := open(t, sqlite.Config{Path: crash(t, path), Logger: slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelError}))})
			if got := again.Recovery().Copy != ""; got != c.copy {
				t.Errorf("recovered: %v", got)
			}
			if (told.Len() > 0) != (name != "nothing") {
				t.Errorf("told: %q", told.String())
			}
			got := receive(t, again, 99)
			if len(got) != c.want {
				t.Errorf("%d messages came, not %d", len(got), c.want)
			}
			for _, d := range got {
				if d.Attempt > 2 || d.Deliveries > 2 || time.Since(d.SentAt) > time.Hour {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

// crash gives a copy of an open database as a crash would leave it.
func crash(t *testing.T, path string) string {
	t.Helper()
	crashed := filepath.Join(t.TempDir(), "forebay.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(crashed+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return crashed
}
