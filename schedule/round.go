package schedule

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of one round. What is due beyond them is seen to in the next, at once.
const (
	roundSize = 256
	atOnce    = 64 // calls of the broker; the engine writes them together
	sendSize  = engine.MaxSend
	sendBytes = 8 << 20
)

// work is what there is to do for one schedule. It belongs to one goroutine at a time.
type work struct {
	name   string
	rev    int64
	began  int64 // rev when it was taken
	plan   *plan
	state  State
	resend bool // what is pending may have been sent already

	outcomes []sent
	err      error // the rest is tried again
}

// sent is what became of a pending job.
type sent struct {
	Pending
	code, reason string // empty: it was added
}

// due takes what there is to do now, and tells when there is more.
func (s *Scheduler) due() (works []*work, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for len(s.queue) > 0 && len(works) < roundSize && !s.queue[0].next.After(now) {
		e := s.queue[0]
		works = append(works, &work{name: e.name, rev: e.rev, began: e.rev, plan: e.plan, state: e.state, resend: len(e.state.Pending) > 0})
		e.next = time.Time{} // until the round is over
		s.queue.fix(e)
	}
	if len(s.queue) > 0 {
		next = s.queue[0].next
	}
	return works, next
}

// round decides, sends and notes. It ends what it has begun whatever becomes of Run's
// context, within the deadlines of its calls: what is broken off here is uncertain.
func (s *Scheduler) round(works []*work) {
	ctx := context.Background()
	each(works, func(w *work) { s.claim(ctx, w) })
	s.send(ctx, works)
	each(works, func(w *work) {
		s.confirm(ctx, w)
		s.finish(w)
	})
}

func each(works []*work, do func(*work)) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, w := range works {
		g.Go(func() error { do(w); return nil })
	}
	g.Wait() // none of them fails
}

// claim decides what is due, and stores that. Once it is stored, it is this process
// that sends.
func (s *Scheduler) claim(ctx context.Context, w *work) {
	if w.resend {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var last former
	last, w.err = s.former(ctx, w.plan, &w.state)
	if w.err != nil {
		return
	}
	state := w.state
	state.Pending = nil
	if !w.plan.decide(&state, s.now(), last) {
		return
	}
	w.write(ctx, s, state)
}

// former finds out about the last job, where the policy asks for it.
func (s *Scheduler) former(ctx context.Context, p *plan, state *State) (former, error) {
	if state.LastJob == "" || p.Overlap != OverlapSkip && p.Overlap != OverlapCancel {
		return former{}, nil
	}
	j, err := s.broker.Job(ctx, state.LastJob)
	switch {
	case forebay.CodeOf(err) == forebay.CodeNotFound:
		return former{}, nil // it has finished, and is no longer kept
	case err != nil || j.State.Final():
		return former{}, err
	}
	return former{state.LastJob, string(j.State)}, nil
}

// write stores a state, if the document is still as it was read.
func (w *work) write(ctx context.Context, s *Scheduler, state State) {
	st := stored{Definition: w.plan.Definition, State: state}
	d, err := st.document(w.rev)
	if err == nil {
		d, err = s.broker.PutDocument(ctx, d)
	}
	switch {
	case err == nil:
		w.rev, w.state = d.Rev, state
		s.store(d)
	case forebay.CodeOf(err) == forebay.CodeConflict && d.Rev == 0:
		s.gone(w.name)
		w.state.Pending = nil
	case forebay.CodeOf(err) == forebay.CodeConflict: // somebody else was here
		s.store(d)
		w.state.Pending = nil
	default:
		w.err = err
	}
}

// confirm notes what was sent. It does so over changes that others made meanwhile.
func (s *Scheduler) confirm(ctx context.Context, w *work) {
	if len(w.outcomes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := s.changeOne(ctx, w.name, func(st *stored) error {
		for _, o := range w.outcomes {
			st.State.note(o, s.now())
		}
		return nil
	})
	if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
		w.err = cmp.Or(w.err, err)
	}
}

// note takes a job from what is pending.
func (s *State) note(o sent, now time.Time) {
	i := slices.IndexFunc(s.Pending, func(p Pending) bool { return p.Job == o.Job })
	if i < 0 {
		return // another process has noted it
	}
	s.Pending = slices.Delete(slices.Clone(s.Pending), i, i+1)
	if o.Tick.IsZero() {
		return
	}
	out := &Outcome{Tick: o.Tick, At: now, Job: o.Job, Code: o.code, Reason: cut(o.reason)}
	if o.code != "" {
		out.Job = ""
		s.Count--
		s.Skipped++
		s.Skip = out
	}
	if s.Last == nil || !s.Last.Tick.After(o.Tick) {
		s.Last = out
	}
}

func cut(reason string) string { return reason[:min(len(reason), forebay.MaxTextBytes)] }

// finish says when there is something to do again for a schedule.
func (s *Scheduler) finish(w *work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[w.name]
	if e == nil {
		return
	}
	if w.err == nil {
		e.trouble = ""
		s.plan(e)
		if soon := s.now().Add(firstRetry); e.rev == w.began && !e.next.IsZero() && e.next.Before(soon) {
			e.next = soon // nothing was changed: the clock was put back just now
			s.queue.fix(e)
		}
		return
	}
	if e.trouble == "" {
		s.log.Warn("schedule: a tick cannot be seen to; it is tried again", "schedule", w.name, "error", w.err)
	}
	e.trouble = w.err.Error()
	e.mine = true
	e.retry = min(max(2*e.retry, firstRetry), lastRetry)
	e.next = s.now().Add(e.retry)
	s.queue.fix(e)
}
