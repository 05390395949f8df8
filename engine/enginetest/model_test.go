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
		Cannot: map[enginetest.Ability]string{enginetest.Logging: "the model keeps what is not settled"},
	}
}

func TestModelConforms(t *testing.T) {
	t.Setenv("ENGINETEST_KEYS", "100") // it goes through all messages at each question
	enginetest.Run(t, modelHarness())
}

// A benchmark of the model says nothing about speed; it keeps the benchmarks running.
func BenchmarkModel(b *testing.B) {
	b.Setenv("ENGINETEST_BACKLOG", "2000")
	enginetest.Benchmark(b, modelHarness())
}
