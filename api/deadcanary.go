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
// are lost, or if it cannot be told what became of one. However often it is taken up
// again, it has one time to end by.
func (r *deadRun) canary(ctx context.Context) error {
	c := r.s.Canary
	if c.Until.IsZero() {
		c.Until = time.Now().Add(time.Duration(c.Timeout))
	}
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
	late := time.NewTimer(time.Until(c.Until))
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
		case c.Unknown > 0:
			return r.judge(ctx, "unknown")
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
		r.s.Trial = append(r.s.Trial, canaryItem{seq, broker.ReplayID(&d, r.s.Into != ""), d.Message.Job != nil})
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
	c := r.s.Canary
	var open []canaryItem
	for _, it := range r.s.Trial {
		is, why, err := r.verdict(ctx, it)
		if err != nil {
			return err
		}
		switch is {
		case canaryOpen:
			open = append(open, it)
		case canaryPassed:
			c.Passed++
		case canaryLost:
			c.Lost++
		case canaryUnknown:
			c.Unknown++
		}
		if is == canaryLost || is == canaryUnknown {
			c.Failures = append(c.Failures, CanaryEnd{it.ID, why.Code, why.Message})
		}
	}
	r.s.Trial = open
	return nil
}

// canaryIs is what is known of one.
type canaryIs int

const (
	canaryOpen canaryIs = iota
	canaryPassed
	canaryLost
	canaryUnknown // it is not there, and nothing says that it ended well
)

// verdict tells what became of one, and why it is lost. A first failed attempt is a
// verdict: the cause is not mended.
func (r *deadRun) verdict(ctx context.Context, it canaryItem) (canaryIs, forebay.Cause, error) {
	if !it.Job {
		return r.messageVerdict(ctx, it)
	}
	j, err := r.b.Job(ctx, it.ID)
	switch {
	case forebay.CodeOf(err) == forebay.CodeNotFound:
		return r.goneVerdict(ctx, it)
	case err != nil:
		return canaryOpen, forebay.Cause{}, err
	case j.State == forebay.StateDead && j.DeadSeq == it.Seq: // the run of a flow, which is told to go on
		return canaryOpen, forebay.Cause{}, nil
	case j.State == forebay.StateCompleted:
		return canaryPassed, forebay.Cause{}, nil
	case j.State.Final():
		return canaryLost, j.Cause, nil
	case len(j.Failures) > 0:
		return canaryLost, j.Failures[len(j.Failures)-1], nil
	}
	return canaryOpen, forebay.Cause{}, nil
}

// goneVerdict is of a job that has no record. A queue may keep none of what is done;
// that it was done, and not purged or removed, must be known all the same.
func (r *deadRun) goneVerdict(ctx context.Context, it canaryItem) (canaryIs, forebay.Cause, error) {
	unknown := forebay.Cause{Code: "unknown", Message: "the job is not there any more, and nothing says that it was done"}
	ends := []forebay.HistoryType{forebay.HistoryCompleted, forebay.HistoryDead, forebay.HistoryCancelled, forebay.HistoryExpired, forebay.HistoryDiscarded}
	page, err := r.b.History(ctx, engine.HistoryQuery{Job: it.ID, Types: ends})
	if err != nil && forebay.CodeOf(err) != forebay.CodeUnsupported {
		return canaryOpen, forebay.Cause{}, err
	}
	if n := len(page.Events); n > 0 {
		if page.Events[n-1].Type == forebay.HistoryCompleted {
			return canaryPassed, forebay.Cause{}, nil
		}
		return canaryUnknown, unknown, nil
	}
	l, err := r.b.Locate(ctx, it.ID) // the history may have left too
	if err != nil && forebay.CodeOf(err) != forebay.CodeUnsupported {
		return canaryOpen, forebay.Cause{}, err
	}
	if l.Where == engine.WhereDone {
		return canaryPassed, forebay.Cause{}, nil
	}
	return canaryUnknown, unknown, nil
}

// messageVerdict is of a message that nobody tracks. One that is neither waiting nor
// dead was done: nothing else lets it leave but a purge.
func (r *deadRun) messageVerdict(ctx context.Context, it canaryItem) (canaryIs, forebay.Cause, error) {
	l, err := r.b.Locate(ctx, it.ID)
	if err != nil {
		return canaryOpen, forebay.Cause{}, err
	}
	switch {
	case l.Where == engine.WhereDead || l.Attempts > 0:
		if l.Last != nil {
			return canaryLost, *l.Last, nil
		}
		return canaryLost, forebay.Cause{Code: "failed", Message: "it failed"}, nil
	case l.Where == engine.WhereDone, l.Where == engine.WhereUnknown, l.Where == engine.WhereGone:
		return canaryPassed, forebay.Cause{}, nil
	}
	return canaryOpen, forebay.Cause{}, nil
}
