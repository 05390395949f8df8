package sqlite

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Change changes jobs that wait; see engine.Jobs.
func (e *Engine) Change(ctx context.Context, changes []engine.JobChange) ([]error, error) {
	if len(changes) > engine.MaxCancel {
		return nil, tooMany("changes", engine.MaxCancel)
	}
	o := &changeJobs{in: make([]engine.JobChange, len(changes)), refused: make([]error, len(changes)), errs: make([]error, len(changes)), bytes: 256}
	now := e.cfg.Now()
	valid := false
	for i, c := range changes {
		o.refused[i] = engine.CheckChange(&c, now)
		valid = valid || o.refused[i] == nil
		o.in[i] = cloneChange(c)
		o.bytes += int64(len(c.Payload)) + 256
	}
	if !valid {
		return o.refused, ctx.Err()
	}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

func cloneChange(c engine.JobChange) engine.JobChange {
	if c.Priority != nil {
		p := *c.Priority
		c.Priority = &p
	}
	if c.Due != nil {
		due := *c.Due
		c.Due = &due
	}
	if c.Payload != nil {
		c.Payload = append(make([]byte, 0, len(c.Payload)), c.Payload...)
	}
	return c
}

// changeJobs is the op of Change.
type changeJobs struct {
	change
	in      []engine.JobChange
	refused []error // before the loop saw them
	errs    []error
	bytes   int64
}

func (o *changeJobs) size() int64 { return o.bytes }

func (o *changeJobs) apply(t *tx) error {
	copy(o.errs, o.refused)
	for i := range o.in {
		if o.errs[i] != nil {
			continue
		}
		c := &o.in[i]
		job, err := t.live(c.ID)
		if err != nil {
			return err
		}
		switch {
		case job.err != nil:
			o.errs[i] = job.err
		case job.it != nil || job.moving:
			o.errs[i] = forebay.Errorf(forebay.CodeConflict, "sqlite: change", "the job is active")
		case c.Priority != nil && job.ref.group != 0:
			o.errs[i] = groupPriority()
		default:
			if err := o.one(t, &job, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func groupPriority() error {
	e := forebay.Errorf(forebay.CodeInvalid, "sqlite: change", "a job of a group has no priority of its own: the order of the group goes before it")
	e.Field = "priority"
	return e
}

func (o *changeJobs) one(t *tx, job *liveJob, c *engine.JobChange) error {
	due := job.ref.due
	if c.Due != nil {
		if due = 0; c.Due.UnixNano() > t.now {
			due = c.Due.UnixNano()
		}
	}
	n := note{typ: evChanged, state: stWaiting, attempt: job.ref.attempts, id: job.g.id, kind: job.g.kind, queue: job.q.name}
	if due > t.now {
		n.state, n.due = stDelayed, due
	}
	t.record(&n)
	if c.Priority != nil && c.Priority.Level() != levelOf(job.ref.key) {
		return t.move(job, c, due)
	}
	if c.Payload != nil || c.Priority != nil {
		if err := t.replacePayload(job, c); err != nil {
			return err
		}
	}
	if c.Due != nil {
		return t.delay(job, due)
	}
	return nil
}

// replacePayload writes a job that waits anew, in its place.
func (t *tx) replacePayload(job *liveJob, c *engine.JobChange) error {
	m, err := decodeBody(job.body, job.q.name)
	if err != nil {
		return err
	}
	changed(&m, c)
	b, err := t.l.block(job.ref.key)
	if err != nil || b == nil {
		return err
	}
	body := appendBody(make([]byte, 0, bodyRoom(&m)), &m, job.ref.group, job.ref.limitKey)
	t.rewrite(b, job.ref.idx, body)
	return nil
}

func changed(m *forebay.Message, c *engine.JobChange) {
	if c.Payload != nil {
		m.Payload = c.Payload
	}
	if c.Priority != nil {
		m.Priority = *c.Priority
	}
}

// move sends a job that waits again to another lane: the same to all who look.
func (t *tx) move(job *liveJob, c *engine.JobChange, due int64) error {
	m, err := decodeBody(job.body, job.q.name)
	if err != nil {
		return err
	}
	changed(&m, c)
	m.NotBefore = time.Time{}
	n := encode(&m, unix(t.now), nil)
	if err := t.inherit(&n); err != nil {
		return err
	}
	was := job.ref
	was.due = due
	n.was = &was
	if was.attempts > 0 {
		text, err := t.l.failures(&job.ref)
		if err != nil {
			return err
		}
		n.failures = []byte(text)
	}
	if err := t.place(job.q, &n); err != nil {
		return err
	}
	t.add(job.q, &n)
	t.moved.note(job, 0, nil)
	return t.leave(&job.ref)
}

// delay gives a job that waits another time.
func (t *tx) delay(job *liveJob, due int64) error {
	r := job.ref
	switch {
	case due > 0:
		r.ord = due
	case r.due > t.now: // it need not wait behind what was due before
		r.ord = t.now
	}
	r.due, r.stored = due, true
	t.moved.note(job, 0, &r)
	return t.keep(job.q, &r, nil)
}
