package runner

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
)

// A run of which one job at a time is on its way needs no document: all that is known
// of it follows from the ledger. While it is so, and this process alone works on the
// store (Config.Alone), its state is kept in memory, and the verdict of a step carries
// the next step itself. As soon as more is wanted, a fan-out, a wait, a failure, the
// end, the verdict carries an advance, and the state so far is stored then. What memory
// has lost is found in the ledger (recover).

// chained is a run whose one job is on its way.
type chained struct {
	*state
	v     *version
	input *flow.Input
}

const maxChained = 20_000 // in memory, of each sort; others go the longer way

// beginChain makes the first step of a run, where it is one alone.
func (r *Runner) beginChain(run string, v *version, input []byte, now time.Time) (*chained, *forebay.Message) {
	if !r.cfg.Alone {
		return nil, nil
	}
	c := &chained{&state{Run: v.plan.Begin(run, now)}, v, flow.NewInput(input)}
	next := r.onlyNext(c, v.plan.Advance(c.Run, c.input), now)
	return c, next
}

// onlyNext is the one job that a decision asks for; nil: it asks for more, or less.
func (r *Runner) onlyNext(c *chained, e flow.Effects, now time.Time) *forebay.Message {
	if len(e.Send) != 1 || len(e.Cancel)+len(e.CancelRuns)+len(e.Drop) > 0 || c.State != flow.RunRunning {
		return nil
	}
	d := &e.Send[0]
	if d.Kind != flow.KindJob && d.Kind != flow.KindDelay || d.Item >= 0 {
		return nil
	}
	if ids := c.v.plan.InFlight(c.Run); len(ids) != 1 || ids[0] != d.ID {
		return nil
	}
	m := r.message(c.state, c.v, d, now)
	if engine.CheckMessage(&m, now) != nil { // the longer way says what is wrong
		return nil
	}
	return &m
}

func (r *Runner) remember(c *chained) {
	r.mu.Lock()
	defer r.mu.Unlock()
	put(r.chains, c.ID, c)
}

// take forgets a chained run; nil: it is not known as one.
func (r *Runner) take(run string) *chained {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.chains[run]
	delete(r.chains, run)
	return c
}

// chain lets the next step ride with the verdict of a step; false: an advance is
// needed. It finds the state from before in memory, or else in the ledger.
func (r *Runner) chain(j *forebay.Delivery, run string, e flow.Event, s *forebay.Settlement) bool {
	c := r.take(run)
	if c == nil {
		return false
	}
	ids := c.v.plan.InFlight(c.Run)
	if len(ids) != 1 || ids[0] != j.ID { // it went on otherwise
		return false
	}
	before := chained{&state{Run: copied(c.Run)}, c.v, c.input}
	if e.Type == flow.EventCompleted {
		if next := r.onlyNext(c, c.v.plan.Advance(c.Run, c.input, e), r.cfg.Now()); next != nil {
			s.Next = append(s.Next[:len(s.Next):len(s.Next)], *next)
			r.remember(c)
			return true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	put(r.left, run, &before)
	return false
}

// copied is a run whose steps can be changed without changing r's. What is in a step
// is not changed but replaced.
func copied(r *flow.Run) *flow.Run {
	c := *r
	c.Steps = make(map[string]*flow.StepRun, len(r.Steps))
	for id, one := range r.Steps {
		s := *one
		c.Steps[id] = &s
	}
	return &c
}

// put keeps something in a map in memory, which has a bound.
func put(m map[string]*chained, run string, c *chained) {
	if len(m) >= maxChained {
		clear(m)
	}
	m[run] = c
}

// leave gives the state of a run that has left its chain, once; nil: it is not known.
func (r *Runner) leave(run string) *chained {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.left[run]
	delete(r.left, run)
	return c
}

// keepEnd keeps the state of a run that has ended until its job is handed out. Who
// decides anew about the run takes it back.
func (r *Runner) keepEnd(s *state, v *version) {
	if !r.cfg.Alone { // others may decide about it
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	put(r.ended, s.ID, &chained{s, v, nil})
}

func (r *Runner) takeEnd(run string) *chained {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.ended[run]
	delete(r.ended, run)
	return c
}

// recover makes the state of a run from the ledger: it decides as if from the start,
// with the ends of jobs as they are found there.
func (r *Runner) recover(ctx context.Context, s *state, v *version, input *flow.Input) (flow.Effects, error) {
	all := v.plan.Advance(s.Run, input)
	for {
		var events []flow.Event
		for _, id := range v.plan.InFlight(s.Run) {
			j, err := r.b.Job(ctx, id)
			if missing(err) {
				continue
			}
			if err != nil {
				return all, err
			}
			if e := ended(&j); e != nil && !v.waitsForDead(s, e) {
				events = append(events, *e)
			}
		}
		if len(events) == 0 {
			return all, nil
		}
		more := v.plan.Advance(s.Run, input, events...)
		all.Send = append(all.Send, more.Send...)
		all.Cancel = append(all.Cancel, more.Cancel...)
		all.CancelRuns = append(all.CancelRuns, more.CancelRuns...)
		all.Drop = append(all.Drop, more.Drop...)
	}
}
