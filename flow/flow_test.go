package flow_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay/flow"
)

func examples(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("../examples/flows/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal("no examples", err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = src
	}
	return all
}

func TestExamplesAreSound(t *testing.T) {
	for name, src := range examples(t) {
		if p, problems := flow.Load(src, flow.Known{}); p == nil || len(problems) > 0 {
			t.Errorf("%s:\n%s", name, problems.Error())
		}
	}
}
