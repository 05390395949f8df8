package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/sqlite"
)

func TestConformanceMemory(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			return mustOpen(t, sqlite.Config{Log: sqlite.LogConfig{Ages: map[string]time.Duration{"logged": time.Hour}}})
		},
	})
}

// stored remembers the path of an engine, so that the suite can open it again.
type stored struct {
	*sqlite.Engine
	path string
}

func (s stored) Unwrap() engine.Engine { return s.Engine }

func TestConformanceFile(t *testing.T) {
	enginetest.Run(t, fileHarness())
}

func fileHarness() enginetest.Harness {
	openAt := func(t testing.TB, path string) engine.Engine {
		return stored{mustOpen(t, sqlite.Config{Path: path, Log: sqlite.LogConfig{Age: time.Hour}}), path}
	}
	return enginetest.Harness{
		Open: func(t testing.TB) engine.Engine { return openAt(t, filepath.Join(t.TempDir(), "forebay.db")) },
		Reopen: func(t testing.TB, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			return openAt(t, e.(stored).path)
		},
	}
}

func mustOpen(t testing.TB, cfg sqlite.Config) *sqlite.Engine {
	t.Helper()
	e, err := sqlite.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func BenchmarkSuite(b *testing.B) { enginetest.Benchmark(b, fileHarness()) }
