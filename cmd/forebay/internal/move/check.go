package move

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// check compares each job and each document. The first that differs ends the move, and
// nothing has changed in the source.
func (m *mover) check(ctx context.Context) error {
	for i, e := range m.all {
		if e.moved {
			continue // lookAtMoved has
		}
		want, err := m.From.Job(ctx, e.id)
		if err != nil {
			return fmt.Errorf("job %s: %w", e.id, err)
		}
		got, err := m.To.Job(ctx, e.id)
		if err != nil {
			return m.differs(e.id, "it is not in the target: %w", err)
		}
		if what := difference(&want, &got); what != "" {
			return m.differs(e.id, "%s is not what it was", what)
		}
		m.done.Checked++
		if i%batch == 0 || i == len(m.all)-1 {
			m.tell("compared", i+1, len(m.all))
		}
	}
	if m.again {
		return nil // documents has compared them
	}
	return m.checkDocuments(ctx)
}

func (m *mover) checkDocuments(ctx context.Context) error {
	return m.eachDocument(ctx, func(d engine.Document) error {
		got, err := m.To.Document(ctx, d.Collection, d.Key)
		if err != nil {
			return m.differs(d.Key, "this document of %s cannot be read in the target: %w", d.Collection, err)
		}
		if !bytes.Equal(got.Value, d.Value) {
			return m.differs(d.Key, "this document of %s is not what it was", d.Collection)
		}
		m.done.Checked++
		return nil
	})
}

func (m *mover) differs(id, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeConflict, "move", id+": "+format, args...)
	e.Hint = "nothing has changed in the source; mend the cause, and move again into an empty target"
	if m.again || slices.ContainsFunc(m.all, func(e entry) bool { return e.movedTo != "" }) {
		e.Hint = "nothing has changed in the source; jobs of it were moved before: name that target as it was named then, or restore the copy that was made before that move"
	}
	return e
}

// difference names what differs. Whether a job that waits is delayed depends on the moment.
func difference(want, got *forebay.Job) string {
	state := want.State == got.State || !want.State.Final() && !got.State.Final()
	for _, one := range []struct {
		what string
		same bool
	}{
		{"the state", state},
		{"the queue", want.Queue == got.Queue},
		{"the kind", want.Kind == got.Kind},
		{"the payload", bytes.Equal(want.Payload, got.Payload)},
		{"the headers", maps.Equal(want.Headers, got.Headers)},
		{"the priority", want.Priority.Level() == got.Priority.Level()},
		{"the group", want.Group == got.Group},
		{"the limit key", want.LimitKey == got.LimitKey},
		{"the limits", want.Limits == got.Limits},
		{"the tenant", want.Job.Tenant == got.Job.Tenant},
		{"the owner", want.Job.Owner == got.Job.Owner},
		{"the tags", slices.Equal(want.Job.Tags, got.Job.Tags)},
		{"the parent", want.Job.Parent == got.Job.Parent},
		{"the result", bytes.Equal(want.Result, got.Result)},
		{"the cause", want.Cause.Code == got.Cause.Code && want.Cause.Message == got.Cause.Message},
		{"the time that it waits for", want.State.Final() || want.Due.Unix() == got.Due.Unix()},
	} {
		if !one.same {
			return one.what
		}
	}
	return ""
}
