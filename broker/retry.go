package broker

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// RetryResult is what became of one Retry.
type RetryResult struct {
	ID  string // of the job that runs now: its own, or that of the new one
	Err error
}

// Retry brings finished jobs back into work, each in its own queue. A dead one is
// replayed: it is the same job, with its attempts at zero, unless its kind is replayed
// otherwise (OnReplay). Another is sent anew:
// the same content under a new id, whose Parent is the old one. It is sent because
// somebody says so, hence without the dedup key; a deadline or expiry that has
// passed is dropped. CodeNotFound: no such job; CodeConflict: it has not finished.
func (b *Broker) Retry(ctx context.Context, ids []string) ([]RetryResult, error) {
	if b.able.jobs == nil {
		return nil, noLedger()
	}
	results := make([]RetryResult, len(ids))
	var dead, fresh []int // indexes of ids
	var seqs []int64
	var msgs []forebay.Message
	for i, id := range ids {
		results[i].ID = id
		j, err := b.able.jobs.Job(ctx, id)
		switch {
		case err != nil && forebay.CodeOf(err) != forebay.CodeNotFound:
			return nil, err
		case err != nil:
			results[i].Err = err
		case !j.State.Final():
			results[i].Err = forebay.Errorf(forebay.CodeConflict, "", "job %s is %s; only a finished one can be retried", id, j.State)
		case j.State == forebay.StateDead && b.replayer(&j.Message) != nil:
			results[i].Err = b.replayer(&j.Message)(ctx, &j.Message)
		case j.State == forebay.StateDead:
			dead, seqs = append(dead, i), append(seqs, j.DeadSeq)
		default:
			fresh, msgs = append(fresh, i), append(msgs, again(j, b.now()))
		}
	}
	if len(seqs) > 0 {
		errs, err := b.Replay(ctx, seqs)
		if err != nil {
			return nil, err
		}
		for n, i := range dead {
			results[i].Err = errs[n]
		}
	}
	if len(msgs) == 0 {
		return results, nil
	}
	sent, err := b.Send(ctx, msgs)
	for n, i := range fresh {
		if err != nil {
			results[i].Err = err // per item, since others may have been replayed
			continue
		}
		results[i] = RetryResult{ID: sent[n].ID, Err: sent[n].Err}
	}
	return results, nil
}

// again is the message of a finished job, to be sent once more.
func again(j forebay.Job, now time.Time) forebay.Message {
	m := j.Message
	options := *m.Job
	m.Job, m.ID, m.NotBefore, m.DedupKey, m.DedupWindow = &options, "", time.Time{}, "", 0
	options.Parent, options.Dedup = j.ID, forebay.DedupWindowed
	if !options.Deadline.After(now) {
		options.Deadline = time.Time{}
	}
	if !options.Expires.After(now) {
		options.Expires = time.Time{}
	}
	return m
}
