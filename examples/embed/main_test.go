package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, filepath.Join(t.TempDir(), "embed.db")); err != nil {
		t.Fatal(err)
	}
	const want = `sent 3
welcome to ann@example.com, attempt 1
welcome to bob@example.com, attempt 1
dead: no address: that is not a mail address
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}
