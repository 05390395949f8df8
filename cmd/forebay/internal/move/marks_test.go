package move_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/move"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// A source in which nothing waited is moved once, too: a dead letter that was replayed in the
// target is not buried again by a second move, by no name of the target.
func TestMoveTwiceWithNothingWaiting(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, err := sqlite.Open(sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for _, id := range []string{"a", "b"} {
		one(t, from, forebay.Message{ID: id, Queue: "mail", Payload: []byte("1"), Job: &forebay.JobOptions{}},
			forebay.Settlement{Verdict: forebay.Dead, Cause: forebay.Cause{Code: "smtp", Message: "no such user"}})
	}
	to := target(t)
	if done, err := move.Move(ctx, moving(from, to)); err != nil || done.Moved != 0 || done.Jobs[forebay.StateDead] != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	letters, err := to.Dead(ctx, engine.DeadQuery{})
	if err != nil || len(letters) != 2 {
		t.Fatal(letters, err)
	}
	if errs, err := to.Replay(ctx, []int64{letters[0].Seq}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	before := look(t, to)
	renamed := moving(from, watched{to, t})
	renamed.Name = "the same by another name"
	if _, err := move.Move(ctx, renamed); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("by another name: %v", err)
	}
	if done, err := move.Move(ctx, moving(from, watched{to, t})); err != nil || done.Moved != 2 || len(done.Jobs) != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
	if after := look(t, to); !maps.Equal(before, after) {
		t.Errorf("the target was %v, is %v", before, after)
	}
	// What has come since goes there.
	one(t, from, forebay.Message{ID: "later", Queue: "other", Payload: []byte("1"), Job: &forebay.JobOptions{}}, forebay.Settlement{Verdict: forebay.Ack})
	if done, err := move.Move(ctx, moving(from, to)); err != nil || done.Moved != 2 || done.Jobs[forebay.StateCompleted] != 1 {
		t.Errorf("later: %+v, %v", done, err)
	}
	after := look(t, to)
	if delete(after, "later"); !maps.Equal(before, after) {
		t.Errorf("the target was %v, is %v", before, after)
	}
}
