package runner

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
)

// carryOut does what a decision asks for. What can be seen at once, such as a job
// that was cancelled before it ran or one that cannot be sent, is decided about at
// once, which may ask for more.
func (r *Runner) carryOut(ctx context.Context, s *state, v *version, e *flow.Effects) error {
	todo := *e
	for {
		events, err := r.stop(ctx, &todo)
		if err != nil {
			return err
		}
		refused, err := r.send(ctx, s, v, todo.Send)
		if err != nil {
			return err
		}
		if events = append(events, refused...); len(events) == 0 {
			return nil
		}
		input, err := r.input(ctx, s.ID)
		if err != nil {
			return err
		}
		todo = v.plan.Advance(s.Run, input, events...)
		e.Reopened = e.Reopened || todo.Reopened
	}
}

// stop ends jobs and sub-flows, and tells which of them have ended by that.
func (r *Runner) stop(ctx context.Context, e *flow.Effects) (events []flow.Event, err error) {
	cancel := e.Cancel
	for _, id := range e.CancelRuns {
		if _, err := r.b.Document(ctx, collectionRun, id); missing(err) { // not begun: its job is all there is
			cancel = append(cancel, id)
			continue
		} else if err != nil {
			return nil, err
		}
		if err := r.command(ctx, id, flow.Command{Do: flow.DoCancel, Reason: "the flow that ran it goes on without it"}); err != nil {
			return nil, err
		}
	}
	if len(cancel) > 0 {
		results, err := r.b.Cancel(ctx, cancel, "its flow goes on without it")
		if err != nil {
			return nil, err
		}
		for i, res := range results {
			switch {
			case res.Err != nil && forebay.CodeOf(res.Err) == forebay.CodeConflict: // it has ended, and tells so
			case res.Err != nil && !missing(res.Err):
				return nil, res.Err
			case res.State == forebay.StateCancelled || missing(res.Err):
				events = append(events, cancelled(cancel[i]))
			}
		}
	}
	if len(e.Drop) > 0 { // a dead letter that nobody needs any more; it may be gone
		if _, err := r.b.Remove(ctx, e.Drop); err != nil {
			return nil, err
		}
	}
	return events, nil
}

func cancelled(id string) flow.Event {
	_, step, round, item, undo, _ := flow.ParseJobID(id)
	return flow.Event{Step: step, Round: round, Item: item, Undo: undo, Type: flow.EventCancelled,
		Error: &flow.Failure{Code: flow.FailCancelled, Message: "cancelled before it ran"}}
}

// send sends jobs. Those that cannot be sent fail.
func (r *Runner) send(ctx context.Context, s *state, v *version, sends []flow.Send) (failed []flow.Event, err error) {
	now := r.cfg.Now()
	var msgs []forebay.Message
	var of []*flow.Send
	for i := range sends {
		d := &sends[i]
		if bad := r.prepare(ctx, s, v, d, now); bad != nil {
			if code := forebay.CodeOf(bad); code != forebay.CodeNotFound && code != forebay.CodeInvalid && code != forebay.CodeConflict {
				return nil, bad
			}
			failed = append(failed, unsent(d, bad))
			continue
		}
		msgs, of = append(msgs, r.message(s, v, d, now)), append(of, d)
	}
	if len(msgs) == 0 {
		return failed, nil
	}
	results, err := r.b.Send(ctx, msgs)
	if err != nil {
		return nil, err
	}
	for i, res := range results {
		switch code := forebay.CodeOf(res.Err); {
		case code == forebay.CodeInvalid || code == forebay.CodeTooLarge || code == forebay.CodeUnsupported: // such as a queue that keeps no jobs
			failed = append(failed, unsent(of[i], res.Err))
		case res.Err != nil:
			return nil, res.Err
		case of[i].Kind == flow.KindEmit:
			if _, err := r.Event(ctx, of[i].Use, of[i].Payload); err != nil {
				return nil, err
			}
		}
	}
	return failed, nil
}

func unsent(d *flow.Send, err error) flow.Event {
	return flow.Event{Step: d.Step, Round: d.Round, Item: d.Item, Undo: d.Undo, Type: flow.EventFailed,
		Error: &flow.Failure{Code: flow.FailUnsent, Message: forebay.TextOf(err)}}
}

// prepare does what has to be done before a job may be sent.
func (r *Runner) prepare(ctx context.Context, s *state, v *version, d *flow.Send, now time.Time) error {
	switch d.Kind {
	case flow.KindFlow:
		number, err := r.released(ctx, d.Use, d.Version)
		if err != nil {
			return err
		}
		sub, err := r.version(ctx, d.Use, number)
		if err != nil {
			return err
		}
		d.Version = number
		if err := r.itself(ctx, s, d.Use); err != nil {
			return err
		}
		return sub.checkInput(d.Payload)
	case flow.KindWait:
		step, _ := v.plan.Step(d.Step)
		if step.Wait.Event == "" {
			return nil
		}
		_, err := r.b.PutDocument(ctx, engine.Document{
			Collection: collectionWait, Key: waitKey(step.Wait.Event, d.ID), Rev: engine.AnyRev,
			Value: []byte(`{}`), Expires: now.Add(d.Delay + time.Hour),
		})
		return err
	}
	return nil
}

// itself refuses a sub-flow of which the run is one already, at whatever depth: it would run itself
// without an end, with a for_each many times at each depth. A plan sees that of its own name only.
func (r *Runner) itself(ctx context.Context, s *state, name string) error {
	way := s.Flow
	for id := s.ID; ; {
		above, _, _, _, _, ok := flow.ParseJobID(id)
		if !ok {
			return nil
		}
		up, _, _, err := r.load(ctx, above)
		if missing(err) { // it was removed
			return nil
		}
		if err != nil {
			return err
		}
		way = up.Flow + " runs " + way
		if up.Flow == name {
			return forebay.Errorf(forebay.CodeInvalid, "runner: sub-flow", "the flow %s would run itself without an end: %s runs %s", name, way, name)
		}
		id = above
	}
}

// unwait forgets who waits for an event that has come. What is left expires.
func (r *Runner) unwait(ctx context.Context, s *state, v *version, told []advance) {
	var events []flow.Event
	for _, a := range told {
		events = append(events, a.Events...)
	}
	for _, e := range events {
		if step, ok := v.plan.Step(e.Step); ok && step.Wait.Event != "" {
			key := waitKey(step.Wait.Event, flow.JobID(s.ID, e.Step, e.Round, flow.NoItem, false))
			if err := r.b.DeleteDocument(ctx, collectionWait, key, engine.AnyRev); err != nil && !missing(err) {
				r.log.Debug("a wait that is over could not be forgotten", "run", s.ID, "step", e.Step, "error", err)
			}
		}
	}
}

// wake hands the jobs of runs that are over out, so that they end too.
func (r *Runner) wake(ctx context.Context, runs []string, over []bool, fail func(run string, err error)) {
	now := r.cfg.Now()
	var changes []engine.JobChange
	for i, run := range runs {
		if over[i] {
			changes = append(changes, engine.JobChange{ID: run, Due: &now})
		}
	}
	if len(changes) == 0 {
		return
	}
	errs, err := r.b.Change(ctx, changes)
	for i, c := range changes {
		one := err
		if err == nil {
			one = errs[i]
		}
		switch forebay.CodeOf(one) {
		case forebay.CodeNotFound:
			one = nil
		case forebay.CodeConflict:
			one = r.awake(ctx, c.ID)
		}
		if one != nil {
			fail(c.ID, one)
		}
	}
}

// awake is for a run whose job is with somebody already: to look after it, or with its
// verdict.
func (r *Runner) awake(ctx context.Context, run string) error {
	j, err := r.b.Job(ctx, run)
	if missing(err) || err == nil && j.State.Final() {
		return nil
	}
	if err != nil {
		return err
	}
	return forebay.Snooze(50 * time.Millisecond)
}

// revive brings the job of a run that had failed back, for the run goes on.
func (r *Runner) revive(ctx context.Context, s *state) error {
	j, err := r.b.Job(ctx, s.ID)
	if missing(err) || err == nil && j.State != forebay.StateDead {
		return nil
	}
	if err != nil {
		return err
	}
	errs, err := r.b.Replay(ctx, []int64{j.DeadSeq})
	if err == nil && !missing(errs[0]) {
		err = errs[0]
	}
	return err
}
