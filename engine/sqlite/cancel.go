package sqlite

import (
	"context"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Cancel ends jobs that have not finished; see engine.Jobs.
func (e *Engine) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	if len(ids) > engine.MaxCancel {
		return nil, tooMany("ids", engine.MaxCancel)
	}
	if err := engine.CheckText("reason", reason); err != nil {
		return nil, err
	}
	o := &cancelJobs{ids: slices.Clone(ids), reason: reason, results: make([]engine.CancelResult, len(ids))}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.results, nil
}

// cancelJobs is the op of Cancel.
type cancelJobs struct {
	change
	ids     []string
	reason  string
	results []engine.CancelResult
	stops   []*item
}

func (o *cancelJobs) apply(t *tx) error {
	o.stops = o.stops[:0]
	for i, id := range o.ids {
		o.results[i] = engine.CancelResult{}
		job, err := t.live(id)
		if err != nil {
			return err
		}
		switch {
		case job.err != nil:
			o.results[i].Err = job.err
		case job.it != nil:
			o.results[i].State = forebay.StateActive
			err = o.stop(t, job)
		default:
			o.results[i].State = forebay.StateCancelled
			cause := cancelCause(o.reason)
			err = t.finishWaiting(&job, &ending{state: stCancelled, cause: cause})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stop asks an active job to stop, once.
func (o *cancelJobs) stop(t *tx, job liveJob) error {
	if job.it.stopping() != nil {
		return nil
	}
	o.stops = append(o.stops, job.it)
	job.it.tell().stop, job.it.told.reason = true, o.reason // at once: the same commit may settle it
	t.record(&note{typ: evCancelRequested, attempt: job.it.attempts + 1, id: job.g.id, kind: job.g.kind, queue: job.q.name, text: o.reason})
	return t.exec("INSERT INTO stop (key, idx, at, reason) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		job.it.key, int64(job.it.idx), t.now, o.reason)
}

func (o *cancelJobs) abort() {
	for _, it := range o.stops {
		it.told.stop = false
	}
	o.stops = nil
}

// unstop forgets that a job was asked to stop.
func (t *tx) unstop(r *ref) error {
	if r.told == nil || !r.told.stop {
		return nil
	}
	return t.exec("DELETE FROM stop WHERE key = ? AND idx = ?", r.key, int64(r.idx))
}

// stopping is what those hear who hold a job that was asked to stop; nil: it was not.
func (it *item) stopping() error {
	if it.told == nil || !it.told.stop {
		return nil
	}
	return forebay.Errorf(forebay.CodeCancelled, "sqlite", "the job is to stop: %s", cancelCause(it.told.reason).Message)
}

func (r *ref) tell() *told {
	if r.told == nil {
		r.told = &told{}
	}
	return r.told
}

// liveJob is a job that has not finished.
type liveJob struct {
	q      *queue
	ref    ref   // as it waits, or is leased
	it     *item // nil: it waits
	moving bool  // it waits as soon as this transaction is committed
	body   []byte
	g      glance
	err    error // of the item: there is none, or it has finished
}

// live finds a job that has not finished.
func (t *tx) live(id string) (job liveJob, err error) {
	l := t.l
	if len(id) == 0 || len(id) > forebay.MaxIDBytes {
		return liveJob{err: noJob(id)}, nil
	}
	hit, known, err := l.lookup(idDigest(id), false)
	if err != nil {
		return job, err
	}
	stored := false
	if known {
		if stored, err = t.isStored(hit.key, hit.idx); err != nil {
			return job, err
		}
	}
	if !stored {
		job.err, err = t.notLive(id, known && t.settledNow(hit.key, hit.idx))
		return job, err
	}
	if err := l.waits(&job, hit.key, hit.idx); err != nil {
		return job, err
	}
	job.body, job.g, err = l.bodyOf(&job.ref)
	if err == errUnreadable {
		return liveJob{err: forebay.Errorf(forebay.CodeDamaged, "sqlite: job", "%w", err)}, nil
	}
	if err == nil && !isJob(job.body) {
		return liveJob{err: noJob(id)}, nil
	}
	job.ref.job = true
	job.ref.group, job.ref.limitKey = routing(job.body)
	return job, err
}

// waits fills in where a stored message is: with whom, or how it waits.
func (l *loop) waits(job *liveJob, key int64, idx int) error {
	b, err := l.block(key)
	if err != nil || b == nil {
		return err
	}
	job.q = l.queueOf(key)
	job.ref = ref{key: key, idx: idx, ord: b.sentAt, sentAt: b.sentAt}
	switch _, it := l.holder(key, idx); {
	case it != nil && it.state == itemLeased:
		job.it, job.ref = it, it.ref
		return nil
	case it != nil: // this transaction lets it wait again
		job.moving = true
	}
	r, err := l.kept(key, idx)
	if r != nil {
		job.ref = *r
	}
	return err
}

func errNotFinished() error {
	return forebay.Errorf(forebay.CodeConflict, "sqlite: job", "the job has not finished; cancel it first")
}

func noJob(id string) error {
	return forebay.Errorf(forebay.CodeNotFound, "sqlite: job", "no job has the id %q", id)
}

// notLive says why a job cannot be acted on: it has finished, just now perhaps, or
// there is none.
func (t *tx) notLive(id string, justNow bool) (answer, err error) {
	if !justNow {
		job, ok, err := t.l.finishedOrDead(id, t.now)
		if err != nil {
			return nil, err
		}
		if !ok {
			return noJob(id), nil
		}
		return forebay.Errorf(forebay.CodeConflict, "sqlite: job", "the job has finished: it is %s", job.State), nil
	}
	return forebay.Errorf(forebay.CodeConflict, "sqlite: job", "the job has finished"), nil
}
