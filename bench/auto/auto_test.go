package auto_test

import (
	"strings"
	"testing"

	"github.com/forebayhq/forebay/bench/auto"
)

// A concurrency that tunes itself stays within a tenth of the best fixed setting of each
// phase, the search for it included, and never collapses: no ten seconds bring less than
// two thirds of what the back end can do.
func TestItFollowsABackEndThatChanges(t *testing.T) {
	t.Parallel()
	results := auto.Compare(auto.Plan(), auto.New())
	for _, r := range results {
		if r.Auto < 0.9*r.Best {
			t.Errorf("%s: %.0f/s, and %.0f/s with %d", r.Phase.Name, r.Auto, r.Best, r.Fixed)
		}
		if r.Worst < 0.67 {
			t.Errorf("%s: in its worst ten seconds %.2f of what the back end can do", r.Phase.Name, r.Worst)
		}
	}
	var b strings.Builder
	if err := auto.Print(&b, results); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
}
