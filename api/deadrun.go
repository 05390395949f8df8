package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/worker"
)

// DeadHandler does what POST /api/dead/actions started. A run that is interrupted goes
// on where it was, and its totals are those of all runs.
func DeadHandler(b *broker.Broker) worker.JobHandler {
	return worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
		var data deadData
		if err := json.Unmarshal(j.Payload, &data); err != nil {
			return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "bad_data"}, err))
		}
		s, err := loadDead(ctx, b, data.Action)
		if err != nil {
			return nil, err
		}
		if s.State != DeadRunning || s.JobID != j.ID { // paused before it began, or taken up by another job
			return json.Marshal(s.DeadWork)
		}
		r := &deadRun{b: b, job: j, s: s}
		working, stop := worker.UntilDraining(ctx)
		defer stop()
		if err := r.run(working); err != nil {
			return nil, r.leave(working, err)
		}
		r.tell()
		return json.Marshal(r.s.DeadWork)
	})
}

// deadRun is one run of an action.
type deadRun struct {
	b   *broker.Broker
	job *worker.Job
	s   *deadState
}

// errHalted ends a run that somebody has paused or cancelled.
var errHalted = errors.New("the action was halted")

func (r *deadRun) run(ctx context.Context) error {
	r.s.Runs++
	if err := r.save(ctx); err != nil {
		return err
	}
	if err := r.takeUp(ctx); err != nil {
		return err
	}
	if c := r.s.Canary; c != nil && c.Verdict == "" {
		if err := r.canary(ctx); err != nil || r.s.State != DeadRunning {
			return err
		}
	}
	if err := r.rest(ctx); err != nil {
		return err
	}
	r.s.State, r.s.EndedAt = DeadCompleted, time.Now()
	return r.save(ctx)
}

// save stores how far the run is. If somebody has changed how the action stands, that
// is taken over.
func (r *deadRun) save(ctx context.Context) error {
	err := r.s.save(ctx, r.b)
	if forebay.CodeOf(err) != codeMoved {
		return err
	}
	now, err := loadDead(ctx, r.b, r.s.ID)
	switch {
	case err != nil:
		return err
	case now.Runs > r.s.Runs || now.JobID != r.job.ID:
		return errHalted // it is not ours any more, nor are its totals
	}
	r.s.State, r.s.rev = now.State, now.rev
	if err := r.s.save(ctx, r.b); err != nil {
		return err
	}
	if r.s.State != DeadRunning {
		return errHalted
	}
	return nil
}

const leaveTimeout = 5 * time.Second

// leave stores the totals of a run that ends early. One that was cancelled as any job
// is, is a cancelled action.
func (r *deadRun) leave(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, forebay.ErrCancelled) && r.s.State == DeadRunning {
		r.s.State = DeadCancelled
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if failed := r.save(ctx); failed != nil && !errors.Is(failed, errHalted) {
		return errors.Join(err, failed)
	}
	if errors.Is(err, errHalted) {
		return forebay.Cancel(string(r.s.State))
	}
	if cause != nil {
		return cause
	}
	return err
}

// takeUp finds out what the step did that was interrupted: who is not there any more
// was done.
func (r *deadRun) takeUp(ctx context.Context) error {
	var left []int64
	for _, seq := range r.s.Pending {
		_, err := r.b.DeadLetter(ctx, seq)
		switch forebay.CodeOf(err) {
		case "":
			left = append(left, seq)
		case forebay.CodeNotFound:
			r.s.Done++
		default:
			return err
		}
	}
	if r.s.Pending = nil; len(left) == 0 {
		return nil
	}
	return r.act(ctx, left)
}

const (
	stepMost  = 200 // dead letters of one step
	stepsASec = 10  // where the rate is low
)

// rest does what is left, at the rate that is wanted.
func (r *deadRun) rest(ctx context.Context) error {
	size, limit := stepMost, rate.Inf
	if r.s.Rate > 0 {
		size, limit = min(max(int(r.s.Rate)/stepsASec, 1), stepMost), rate.Limit(r.s.Rate)
	}
	pace := rate.NewLimiter(limit, size)
	for {
		seqs, err := r.next(ctx, size)
		if err != nil || len(seqs) == 0 {
			return err
		}
		if err := pace.WaitN(ctx, len(seqs)); err != nil {
			return err
		}
		if err := r.act(ctx, seqs); err != nil {
			return err
		}
		r.tell()
	}
}

// next gives the numbers of those that come next, oldest first.
func (r *deadRun) next(ctx context.Context, n int) ([]int64, error) {
	q, err := r.s.Filter.engine(r.s.Before, n)
	if err != nil {
		return nil, forebay.Permanent(err)
	}
	return r.b.DeadSeqs(ctx, q, r.s.After)
}

// act does one step: it says what it is about to do, and does it.
func (r *deadRun) act(ctx context.Context, seqs []int64) error {
	r.s.Pending = seqs
	if err := r.save(ctx); err != nil {
		return err
	}
	var errs []error
	var err error
	if r.s.Action == "discard" {
		errs, err = r.b.DiscardDead(ctx, seqs, r.s.Reason)
	} else {
		errs, err = replayDead(ctx, r.b, seqs, r.s.Into)
	}
	if err != nil {
		return err
	}
	for i, err := range errs {
		if err == nil {
			r.s.Done++
		} else {
			r.s.fail(seqs[i], err)
			r.s.unsend(seqs[i])
		}
	}
	r.s.Pending, r.s.After = nil, max(r.s.After, seqs[len(seqs)-1])
	return nil
}

func (s *deadState) fail(seq int64, err error) {
	s.Failed++
	if len(s.Errors) < maxDeadErrors {
		s.Errors = append(s.Errors, Failure{Seq: seq, Code: forebay.CodeOf(err), Message: forebay.TextOf(err)})
	}
}

// tell tells how far it is.
func (r *deadRun) tell() {
	s := r.s
	gone := s.Done + s.Failed
	p := forebay.Progress{
		Stage: s.Action, Percent: 100 * float64(gone) / float64(max(s.Total, gone, 1)),
		Message: fmt.Sprintf("%d done, %d not, of %d", s.Done, s.Failed, max(s.Total, gone)),
	}
	if c := s.Canary; c != nil && c.Verdict != "passed" {
		p.Stage, p.Message = "canary", fmt.Sprintf("%d passed, %d lost, of %d", c.Passed, c.Lost, c.Sent)
	}
	r.job.Tell(p)
}
