package main

import (
	"context"
	"fmt"
	"os"

	"github.com/forebayhq/forebay/bench/auto"
)

// autoPart shows how a concurrency that tunes itself follows a back end that changes. Its
// time is simulated: other load on the machine changes nothing.
func autoPart(_ context.Context, _ options, t *table) error {
	results := auto.Compare(auto.Plan(), auto.New())
	if err := auto.Print(os.Stdout, results); err != nil {
		return err
	}
	fmt.Println()
	least, worst := 1.0, 1.0
	for _, r := range results {
		least, worst = min(least, r.Auto/r.Best), min(worst, r.Worst)
	}
	t.target("auto / best fixed, the worst phase", least, "", "at least 0.90", least >= 0.9)
	t.target("the worst ten seconds, of what the back end can do", worst, "", "at least 0.67", worst >= 0.67)
	return nil
}
