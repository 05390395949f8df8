package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

// flowOf tells of which version of which flow a run's job is.
func flowOf(m *forebay.Message) (name string, number int) {
	number, _ = strconv.Atoi(m.Headers[HeaderVersion])
	return m.Headers[HeaderFlow], number
}

// parentOf tells whose sub-flow a run's job is; nil: nobody's.
func parentOf(m *forebay.Message) *parent {
	var p parent
	if text := m.Headers[headerParent]; text == "" || json.Unmarshal([]byte(text), &p) != nil {
		return nil
	}
	return &p
}

func parentEvent(m *forebay.Message) *flow.Event {
	p := parentOf(m)
	if p == nil {
		return nil
	}
	return &flow.Event{Step: p.Step, Round: p.Round, Item: p.Item}
}

// soon is when a run is looked at again whose state was not there.
const soon = 5 * time.Second

// handleRun is called when a run begins, now and then, and when it has ended.
func (r *Runner) handleRun(ctx context.Context, j *worker.Job) ([]byte, error) {
	if c := r.takeEnd(j.ID); c != nil {
		return r.verdict(ctx, j, c.state)
	}
	s, v, input, err := r.load(ctx, j.ID)
	if missing(err) {
		return nil, r.look(j, advance{Begin: true}, min(r.cfg.Watch, soon))
	}
	if err != nil {
		return nil, err
	}
	if s.State.Final() {
		return r.verdict(ctx, j, s)
	}
	age := r.cfg.Now().Sub(s.Started)
	again := min(max(r.cfg.Watch, age/4), watchMost)
	if limit := v.plan.Timeout; limit > 0 {
		if age >= limit {
			return nil, r.look(j, advance{Command: &flow.Command{Do: flow.DoExpire}}, r.cfg.Watch)
		}
		again = min(again, limit-age)
	}
	a, err := r.compare(ctx, s, v, input)
	if err != nil {
		return nil, err
	}
	return nil, r.look(j, a, again)
}

// look lets advances ride with the release of a run's job.
func (r *Runner) look(j *worker.Job, a advance, again time.Duration) error {
	var next []forebay.Message
	for _, one := range []advance{{Begin: a.Begin, Command: a.Command, Events: a.Events}, {Lost: a.Lost}} {
		if !one.Begin && one.Command == nil && len(one.Events) == 0 && len(one.Lost) == 0 {
			continue
		}
		m, err := r.advanceMessage(j.ID, one)
		if err != nil {
			return err
		}
		next = append(next, m)
	}
	j.Follow(func(s forebay.Settlement) forebay.Settlement {
		if s.Verdict == forebay.Release {
			s.Next = next
		}
		return s
	})
	return forebay.Snooze(again)
}

// compare looks in the ledger how the jobs are that a run waits for.
func (r *Runner) compare(ctx context.Context, s *state, v *version, _ *flow.Input) (a advance, err error) {
	size := 0
	for _, id := range v.plan.InFlight(s.Run) {
		j, err := r.b.Job(ctx, id)
		if missing(err) {
			at, err := r.b.Locate(ctx, id)
			switch {
			case err != nil && forebay.CodeOf(err) != forebay.CodeUnsupported:
				return a, err
			case at.Where == engine.WhereDone: // its record has left by retention
				_, step, round, item, undo, _ := flow.ParseJobID(id)
				a.Events = append(a.Events, flow.Event{Step: step, Round: round, Item: item, Undo: undo, Type: flow.EventCompleted})
			default:
				a.Lost = append(a.Lost, id)
			}
			continue
		}
		if err != nil {
			return a, err
		}
		e := ended(&j)
		if e == nil || v.waitsForDead(s, e) {
			continue
		}
		if size += len(e.Output); size > forebay.MaxPayloadBytes/2 {
			break // the rest next time
		}
		a.Events = append(a.Events, *e)
	}
	return a, nil
}

// waitsForDead tells whether a run knows of a dead letter, and waits for it.
func (v *version) waitsForDead(s *state, e *flow.Event) bool {
	return e.Type == flow.EventFailed && e.Item < 0 && s.Steps[e.Step] != nil && s.Steps[e.Step].State == flow.StepDead
}

// verdict ends the job of a run that has ended, and tells whoever ran it.
func (r *Runner) verdict(ctx context.Context, j *worker.Job, s *state) ([]byte, error) {
	r.forgetInput(s.ID)
	p, alerted := parentOf(&j.Message), s.State == flow.RunFailed && r.alerted(ctx, s)
	j.Follow(func(set forebay.Settlement) forebay.Settlement {
		if alerted {
			set.Next = nil // one failure is one alert
		}
		if p == nil {
			return set
		}
		return r.follow(&j.Delivery, p.Run, *parentEvent(&j.Message), set)
	})
	if s.State == flow.RunCompleted {
		return s.Output, nil
	}
	why := s.Failure
	if why == nil {
		why = &flow.Failure{Code: flow.FailStuck, Message: "it has failed"}
	}
	if s.State == flow.RunCancelled {
		return nil, forebay.Cancel(why.Message)
	}
	cause := forebay.Cause{Code: why.Code}
	text := why.Message
	if why.Step != "" {
		cause.Detail = map[string]string{"step": why.Step}
		text = "the step " + why.Step + ": " + text
	}
	return nil, forebay.Permanent(forebay.Because(cause, errors.New(text)))
}
