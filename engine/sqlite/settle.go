package sqlite

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Settle ends deliveries; see engine.Engine.
func (e *Engine) Settle(ctx context.Context, s []forebay.Settlement) ([]error, error) {
	if len(s) > engine.MaxReceive {
		return nil, tooMany("settlements", engine.MaxReceive)
	}
	o := &settle{in: slices.Clone(s), at: make([]ticket, len(s)), errs: make([]error, len(s)), next: make([][]encoded, len(s)), bytes: int64(64 * len(s))}
	now := e.cfg.Now()
	valid := false
	for i := range s {
		o.errs[i] = checkSettlement(&s[i])
		o.at[i], _ = e.sealer.ticket(s[i].Receipt)
		o.in[i].Next, o.in[i].Cause.Detail, o.in[i].Result = nil, maps.Clone(s[i].Cause.Detail), slices.Clone(s[i].Result)
		o.bytes += int64(len(s[i].Result))
		for j := range s[i].Next {
			m := &s[i].Next[j]
			if o.errs[i] == nil {
				o.errs[i] = engine.CheckMessage(m, now)
			}
			if o.errs[i] != nil {
				break
			}
			n := encode(m, now, nil)
			o.bytes += int64(len(n.body))
			o.next[i] = append(o.next[i], n)
		}
		valid = valid || o.errs[i] == nil
	}
	o.refused = append(o.refused, o.errs...)
	if !valid {
		return o.errs, ctx.Err()
	}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

func checkSettlement(s *forebay.Settlement) error {
	bad := func(field, format string, args ...any) error {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: settle", format, args...)
		err.Field = field
		return err
	}
	switch {
	case s.Verdict < forebay.Ack || s.Verdict > forebay.Expired:
		return bad("verdict", "unknown: %s", s.Verdict)
	case s.After < 0 || s.After > forebay.MaxDelay:
		return bad("after", "must be 0 to %s", forebay.MaxDelay)
	case len(s.Next) > engine.MaxSend:
		return bad("next", "more than %d messages", engine.MaxSend)
	}
	return engine.CheckResult(s.Result)
}

// settle is the op of Settle.
type settle struct {
	change
	in      []forebay.Settlement
	at      []ticket // of their receipts
	next    [][]encoded
	refused []error // before the loop saw them
	errs    []error
	bytes   int64
	done    []settled
	counts  []sent
}

// settled is one settlement that was applied.
type settled struct {
	ls   *lease
	it   *item
	v    forebay.Verdict
	back *ref

	keeps bool // released, it needs a row: that it was begun counts
}

func (o *settle) size() int64     { return o.bytes }
func (o *settle) messages() int64 { return max(int64(len(o.in)), 1) }

func (o *settle) apply(t *tx) error {
	o.done, o.counts = o.done[:0], o.counts[:0]
	copy(o.errs, o.refused)
	for i := range o.in {
		if o.errs[i] != nil {
			continue
		}
		ls, it := t.l.held(o.at[i])
		if it == nil {
			o.errs[i] = errLeaseLost()
			continue
		}
		refused, err := o.end(t, ls, it, &o.in[i])
		if err != nil {
			return err
		}
		if refused != nil {
			o.errs[i] = refused
			continue
		}
		if err := o.follow(t, o.next[i]); err != nil {
			return err
		}
	}
	return nil
}

// end ends the lease of one message.
func (o *settle) end(t *tx, ls *lease, it *item, s *forebay.Settlement) (refused, err error) {
	it.state = itemSettling
	t.touch(ls)
	o.done = append(o.done, settled{ls: ls, it: it, v: s.Verdict})
	err = o.one(t, s, &o.done[len(o.done)-1])
	if err == errUnreadable { // the others are settled; this one ends with its lease
		it.state = itemLeased
		o.done = o.done[:len(o.done)-1]
		return forebay.Errorf(forebay.CodeDamaged, "sqlite: settle", "%w", err), nil
	}
	return nil, err
}

func (t *tx) touch(ls *lease) {
	if t.touched == nil {
		t.touched = map[*lease]struct{}{}
	}
	t.touched[ls] = struct{}{}
}

// one writes what becomes of one message.
func (o *settle) one(t *tx, s *forebay.Settlement, d *settled) error {
	q, it := d.ls.q, d.it
	if it.job {
		return t.settleJob(q, s, d)
	}
	switch s.Verdict {
	case forebay.Ack, forebay.Cancelled, forebay.Expired:
		return t.finish(it)
	case forebay.Dead:
		if _, err := t.bury(q, it.asDead(s), s.Cause, it.attempts+charge(s)); err != nil {
			return err
		}
		return t.finish(it)
	}
	_, err := t.back(q, s, d)
	return err
}

// back lets a message wait again. It gives the cause of a Retry, as it is stored.
func (t *tx) back(q *queue, s *forebay.Settlement, d *settled) (cause []byte, err error) {
	r := d.it.ref
	d.back = &r
	if r.due = 0; s.After > 0 {
		r.due = t.now + int64(s.After)
	}
	if s.Verdict == forebay.Release {
		r.deliveries-- // this one
		return nil, t.release(q, d, &r)
	}
	r.attempts++
	failures, cause, err := t.failed(&d.it.ref, s.Cause)
	if err != nil {
		return nil, err
	}
	r.stored = true
	return cause, t.keep(q, &r, failures)
}

// release gives a hand-out back. A message that is then as if it had never been
// handed out needs no row.
func (t *tx) release(q *queue, d *settled, r *ref) error {
	d.ls.stale = true
	had := r.stored
	r.stored = r.due > 0 || r.attempts > 0 || r.deliveries > 0 || d.keeps || d.ls.loaded || r.sentAt != d.it.blk.sentAt // it was moved
	switch {
	case r.stored:
		return t.keep(q, r, nil)
	case had:
		return t.unkeep(r)
	}
	return nil
}

// finish takes a message out of the store.
func (t *tx) finish(it *item) error {
	if it.stored {
		if err := t.unkeep(&it.ref); err != nil {
			return err
		}
	}
	t.settle(it.blk, it.idx)
	return nil
}

// failed adds a cause to the failures of a message. It gives them as they are stored,
// and the new one by itself.
func (t *tx) failed(r *ref, cause forebay.Cause) (all, one []byte, err error) {
	var text string
	if r.stored {
		if text, err = t.l.failures(r); err != nil {
			return nil, nil, err
		}
	}
	if cause.At.IsZero() {
		cause.At = unix(t.now)
	}
	if r.job {
		cause.Attempt, cause.Started = r.attempts+1, unix(r.started)
	}
	causes := append(decodeFailures(text), cause)
	if n := len(causes) - forebay.MaxFailures; n > 0 {
		causes = causes[n:]
	}
	if all, err = json.Marshal(causes); err != nil {
		return nil, nil, err
	}
	one, err = json.Marshal(cause)
	return all, one, err
}

func decodeFailures(text string) []forebay.Cause {
	var causes []forebay.Cause
	if len(text) > len("[]") {
		// What we wrote we can read; if not, the message matters more than its past.
		_ = json.Unmarshal([]byte(text), &causes)
	}
	return causes
}

// follow sends the messages that come with a verdict. One that was sent before is
// there already, and that is right.
func (o *settle) follow(t *tx, next []encoded) error {
	for i := range next {
		n, err := t.send(&next[i])
		if err != nil {
			return err
		}
		q, err := t.queue(next[i].queue)
		if err != nil {
			return err
		}
		o.counts = append(o.counts, sent{q, n != nil, n != nil && n.print != next[i].print && !n.replaced})
	}
	return nil
}

func (o *settle) publish(t *tx) {
	for i := range o.done {
		o.done[i].publish(t)
	}
	countSent(o.counts)
}

func (d *settled) publish(t *tx) {
	switch q := d.ls.q; d.v {
	case forebay.Ack:
		q.completed++
	case forebay.Dead:
		q.dead++
	case forebay.Cancelled:
		q.cancelled++
	case forebay.Expired:
		q.expired++
	}
	t.l.end(d.ls, d.it, d.back, t.now)
}

func (o *settle) abort() {
	for _, d := range o.done {
		d.it.state = itemLeased
	}
	o.done = nil
}
