package runner

import (
	"context"
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Release is who stored a version, and who approved it.
type Release struct {
	Author     string    `json:"author,omitempty"`
	At         time.Time `json:"at,omitzero"`
	Reason     string    `json:"reason,omitempty"` // why it was stored
	ApprovedBy string    `json:"approvedBy,omitempty"`
	ApprovedAt time.Time `json:"approvedAt,omitzero"`
	Comment    string    `json:"comment,omitempty"` // of who approved it
}

// lookBack is how many versions are looked at for one that is approved.
const lookBack = 100

// FourEyes tells whether versions have to be approved before they run.
func (r *Runner) FourEyes() bool { return r.cfg.FourEyes }

// Release tells who stored a version; 0: the latest. Of one that an older program stored,
// nothing is known.
func (r *Runner) Release(ctx context.Context, name string, number int) (Release, error) {
	rel, _, err := r.release(ctx, name, number)
	return rel, err
}

func (r *Runner) release(ctx context.Context, name string, number int) (rel Release, rev int64, err error) {
	if number, err = r.resolve(ctx, name, number); err != nil {
		return rel, 0, err
	}
	d, err := r.b.Document(ctx, collectionNote, fileKey(name, number))
	if missing(err) {
		return rel, 0, nil
	}
	if err == nil && json.Unmarshal(d.Value, &rel) != nil {
		err = forebay.Errorf(forebay.CodeDamaged, "runner: release", "who stored version %d of %s is not readable", number, name)
	}
	return rel, d.Rev, err
}

func (r *Runner) note(ctx context.Context, name string, number int, rel Release) error {
	return r.putRelease(ctx, name, number, rel, engine.AnyRev)
}

func (r *Runner) putRelease(ctx context.Context, name string, number int, rel Release, rev int64) error {
	value, err := json.Marshal(rel)
	if err != nil {
		return forebay.Errorf(forebay.CodeInternal, "runner: release", "%w", err)
	}
	_, err = r.b.PutDocument(ctx, engine.Document{Collection: collectionNote, Key: fileKey(name, number), Value: value, Rev: rev})
	return err
}

// SignOff approves a version, in the name of somebody who did not store it.
func (r *Runner) SignOff(ctx context.Context, name string, number int, by, comment string) (Release, error) {
	if _, err := r.version(ctx, name, number); err != nil {
		return Release{}, err
	}
	for range maxTries {
		rel, rev, err := r.release(ctx, name, number)
		switch {
		case err != nil:
			return rel, err
		case by == "" || by == rel.Author:
			return rel, conflict("version %d of the flow %s was stored by %s; somebody else has to approve it", number, name, by)
		case rel.ApprovedBy != "":
			return rel, nil
		}
		rel.ApprovedBy, rel.ApprovedAt, rel.Comment = by, r.cfg.Now(), comment
		if err = r.putRelease(ctx, name, number, rel, rev); forebay.CodeOf(err) != forebay.CodeConflict {
			return rel, err
		}
	}
	return Release{}, conflict("version %d of the flow %s was approved by others again and again", number, name)
}

// released is the version that a run gets: where four eyes are wanted, one that is
// approved.
func (r *Runner) released(ctx context.Context, name string, number int) (int, error) {
	exact := number > 0
	number, err := r.resolve(ctx, name, number)
	if err != nil || !r.cfg.FourEyes {
		return number, err
	}
	for n := number; n > 0 && n > number-lookBack; n-- {
		rel, err := r.Release(ctx, name, n)
		if err != nil {
			return 0, err
		}
		if rel.ApprovedBy != "" {
			return n, nil
		}
		if exact {
			return 0, unapproved("version %d of the flow %s is not approved, so it does not run", n, name)
		}
	}
	return 0, unapproved("no version of the flow %s is approved, so it does not run", name)
}

func unapproved(format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeConflict, "", format, args...)
	e.Hint = "somebody other than its author approves it: forebay flow release NAME"
	return e
}
