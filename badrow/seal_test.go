package badrow_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/engine/sealed"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// Sealed rows come back as they were, and what they say is not in the file. What was stored
// before is read as it is; what was changed says so.
func TestSealedRows(t *testing.T) {
	t.Parallel()
	inner, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	keys, err := sealed.NewKeys("k", map[string][]byte{"k": make([]byte, sealed.KeyBytes)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := sealed.New(t.Context(), inner, sealed.Config{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bad.db")
	before := open(t, path, badrow.Config{})
	put(t, before, row(1))
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, badrow.Config{Seal: e.Box()})
	secret := row(2)
	secret.Reason, secret.Bytes = "the secret is wrong", []byte(`{"a":"the secret"}`)
	large := row(3)
	large.Bytes = bytes.Repeat([]byte("x"), badrow.MaxRowBytes)
	put(t, s, secret, large)
	rows := list(t, s, badrow.Query{})
	if r := rows[1]; r.Reason != secret.Reason || string(r.Bytes) != string(secret.Bytes) || r.Cut || r.Pointer != secret.Pointer {
		t.Errorf("%+v", r)
	}
	if r := rows[0]; !r.Cut || len(r.Bytes) < badrow.MaxRowBytes-2000 || r.Reason != large.Reason {
		t.Errorf("%d bytes, cut %v, %q", len(r.Bytes), r.Cut, r.Reason)
	}
	if r := rows[2]; string(r.Bytes) != `{"n":1}` || r.Reason != row(1).Reason {
		t.Errorf("%+v", r)
	}
	if r, err := s.ByEvent(t.Context(), "e2"); err != nil || string(r.Bytes) != string(secret.Bytes) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, name := range []string{path, path + "-wal"} {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte("the secret")) {
			t.Errorf("the secret is in %s", name)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := sealed.NewKeys("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, sealed.KeyBytes)})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	wrong, err := sealed.New(t.Context(), memory, sealed.Config{Keys: other})
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, path, badrow.Config{Seal: wrong.Box()})
	if r := list(t, s, badrow.Query{})[1]; !strings.Contains(r.Reason, "cannot be opened") || len(r.Bytes) != 0 || r.Code != secret.Code {
		t.Errorf("%+v", r)
	}
}
