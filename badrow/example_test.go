package badrow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forebayhq/forebay/badrow"
)

func Example() {
	dir, err := os.MkdirTemp("", "bad")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store, err := badrow.Open(filepath.Join(dir, "bad.db"), badrow.Config{MaxRows: 1000})
	if err != nil {
		panic(err)
	}
	defer store.Close()

	ctx := context.Background()
	err = store.Put(ctx, []badrow.Row{{Code: "missing", Pointer: "/eventType", Reason: "eventType is missing", Bytes: []byte(`{"payload":{}}`)}})
	if err != nil {
		panic(err)
	}
	rows, err := store.List(ctx, badrow.Query{Code: "missing"})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d %s: %s\n", rows[0].Seq, rows[0].Pointer, rows[0].Bytes)
	// Output: 1 /eventType: {"payload":{}}
}
