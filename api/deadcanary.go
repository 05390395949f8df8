package api

import (
	"context"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

const canaryLook = 500 * time.Millisecond

// canary sends the first, waits for their verdicts, and stops the action if too many
// are lost.
func (r *deadRun) canary(ctx context.Context) error {
	c := r.s.Canary
	for c.Sent < c.Count {
		seqs, err := r.next(ctx, min(c.Count-c.Sent, stepMost))
		if err != nil {
			return err
		}
		if len(seqs) == 0 {
			break
		}
		if err := r.sendCanary(ctx, seqs); err != nil {
			return err
		}
	}
	late := time.NewTimer(time.Duration(c.Timeout))
	defer late.Stop()
	look := time.NewTicker(canaryLook)
	defer look.Stop()
	for {
		if err := r.look(ctx); err != nil {
			return err
		}
		r.tell()
		switch {
		case c.Lost > c.MaxFailed:
			return r.judge(ctx, "lost")
		case len(r.s.Trial) == 0:
			return r.judge(ctx, "passed")
		}
		select {
		case <-look.C:
		case <-late.C:
			for _, it := range r.s.Trial {
				c.Failures = append(c.Failures, CanaryEnd{it.ID, "timeout", "no verdict within " + time.Duration(c.Timeout).String()})
			}
			return r.judge(ctx, "timeout")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendCanary sends some. Under which ids is noted before, for who goes on after a crash.
func (r *deadRun) sendCanary(ctx context.Context, seqs []int64) error {
	for _, seq := range seqs {
		d, err := r.b.DeadLetter(ctx, seq)
		if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
			return err
		}
		r.s.Trial = append(r.s.Trial, canaryItem{seq, broker.ReplayID(&d), d.Message.Job != nil})
		r.s.Canary.Sent++
	}
	return r.act(ctx, seqs)
}

// unsend takes out what could not be sent.
func (s *deadState) unsend(seq int64) {
	n := len(s.Trial)
	s.Trial = slices.DeleteFunc(s.Trial, func(it canaryItem) bool { return it.Seq == seq })
	if s.Canary != nil {
		s.Canary.Sent -= n - len(s.Trial)
	}
}

// judge ends the canary. If it has not passed, what is left stays as it is.
func (r *deadRun) judge(ctx context.Context, verdict string) error {
	r.s.Canary.Verdict, r.s.Trial = verdict, nil
	if verdict != "passed" {
		r.s.State, r.s.EndedAt = DeadStopped, time.Now()
	}
	return r.save(ctx)
}

// look asks for the verdicts that are not known yet.
func (r *deadRun) look(ctx context.Context) error {
	var open []canaryItem
	for _, it := range r.s.Trial {
		done, why, err := r.verdict(ctx, it)
		switch {
		case err != nil:
			return err
		case !done:
			open = append(open, it)
		case why == nil:
			r.s.Canary.Passed++
		default:
			r.s.Canary.Lost++
			r.s.Canary.Failures = append(r.s.Canary.Failures, CanaryEnd{it.ID, why.Code, why.Message})
		}
	}
	r.s.Trial = open
	return nil
}

// verdict tells whether one has a verdict, and why it is lost. A first failed attempt
// is one: the cause is not mended.
func (r *deadRun) verdict(ctx context.Context, it canaryItem) (done bool, why *forebay.Cause, err error) {
	if !it.Job {
		return r.messageVerdict(ctx, it)
	}
	j, err := r.b.Job(ctx, it.ID)
	switch {
	case forebay.CodeOf(err) == forebay.CodeNotFound:
		return true, nil, nil // its queue keeps no finished jobs; a dead one would be there
	case err != nil:
		return false, nil, err
	case j.State == forebay.StateCompleted:
		return true, nil, nil
	case j.State.Final():
		return true, &j.Cause, nil
	case len(j.Failures) > 0:
		return true, &j.Failures[len(j.Failures)-1], nil
	}
	return false, nil, nil
}

func (r *deadRun) messageVerdict(ctx context.Context, it canaryItem) (done bool, why *forebay.Cause, err error) {
	l, err := r.b.Locate(ctx, it.ID)
	if err != nil {
		return false, nil, err
	}
	why = l.Last
	if why == nil {
		why = &forebay.Cause{Code: "failed", Message: "it failed"}
	}
	switch {
	case l.Where == engine.WhereDead || l.Attempts > 0:
		return true, why, nil
	case l.Where == engine.WhereDone, l.Where == engine.WhereUnknown, l.Where == engine.WhereGone:
		return true, nil, nil
	}
	return false, nil, nil
}
