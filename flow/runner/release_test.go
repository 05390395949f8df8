package runner_test

import (
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
)

func TestWithFourEyesOnlyWhatAnotherHasApprovedRuns(t *testing.T) {
	t.Parallel()
	e, err := sqlite.Open(sqlite.Config{Path: t.TempDir() + "/q.db"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, err := runner.New(b, runner.Config{FourEyes: true, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	put := func(src, by string) int {
		t.Helper()
		n, problems, err := r.PutBy(ctx, []byte(src), flow.Known{}, runner.Release{Author: by, Reason: "as asked"})
		if err != nil || len(problems.Errors()) > 0 {
			t.Fatal(problems, err)
		}
		return n
	}
	start := func(version int) (int, error) {
		s, err := r.Start(ctx, runner.Start{Flow: "f", Version: version})
		return s.Version, err
	}
	put("flow: f\nsteps: {a: {use: x}}\n", "ann")
	if _, err := start(0); forebay.CodeOf(err) != forebay.CodeConflict || !strings.Contains(err.Error(), "no version of the flow f is approved") {
		t.Errorf("nothing is approved: %v", err)
	}
	if _, err := r.SignOff(ctx, "f", 1, "ann", ""); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("its author approves it: %v", err)
	}
	if _, err := r.SignOff(ctx, "f", 2, "bob", ""); forebay.CodeOf(err) != forebay.CodeNotFound {
		t.Errorf("there is no version 2: %v", err)
	}
	rel, err := r.SignOff(ctx, "f", 1, "bob", "looks right")
	if err != nil || rel.Author != "ann" || rel.ApprovedBy != "bob" || rel.Reason != "as asked" || rel.Comment != "looks right" || rel.ApprovedAt.IsZero() {
		t.Errorf("approved: %+v, %v", rel, err)
	}
	if n := put("flow: f\nsteps: {a: {use: y}}\n", "bob"); n != 2 {
		t.Fatal(n)
	}
	if n, err := start(0); n != 1 || err != nil {
		t.Errorf("the latest that is approved is version 1, and %d, %v runs", n, err)
	}
	if _, err := start(2); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("version 2 is not approved: %v", err)
	}
	if _, err := r.SignOff(ctx, "f", 2, "ann", ""); err != nil {
		t.Error(err)
	}
	if n, err := start(0); n != 2 || err != nil {
		t.Errorf("version 2 is approved, and %d, %v runs", n, err)
	}
	// Where it is drawn otherwise only, it is the same version, and stays approved.
	moved := "flow: f\nsteps: {a: {use: y}}\nlayout: {steps: {a: {x: 5, y: 5}}}\n"
	if n := put(moved, "eve"); n != 2 {
		t.Errorf("a move is version %d", n)
	}
	if src, _, err := r.Source(ctx, "f", 2); string(src) != moved || err != nil {
		t.Errorf("the move was not kept: %s, %v", src, err)
	}
	if n, err := start(0); n != 2 || err != nil {
		t.Errorf("after a move %d, %v runs", n, err)
	}
}
