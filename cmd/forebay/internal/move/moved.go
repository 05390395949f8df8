package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// movedTo begins the reason with which a move cancels what waits in the source.
const movedTo = "moved to "

// movedAs gives the name of the target that a job of the source was moved to; "" if it was not.
func movedAs(j *forebay.Job) string {
	name, ok := strings.CutPrefix(j.Cause.Message, movedTo)
	if !ok || j.State != forebay.StateCancelled || j.Cause.Code != string(forebay.CodeCancelled) {
		return ""
	}
	return name
}

// marks is the collection of the source with a document for each target: that all was there
// and compared, and when. A source in which nothing waited shows it by nothing else.
const marks = "moved"

// markMoved finds what a move before this one has brought to the target: what it cancelled,
// and what had ended before that, for it cancels only after all is there and compared.
// The target has them in its hands since: they may be worked there, or replayed.
func (m *mover) markMoved(ctx context.Context) error {
	first, err := m.marked(ctx)
	if err != nil {
		return err
	}
	if first.IsZero() {
		for i := range m.all { // else it is this one that holds
			if e := &m.all[i]; e.movedTo == "" && e.state.Final() && !e.finished.After(m.elsewhere) {
				e.movedTo = m.elsewhereName
			}
		}
	}
	for _, e := range m.all {
		if e.movedTo == m.Name && (first.IsZero() || e.finished.Before(first)) {
			first = e.finished
		}
	}
	m.again = !first.IsZero()
	for i := range m.all {
		e := &m.all[i]
		e.moved = !first.IsZero() && e.state.Final() && (e.movedTo == m.Name || !e.finished.After(first))
		if e.moved {
			m.done.Moved++
		} else {
			m.done.Jobs[e.state]++
		}
	}
	return nil
}

// note notes that all is in the target. The first note holds: what ends here later was not moved.
func (m *mover) note(ctx context.Context) error {
	value, err := json.Marshal(mark{m.Name, time.Now()})
	if err == nil {
		_, err = m.From.PutDocument(ctx, engine.Document{Collection: marks, Key: markKey(m.Name), Value: value})
	}
	if forebay.CodeOf(err) == forebay.CodeConflict {
		return nil
	}
	return err
}

// marked tells when all was in the target; zero: nobody has noted it. It remembers the last
// one of other targets.
func (m *mover) marked(ctx context.Context) (at time.Time, err error) {
	all, err := m.From.Documents(ctx, marks, "", engine.MaxDocuments)
	for _, d := range all {
		var one mark
		if err := json.Unmarshal(d.Value, &one); err != nil {
			return at, forebay.Errorf(forebay.CodeDamaged, "move", "the note of a move before this one: %w", err)
		}
		if one.Target == m.Name {
			at = one.At
		} else if one.At.After(m.elsewhere) {
			m.elsewhere, m.elsewhereName = one.At, one.Target
		}
	}
	return at, err
}

// mark is what is noted of a target.
type mark struct {
	Target string    `json:"target"`
	At     time.Time `json:"at"`
}

// markKey is the key of a target's mark, whose name may be long.
func markKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// lookAtMoved compares what was moved before, and changes nothing. How far these jobs are is
// the target's business.
func (m *mover) lookAtMoved(ctx context.Context) error {
	for _, e := range m.all {
		if !e.moved && e.movedTo == "" {
			continue
		}
		got, err := m.To.Job(ctx, e.id)
		lacks := forebay.CodeOf(err) == forebay.CodeNotFound
		if err != nil && !lacks {
			return fmt.Errorf("job %s: %w", e.id, err)
		}
		if !e.moved {
			// The same target may have had another name. What waits there is then no copy to be cancelled.
			if !lacks && !got.State.Final() {
				return m.differs(e.id, "it was moved to %s, and is %s in this target", e.movedTo, got.State)
			}
			continue
		}
		if lacks {
			return m.differs(e.id, "it was moved before, and is not in the target")
		}
		want, err := m.From.Job(ctx, e.id)
		if err != nil {
			return fmt.Errorf("job %s: %w", e.id, err)
		}
		got.State, got.Result, got.Cause, got.Due = want.State, want.Result, want.Cause, want.Due
		if what := difference(&want, &got); what != "" {
			return m.differs(e.id, "it was moved before, and %s is not what it was", what)
		}
		m.done.Checked++
	}
	return nil
}
