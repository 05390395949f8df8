package enginetest

import (
	"slices"
	"testing"
)

func TestCasesNameEveryInvariant(t *testing.T) {
	for n := 1; n <= 12; n++ {
		if !slices.ContainsFunc(cases(), func(c testCase) bool { return slices.Contains(c.invariants, n) }) {
			t.Errorf("no case shows invariant %d of package engine", n)
		}
	}
}

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range cases() {
		if seen[c.name] {
			t.Errorf("two cases are called %q", c.name)
		}
		seen[c.name] = true
	}
}
