package schedule

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// maxTries bounds one change, while others change the same schedule.
const maxTries = 32

// Schedule is a definition, what it has done and what it will do.
type Schedule struct {
	Definition
	State
	Rev     int64
	Next    time.Time // the next tick; zero: there is none
	Trouble string    // why it does not do what it should; empty: it does
}

// Get shows a schedule; CodeNotFound: there is none.
func (s *Scheduler) Get(ctx context.Context, name string) (Schedule, error) {
	if err := CheckName(name); err != nil {
		return Schedule{}, err
	}
	d, err := s.broker.Document(ctx, collection, name)
	if err != nil {
		return Schedule{}, missing(name, err)
	}
	return s.show(d), nil
}

func missing(name string, err error) error {
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return forebay.Errorf(forebay.CodeNotFound, "", "there is no schedule %q", name)
	}
	return err
}

// List shows schedules by name, those after one, at most limit (1 to
// engine.MaxDocuments). The end is where none comes.
func (s *Scheduler) List(ctx context.Context, after string, limit int) ([]Schedule, error) {
	docs, err := s.broker.Documents(ctx, collection, after, limit)
	if err != nil {
		return nil, err
	}
	list := make([]Schedule, len(docs))
	for i, d := range docs {
		list[i] = s.show(d)
	}
	return list, nil
}

func (s *Scheduler) show(d engine.Document) Schedule {
	st, err := decode(d)
	v := Schedule{Definition: st.Definition, State: st.State, Rev: d.Rev}
	v.Name = d.Key
	var p *plan
	if err == nil {
		p, err = s.zones.plan(st.Definition, st.State.Since)
	}
	if err != nil {
		v.Trouble = err.Error()
		return v
	}
	v.Next = p.tickAfter(&st.State)
	s.mu.Lock()
	if e := s.entries[d.Key]; e != nil {
		v.Trouble = e.trouble
	}
	s.mu.Unlock()
	if ahead := st.State.After.Sub(s.now()); v.Trouble == "" && ahead > OnTime {
		v.Trouble = "ticks up to " + st.State.After.UTC().Format(time.RFC3339) +
			" are done with: the clock was ahead, and it goes on from there; to begin anew, delete it and add it again"
	}
	return v
}

// Put stores a definition. rev is that of the schedule it replaces, 0 where there
// must be none, engine.AnyRev whatever there is; else CodeConflict. What a schedule
// has done is kept. If its times change, they hold from now on. It tells whether the
// schedule is new.
func (s *Scheduler) Put(ctx context.Context, d Definition, rev int64) (v Schedule, created bool, err error) {
	now := s.now()
	if err := s.Check(d); err != nil {
		return Schedule{}, false, err
	}
	v, err = s.changeAny(ctx, d.Name, rev, func(st *stored, exists bool) error {
		created = !exists
		if !exists {
			st.State = State{Since: now, After: now}
			return s.room(d.Name)
		}
		if !d.sameTimes(&st.Definition) || st.Definition.Paused && !d.Paused {
			st.State.goOnFrom(now)
		}
		return nil
	}, &d)
	return v, created, err
}

// room refuses one schedule too many, as far as this process knows.
func (s *Scheduler) room(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[name] == nil && len(s.entries) >= MaxSchedules {
		return forebay.Errorf(forebay.CodeFull, "", "there are %d schedules, the most that is allowed", MaxSchedules)
	}
	return nil
}

// goOnFrom lets no tick before a time happen any more.
func (s *State) goOnFrom(now time.Time) {
	if s.After.Before(now) {
		s.After = now
	}
}

// Check finds what is wrong with a definition.
func (s *Scheduler) Check(d Definition) error {
	now := s.now()
	if err := d.check(now); err != nil {
		return err
	}
	p, err := s.zones.plan(d, now)
	if err != nil {
		return err
	}
	if d.Cron != "" && p.ticks.next(now).IsZero() {
		return wrong("cron", "the cron text %q names no day that comes in the next five years", d.Cron)
	}
	return nil
}

// Preview lists the next ticks of a definition that need not be stored, 1 to
// MaxPreview of them.
func (s *Scheduler) Preview(d Definition, n int) ([]time.Time, error) {
	if n < 1 || n > MaxPreview {
		return nil, wrong("n", "n is %d; 1 to %d are allowed", n, MaxPreview)
	}
	if err := d.checkTimes(); err != nil {
		return nil, err
	}
	now := s.now()
	p, err := s.zones.plan(d, now)
	if err != nil {
		return nil, err
	}
	return p.preview(now, n), nil
}

// PreviewOf lists the next ticks of a stored schedule as if it were not paused.
func (s *Scheduler) PreviewOf(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 1 || n > MaxPreview {
		return nil, wrong("n", "n is %d; 1 to %d are allowed", n, MaxPreview)
	}
	v, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	p, err := s.zones.plan(v.Definition, v.Since)
	if err != nil {
		return nil, err
	}
	v.State.goOnFrom(s.now())
	if left := p.Limit - v.Count; p.Limit > 0 {
		n = int(min(int64(n), max(0, left)))
	}
	return p.preview(v.After, n), nil
}

// Delete removes a schedule; its jobs stay. rev as for Put, but not 0.
func (s *Scheduler) Delete(ctx context.Context, name string, rev int64) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := s.broker.DeleteDocument(ctx, collection, name, rev); err != nil {
		return missing(name, err)
	}
	s.gone(name)
	return nil
}

// Pause lets no tick happen until Resume. Those that pass meanwhile are not missed.
func (s *Scheduler) Pause(ctx context.Context, name string) (Schedule, error) {
	return s.changeOne(ctx, name, func(st *stored) error {
		st.Definition.Paused = true
		return nil
	})
}

// Resume undoes Pause, from now on.
func (s *Scheduler) Resume(ctx context.Context, name string) (Schedule, error) {
	return s.changeOne(ctx, name, func(st *stored) error {
		if st.Definition.Paused {
			st.Definition.Paused = false
			st.State.goOnFrom(s.now())
		}
		return nil
	})
}

// changeOne changes a schedule that must be there.
func (s *Scheduler) changeOne(ctx context.Context, name string, f func(*stored) error) (Schedule, error) {
	if err := CheckName(name); err != nil {
		return Schedule{}, err
	}
	return s.changeAny(ctx, name, engine.AnyRev, func(st *stored, exists bool) error {
		if !exists {
			return forebay.Errorf(forebay.CodeNotFound, "", "there is no schedule %q", name)
		}
		return f(st)
	}, nil)
}

// changeAny stores what f makes of a schedule, again and again until nobody else was
// faster. With a definition, that replaces the stored one after f has seen it.
func (s *Scheduler) changeAny(ctx context.Context, name string, rev int64, f func(st *stored, exists bool) error, d *Definition) (Schedule, error) {
	for range maxTries {
		doc, err := s.broker.Document(ctx, collection, name)
		var st stored
		switch {
		case forebay.CodeOf(err) == forebay.CodeNotFound:
			doc = engine.Document{}
		case err != nil:
			return Schedule{}, err
		default:
			if st, err = decode(doc); err != nil {
				return Schedule{}, err
			}
		}
		if rev != engine.AnyRev && rev != doc.Rev {
			return Schedule{}, otherRev(name, rev, doc.Rev)
		}
		if err := f(&st, doc.Rev != 0); err != nil {
			return Schedule{}, err
		}
		if d != nil {
			st.Definition = *d
		}
		put, err := st.document(doc.Rev)
		if err == nil {
			put, err = s.broker.PutDocument(ctx, put)
		}
		if forebay.CodeOf(err) == forebay.CodeConflict {
			continue
		}
		if err != nil {
			return Schedule{}, err
		}
		s.store(put)
		s.wakeUp()
		return s.show(put), nil
	}
	return Schedule{}, forebay.Errorf(forebay.CodeConflict, "", "the schedule %q was changed by others again and again", name)
}

func otherRev(name string, want, have int64) error {
	switch {
	case want == 0:
		return forebay.Errorf(forebay.CodeConflict, "", "there is a schedule %q already", name)
	case have == 0:
		return forebay.Errorf(forebay.CodeNotFound, "", "there is no schedule %q", name)
	}
	return forebay.Errorf(forebay.CodeConflict, "", "the schedule %q has revision %d, not %d: somebody has changed it", name, have, want)
}
