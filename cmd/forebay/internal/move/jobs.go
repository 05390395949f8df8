package move

import (
	"context"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// takeWait is how long what was just sent may take until it is handed out, beyond the end of
// the leases of a move that was cut off.
const takeWait = 5 * time.Second

// of gives the entries that have ended, or those that wait, in batches of one queue. What was
// moved before is neither: a worker of the target may have it.
func (m *mover) of(ended bool) [][]entry {
	var all [][]entry
	open := map[string]int{} // queue → its batch that has room
	for _, e := range m.all {
		if e.moved || e.state.Final() != ended {
			continue
		}
		at, ok := open[e.queue]
		if !ok || len(all[at]) == batch {
			at = len(all)
			open[e.queue] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], e)
	}
	return all
}

// ended puts jobs that have ended into the target: each is sent, taken, and settled as it was.
func (m *mover) ended(ctx context.Context) error {
	batches := m.of(true)
	for i, some := range batches {
		left := map[string]forebay.Job{} // to be settled
		var msgs []forebay.Message
		for _, e := range some {
			j, err := m.From.Job(ctx, e.id)
			if err != nil {
				return fmt.Errorf("job %s: %w", e.id, err)
			}
			had, err := m.To.Job(ctx, e.id)
			switch {
			case forebay.CodeOf(err) == forebay.CodeNotFound:
				msgs = append(msgs, bare(j.Message))
			case err != nil:
				return err
			case had.State.Final():
				continue // of a move before this one
			}
			left[e.id] = j
		}
		if err := m.send(ctx, msgs); err != nil {
			return err
		}
		if err := m.settle(ctx, some[0].queue, left); err != nil {
			return err
		}
		m.tell("jobs that have ended", i+1, len(batches))
	}
	return nil
}

// bare is a message without what would end or hold it before it is taken, and without the
// key by which it would be taken for another that has ended as well.
func bare(msg forebay.Message) forebay.Message {
	options := *msg.Job
	options.Deadline, options.Expires, options.Dedup = time.Time{}, time.Time{}, forebay.DedupWindowed
	msg.Job, msg.NotBefore, msg.DedupKey = &options, time.Time{}, ""
	return msg
}

// waiting sends what waits. It waits for its time there too.
func (m *mover) waiting(ctx context.Context) error {
	batches := m.of(false)
	for i, some := range batches {
		var msgs []forebay.Message
		for _, e := range some {
			j, err := m.From.Job(ctx, e.id)
			if err != nil {
				return fmt.Errorf("job %s: %w", e.id, err)
			}
			if j.State.Final() {
				continue // it has expired meanwhile
			}
			j.NotBefore = j.Due
			msgs = append(msgs, j.Message)
		}
		if err := m.send(ctx, msgs); err != nil {
			return err
		}
		m.tell("jobs that wait", i+1, len(batches))
	}
	return nil
}

// send sends. A job is never joined with another: if the target takes its key for that of
// one that is there, it is sent without.
func (m *mover) send(ctx context.Context, msgs []forebay.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	results, err := m.To.Send(ctx, msgs)
	if err != nil {
		return err
	}
	var again []forebay.Message
	for i, r := range results {
		if r.Err != nil {
			return fmt.Errorf("job %s: %w", msgs[i].ID, r.Err)
		}
		if r.Duplicate && r.ID != msgs[i].ID {
			if msgs[i].DedupKey == "" {
				return forebay.Errorf(forebay.CodeConflict, "move", "the target takes %s for %s", msgs[i].ID, r.ID)
			}
			msgs[i].DedupKey = ""
			again = append(again, msgs[i])
		}
	}
	return m.send(ctx, again)
}

// settle takes jobs of a queue in the target until all of them are as they were.
func (m *mover) settle(ctx context.Context, queue string, left map[string]forebay.Job) error {
	for len(left) > 0 {
		ds, err := m.To.Receive(ctx, engine.Receive{Queue: queue, Max: batch, Wait: m.Lease + takeWait, Lease: m.Lease})
		if err != nil {
			return err
		}
		if len(ds) == 0 {
			return forebay.Errorf(forebay.CodeConflict, "move", "%d jobs of the queue %s were not handed out by the target; is it paused, or does somebody work there?", len(left), queue)
		}
		ss := make([]forebay.Settlement, len(ds))
		for i := range ds {
			j, ok := left[ds[i].ID]
			ss[i] = verdict(&j)
			if !ok {
				ss[i].Verdict = forebay.Release
			}
			ss[i].Receipt, ss[i].Queue = ds[i].Receipt, queue
			delete(left, ds[i].ID)
		}
		errs, err := m.To.Settle(ctx, ss)
		if err != nil {
			return err
		}
		for i, err := range errs {
			if err != nil {
				return fmt.Errorf("job %s: %w", ds[i].ID, err)
			}
		}
	}
	return nil
}

// verdict is how a job ended.
func verdict(j *forebay.Job) forebay.Settlement {
	s := forebay.Settlement{Verdict: forebay.Ack, Result: j.Result, Cause: j.Cause}
	switch j.State {
	case forebay.StateDead:
		s.Verdict, s.Result = forebay.Dead, nil
	case forebay.StateCancelled:
		s.Verdict, s.Result = forebay.Cancelled, nil
	case forebay.StateExpired:
		s.Verdict, s.Result = forebay.Expired, nil
	}
	return s
}
