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
// end, the verdict carries an advance with the state so far, which is stored then. What
// memory has lost is found in the ledger (recover).

// chained is a run whose one job is on its way.
type chained struct {
	*state
	v     *version
	input *flow.Input
}

const maxChained = 20_000 // in memory; others go the longer way

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
	if len(r.chains) >= maxChained {
		clear(r.chains)
	}
	r.chains[c.ID] = c
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
// needed, which is told the state from before, if that is known.
func (r *Runner) chain(j *forebay.Delivery, run string, e flow.Event, s *forebay.Settlement) (before *flow.Run, ok bool) {
	c := r.take(run)
	if c == nil {
		return nil, false
	}
	ids := c.v.plan.InFlight(c.Run)
	if len(ids) != 1 || ids[0] != j.ID { // it went on otherwise
		return nil, false
	}
	r.mu.Lock()
	r.inputs[run] = c.input // whoever decides next needs it
	r.mu.Unlock()
	snapshot := *c.Run
	snapshot.Steps = make(map[string]*flow.StepRun, len(c.Steps))
	for id, one := range c.Steps {
		copied := *one
		snapshot.Steps[id] = &copied
	}
	if e.Type != flow.EventCompleted {
		return &snapshot, false
	}
	next := r.onlyNext(c, c.v.plan.Advance(c.Run, c.input, e), r.cfg.Now())
	if next == nil {
		return &snapshot, false
	}
	s.Next = append(s.Next[:len(s.Next):len(s.Next)], *next)
	r.forgetInput(run) // the chain has it
	r.remember(c)
	return nil, true
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
