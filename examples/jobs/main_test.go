package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out, filepath.Join(t.TempDir(), "jobs.db")); err != nil {
		t.Fatal(err)
	}
	const want = `order-1: completed, result {"number":"R-ann"}
order-2: dead, bad_data: 0; more than 0 is allowed (cents)
order-3: dead, bad_data: the data does not fit: JSON number for Go string (customer)
`
	if out.String() != want {
		t.Errorf("got:\n%swant:\n%s", out.String(), want)
	}
}
