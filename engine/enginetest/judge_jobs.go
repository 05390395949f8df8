package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// A run that begins with the step "jobs" sends jobs among the messages, and has
// steps of its own for them.

var jobStepWeights = []struct {
	op     string
	weight int
}{{"cancel", 6}, {"change", 6}, {"progress", 4}, {"remove", 2}}

// randomJobSteps are steps with jobs.
func randomJobSteps(seed uint64, n int) []step {
	rng := rand.New(rand.NewPCG(seed, 7))
	var bag []string
	for _, w := range jobStepWeights {
		bag = append(bag, slices.Repeat([]string{w.op}, w.weight)...)
	}
	steps := randomSteps(seed, n)
	for i := range steps {
		if rng.IntN(5) == 0 {
			steps[i].op = bag[rng.IntN(len(bag))]
		}
	}
	return slices.Concat([]step{{op: "jobs"}}, steps)
}

func (j *judge) jobStep(s step) error {
	n := s.n
	if s.op == "jobs" {
		j.ledger, _ = engine.As[engine.Jobs](j.e)
		return nil
	}
	if j.ledger == nil {
		return nil
	}
	id, now := fmt.Sprint("m", n[0]%judgedIDs), time.Now()
	switch s.op {
	case "cancel":
		res, err := j.ledger.Cancel(j.ctx, []string{id}, "stop")
		if err != nil || len(res) != 1 {
			return fmt.Errorf("cancel gave %+v, %v", res, err)
		}
		want := j.o.cancel(id, "stop", now)
		if forebay.CodeOf(res[0].Err) != forebay.CodeOf(want.Err) || res[0].State != want.State {
			return fmt.Errorf("cancel of %q gave %+v, want %+v", id, res[0], want)
		}
		return nil
	case "change":
		c := engine.JobChange{ID: id}
		switch n[1] % 3 {
		case 0:
			c.Due = new(time.Time)
		case 1:
			at := now.Add(j.units(1 + n[2]%6))
			c.Due = &at
		default:
			p := forebay.At(n[2] % 10)
			c.Priority = &p
		}
		errs, err := j.ledger.Change(j.ctx, []engine.JobChange{c})
		return j.sameCode("change", id, errs, err, j.o.change(c, now))
	case "remove":
		errs, err := j.ledger.Remove(j.ctx, []string{id})
		return j.sameCode("remove", id, errs, err, j.o.drop(id, now))
	default:
		if len(j.receipts) == 0 {
			return nil
		}
		u := forebay.ProgressUpdate{Receipt: j.receipts[n[1]%len(j.receipts)], Progress: &forebay.Progress{Percent: float64(n[2] % 101)}}
		if e := j.o.holder(u.Receipt, now); e != nil {
			j.said[e.msg.ID] = true
		}
		errs, err := j.ledger.Progress(j.ctx, []forebay.ProgressUpdate{u})
		return j.sameCode("progress", string(u.Receipt), errs, err, j.o.progressed(u, now))
	}
}

func (j *judge) sameCode(what, of string, errs []error, err, want error) error {
	if err != nil || len(errs) != 1 {
		return fmt.Errorf("%s gave %v, %w", what, errs, err)
	}
	if forebay.CodeOf(errs[0]) != forebay.CodeOf(want) {
		return fmt.Errorf("%s of %q gave %v, want %v", what, of, errs[0], want)
	}
	return nil
}

// decide lets moments pass at which time is about to do something to a job, so
// that it has surely done it, and tells the oracle.
func (j *judge) decide() {
	if j.ledger == nil {
		return
	}
	for {
		now := time.Now()
		j.o.sweep(now.Add(-j.slack))
		if at, _ := j.o.nextChange(); at.IsZero() || at.After(now.Add(j.slack)) {
			break
		}
		j.pass(2 * j.slack)
	}
	j.o.sweep(time.Now())
}

// compareJob checks what the ledger tells of one id.
func (j *judge) compareJob(id string, now time.Time) error {
	if j.ledger == nil {
		return nil
	}
	got, err := j.ledger.Job(j.ctx, id)
	want, known := j.o.tell(id, now)
	if (err == nil) != known || err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
		return fmt.Errorf("job %q gave %v; known: %v, %+v", id, err, known, want)
	}
	if !known {
		return nil
	}
	if e := j.o.entry(id); e != nil && got.State != want.State && got.State == e.state(now.Add(j.slack)) {
		want.State = got.State // its delay ends at this very moment
	}
	if got.State != want.State || got.Attempts != want.Attempts || got.Deliveries != want.Deliveries ||
		got.CancelRequested != want.CancelRequested || got.Priority.Level() != want.Priority.Level() || got.Cause.Code != want.Cause.Code {
		return fmt.Errorf("job %q is told as %+v, want %+v", id, got, want)
	}
	if j.said[id] && got.State == forebay.StateActive && got.Progress.Percent != want.Progress.Percent {
		return fmt.Errorf("job %q has progress %v, want %v", id, got.Progress.Percent, want.Progress.Percent)
	}
	return nil
}
