package runner

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/flow"
)

// ends are what happens to jobs without their handler's verdict.
var ends = []forebay.HistoryType{forebay.HistoryDead, forebay.HistoryCancelled, forebay.HistoryExpired, forebay.HistoryDiscarded}

// Run hears of jobs that end without a verdict of their handlers, and tells their
// runs, until ctx ends. It needs the broker's watcher to run. What it misses, each run
// finds by itself, later.
func (r *Runner) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		s := r.b.Watcher().Subscribe(broker.WatchFilter{Types: ends})
		r.hear(ctx, s)
		s.Close()
		pause(ctx, time.Second)
	}
	return nil
}

func (r *Runner) hear(ctx context.Context, s *broker.Subscription) {
	for {
		select {
		case e, ok := <-s.C:
			if !ok {
				return
			}
			if err := r.heard(ctx, &e); err != nil && ctx.Err() == nil {
				r.log.Warn("the end of a job could not be told to its run, which will find it", "job", e.Job, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *Runner) heard(ctx context.Context, h *forebay.HistoryEvent) error {
	if h.Kind == KindRun && h.Type == forebay.HistoryCancelled {
		if err := r.stopRun(ctx, h); err != nil {
			return err
		}
	}
	run, step, round, item, undo, ok := flow.ParseJobID(h.Job)
	if !ok {
		return nil
	}
	if there, err := r.there(ctx, run); err != nil || !there {
		return err // another's job, with such an id
	}
	e := &flow.Event{Step: step, Round: round, Item: item, Undo: undo, Type: flow.EventFailed}
	if h.Type == forebay.HistoryDiscarded {
		text := "its dead letter was discarded"
		if h.Text != "" {
			text += ": " + h.Text
		}
		e.Error = &flow.Failure{Code: flow.FailDiscarded, Message: text}
	} else {
		j, err := r.b.Job(ctx, h.Job)
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if e = ended(&j); e == nil {
			return nil
		}
	}
	return r.tell(ctx, run, advance{Events: []flow.Event{*e}})
}

// stopRun is for a run whose job was cancelled as a job, behind the run's back.
func (r *Runner) stopRun(ctx context.Context, h *forebay.HistoryEvent) error {
	s, _, _, err := r.load(ctx, h.Job)
	if err == nil && s.State.Final() {
		return nil
	}
	if err != nil && !missing(err) {
		return err
	}
	reason := h.Text
	if reason == "" && h.Cause != nil {
		reason = h.Cause.Message
	}
	return r.command(ctx, h.Job, flow.Command{Do: flow.DoCancel, Reason: reason})
}

// there tells whether there is a run of an id.
func (r *Runner) there(ctx context.Context, run string) (bool, error) {
	_, err := r.b.Document(ctx, collectionRun, run)
	if !missing(err) {
		return err == nil, err
	}
	j, err := r.b.Job(ctx, run)
	if missing(err) {
		return false, nil
	}
	return err == nil && j.Kind == KindRun, err
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
