package inbox_test

import (
	"testing"

	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

var _ engine.Documents = (*broker.Broker)(nil)

// documents of a real engine.
func documents(t *testing.T) engine.Documents {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{Path: t.TempDir() + "/queue.db"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}
