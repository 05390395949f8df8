package schedule

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// collection is where schedules are kept, a document each.
const collection = "schedule"

// idWindow is how long the id of a tick's job is remembered. A tick that was decided,
// and perhaps sent, is sent again only within sureWindow of that.
const (
	idWindow   = forebay.DefaultDedupWindow
	sureWindow = idWindow - time.Hour
)

// State is what a schedule has done. It outlives changes of its definition.
type State struct {
	Since   time.Time `json:"since"`             // when it was made
	After   time.Time `json:"after"`             // ticks up to here are done with
	Count   int64     `json:"count"`             // jobs that were added by ticks
	Skipped int64     `json:"skipped"`           // ticks that added none
	LastJob string    `json:"lastJob,omitempty"` // that was added, also by hand
	Last    *Outcome  `json:"last,omitempty"`    // of the latest tick
	Skip    *Outcome  `json:"skip,omitempty"`    // of the latest that was skipped
	Pending []Pending `json:"pending,omitempty"` // decided, and perhaps not yet sent
}

// Outcome is what became of a tick.
type Outcome struct {
	Tick   time.Time `json:"tick"`
	At     time.Time `json:"at"`
	Job    string    `json:"job,omitempty"`    // that was added
	Code   string    `json:"code,omitempty"`   // why it was skipped: one of those below, or that of an error
	Reason string    `json:"reason,omitempty"` // the same for people
}

// Why ticks are skipped.
const (
	SkipMissed  = "missed"    // it came due while nobody was there, see Missed
	SkipOverlap = "overlap"   // the former job has not finished, see Overlap
	SkipExists  = "exists"    // there is a job of this tick, of a former schedule of this name
	SkipUnsure  = "uncertain" // it was decided long ago, and cannot be told whether it was sent
)

// Pending is a job that is to be sent.
type Pending struct {
	Job    string    `json:"job"`
	Tick   time.Time `json:"tick,omitzero"`    // zero: run by hand
	At     time.Time `json:"at"`               // when that was decided
	Cancel string    `json:"cancel,omitempty"` // the former job, which is cancelled before
}

const storedVersion = 1

// stored is a schedule's document.
type stored struct {
	Version    int        `json:"v"`
	Definition Definition `json:"definition"`
	State      State      `json:"state"`
}

// decode reads a document.
func decode(d engine.Document) (stored, error) {
	var s stored
	dec := json.NewDecoder(bytes.NewReader(d.Value))
	err := dec.Decode(&s)
	switch {
	case err != nil:
		return s, forebay.Errorf(forebay.CodeDamaged, "schedule: read "+d.Key, "%w", err)
	case s.Version > storedVersion:
		return s, forebay.Errorf(forebay.CodeTooNew, "schedule: read "+d.Key, "it was written by a newer version (form %d, known is %d)", s.Version, storedVersion)
	case s.Definition.Name != d.Key || !sane(s.State.Since) || !sane(s.State.After) || len(s.State.Pending) > MaxCatchUp+maxRuns:
		return s, forebay.Errorf(forebay.CodeDamaged, "schedule: read "+d.Key, "the document is not one of a schedule of this name")
	}
	if err := s.Definition.checkTimes(); err != nil {
		return s, forebay.Errorf(forebay.CodeDamaged, "schedule: read "+d.Key, "%w", err)
	}
	return s, nil
}

// sane tells whether there can be reckoned with a time.
func sane(t time.Time) bool { return t.UTC().Year() >= 1970 && t.UTC().Year() <= 2300 }

func (s *stored) document(rev int64) (engine.Document, error) {
	s.Version = storedVersion
	value, err := json.Marshal(s)
	if err != nil {
		return engine.Document{}, forebay.Errorf(forebay.CodeInternal, "schedule: write", "%w", err)
	}
	return engine.Document{Collection: collection, Key: s.Definition.Name, Rev: rev, Value: value}, nil
}
