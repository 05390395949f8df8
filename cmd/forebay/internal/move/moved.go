package move

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
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

// markMoved finds what a move before this one has brought to the target: what it cancelled,
// and what had ended before that, for it cancels only after all is there and compared.
// The target has them in its hands since: they may be worked there, or replayed.
func (m *mover) markMoved() {
	var first time.Time
	for _, e := range m.all {
		if e.movedTo == m.Name && (first.IsZero() || e.finished.Before(first)) {
			first = e.finished
		}
	}
	for i := range m.all {
		e := &m.all[i]
		e.moved = !first.IsZero() && e.state.Final() && (e.movedTo == m.Name || !e.finished.After(first))
		if e.moved {
			m.done.Moved++
		} else {
			m.done.Jobs[e.state]++
		}
	}
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
