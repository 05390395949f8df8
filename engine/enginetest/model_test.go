package enginetest_test

import (
	"testing"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
)

func modelHarness() enginetest.Harness {
	return enginetest.Harness{
		Open:   func(testing.TB) engine.Engine { return enginetest.NewModel() },
		Reopen: func(_ testing.TB, e engine.Engine) engine.Engine { return e.(*enginetest.Model).Reopen() },
		Cannot: map[enginetest.Ability]string{
			enginetest.Ledger:      "it keeps messages only",
			enginetest.Listing:     "it keeps messages only",
			enginetest.Documenting: "it keeps messages only",
		},
	}
}

func TestModelConforms(t *testing.T) { enginetest.Run(t, modelHarness()) }

// A benchmark of the model says nothing about speed; it keeps the benchmarks running.
func BenchmarkModel(b *testing.B) {
	b.Setenv("ENGINETEST_BACKLOG", "2000")
	enginetest.Benchmark(b, modelHarness())
}
