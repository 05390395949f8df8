package sqlite

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Progress notes what running jobs tell; see engine.Jobs.
func (e *Engine) Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error) {
	if len(updates) > engine.MaxProgress {
		return nil, tooMany("updates", engine.MaxProgress)
	}
	o := &progress{in: make([]tidings, len(updates)), refused: make([]error, len(updates)), errs: make([]error, len(updates)), bytes: 256}
	now := e.cfg.Now()
	valid := false
	for i := range updates {
		u := &updates[i]
		if o.refused[i] = engine.CheckProgress(u); o.refused[i] == nil {
			o.in[i], o.refused[i] = encodeTidings(u, now)
		}
		o.in[i].ticket, _ = e.sealer.ticket(u.Receipt)
		valid = valid || o.refused[i] == nil
		o.bytes += o.in[i].size
	}
	if !valid {
		return o.refused, ctx.Err()
	}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

// tidings is one update, as it is stored.
type tidings struct {
	ticket   ticket
	progress []byte
	lines    []string
	size     int64
}

func encodeTidings(u *forebay.ProgressUpdate, now time.Time) (n tidings, err error) {
	if u.Progress != nil {
		p := *u.Progress
		if p.At.IsZero() {
			p.At = now
		}
		if n.progress, err = encodeProgress(&p); err != nil {
			return n, forebay.Errorf(forebay.CodeInvalid, "sqlite: progress", "%w", err)
		}
	}
	for _, line := range u.Log {
		n.lines = append(n.lines, line.Text)
		n.size += int64(len(line.Text))
	}
	n.size += int64(len(n.progress)) + 64
	return n, nil
}

// progress is the op of Progress.
type progress struct {
	change
	in      []tidings
	refused []error // before the loop saw them
	errs    []error
	bytes   int64
	held    []*item // of each; nil: refused
}

func (o *progress) size() int64   { return o.bytes }
func (o *progress) durable() bool { return false }

func (o *progress) apply(t *tx) error {
	o.held = make([]*item, len(o.in))
	copy(o.errs, o.refused)
	for i := range o.in {
		if o.errs[i] != nil {
			continue
		}
		ls, it := t.l.held(o.in[i].ticket)
		if it == nil || !it.job {
			o.errs[i] = errLeaseLost()
			continue
		}
		_, g, err := t.l.bodyOf(&it.ref)
		if err == errUnreadable {
			o.errs[i] = forebay.Errorf(forebay.CodeDamaged, "sqlite: progress", "%w", err)
			continue
		}
		if err != nil {
			return err
		}
		o.held[i], o.errs[i] = it, it.stopping()
		n := note{attempt: it.attempts + 1, id: g.id, kind: g.kind, queue: ls.q.name}
		if n.progress = o.in[i].progress; n.progress != nil {
			n.typ = evProgress
			t.record(&n)
		}
		n.typ, n.progress = evLog, nil
		for _, n.text = range o.in[i].lines {
			t.record(&n)
		}
	}
	return nil
}

func (o *progress) publish(*tx) {
	for i, it := range o.held {
		if it != nil && o.in[i].progress != nil {
			it.tell().progress = o.in[i].progress
		}
	}
}
