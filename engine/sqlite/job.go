package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// Job tells what is known of a job; see engine.Jobs.
func (e *Engine) Job(ctx context.Context, id string) (forebay.Job, error) {
	return ask(ctx, e, func(t *tx) (forebay.Job, error) { return t.job(id) })
}

func (t *tx) job(id string) (forebay.Job, error) {
	l := t.l
	if len(id) == 0 || len(id) > forebay.MaxIDBytes {
		return forebay.Job{}, noJob(id)
	}
	hit, known, err := l.lookup(idDigest(id), false)
	if err != nil {
		return forebay.Job{}, err
	}
	if known {
		stored, err := l.isStored(hit.key, hit.idx)
		if err != nil {
			return forebay.Job{}, err
		}
		if stored {
			return l.jobAt(hit.key, hit.idx, t.now)
		}
	}
	job, ok, err := l.finishedOrDead(id, t.now)
	if err == nil && !ok {
		err = noJob(id)
	}
	return job, err
}

// jobAt tells of a job that has not finished.
func (l *loop) jobAt(key int64, idx int, now int64) (forebay.Job, error) {
	var live liveJob
	err := l.waits(&live, key, idx)
	if err == nil {
		live.body, live.g, err = l.bodyOf(&live.ref)
	}
	if err == errUnreadable {
		err = forebay.Errorf(forebay.CodeDamaged, "sqlite: job", "%w", err)
	}
	if err != nil {
		return forebay.Job{}, err
	}
	if !isJob(live.body) {
		return forebay.Job{}, noJob(string(live.g.id))
	}
	failures := ""
	if live.ref.stored && live.ref.attempts > 0 {
		if failures, err = l.failures(&live.ref); err != nil {
			return forebay.Job{}, err
		}
	}
	return live.job(failures, now)
}

// job puts together what is known of a job that has not finished.
func (live *liveJob) job(failures string, now int64) (forebay.Job, error) {
	m, err := decodeBody(live.body, live.q.name)
	if err != nil {
		return forebay.Job{}, forebay.Errorf(forebay.CodeDamaged, "sqlite: job", "%w", err)
	}
	r := &live.ref
	j := forebay.Job{
		Message: m, State: forebay.StateWaiting, Attempts: r.attempts, Deliveries: r.deliveries,
		SentAt: unix(r.sentAt), Failures: decodeFailures(failures),
	}
	if r.started != 0 {
		j.StartedAt = unix(r.started)
	}
	if r.told != nil {
		if r.told.progress != nil {
			j.Progress = readProgress(r.told.progress)
		}
		j.CancelRequested = r.told.stop
	}
	switch {
	case live.it != nil:
		j.State = forebay.StateActive
	case r.due > now:
		j.State, j.Due = forebay.StateDelayed, unix(r.due)
	}
	return j, nil
}

// finishedOrDead finds a job that has finished, the newest of its id.
func (l *loop) finishedOrDead(id string, now int64) (job forebay.Job, ok bool, err error) {
	job, ok, err = l.finishedJob(id, now)
	if err != nil {
		return job, ok, err
	}
	dead, is, err := l.deadJob(id)
	if is && (!ok || dead.FinishedAt.After(job.FinishedAt)) {
		return dead, true, err
	}
	return job, ok, err
}

const deadJobColumns = deadColumns + ", started, progress"

// deadJob finds the newest dead job of an id.
func (l *loop) deadJob(id string) (job forebay.Job, ok bool, err error) {
	err = l.db.each("SELECT "+deadJobColumns+" FROM dead WHERE id = ? ORDER BY seq DESC LIMIT 1", func(s *sqlite.Stmt) error {
		job, err = l.readDeadJob(s)
		ok = err == nil && job.Job != nil
		return err
	}, id)
	return job, ok, err
}

func (l *loop) readDeadJob(s *sqlite.Stmt) (forebay.Job, error) {
	d, err := l.deadLetter(s)
	job := forebay.Job{
		Message: d.Message, State: forebay.StateDead, Attempts: d.Attempts, Deliveries: d.Deliveries,
		SentAt: d.SentAt, FinishedAt: d.DiedAt, Failures: d.Failures, Cause: d.Cause, DeadSeq: d.Seq,
	}
	if started := s.ColumnInt64(10); started != 0 {
		job.StartedAt = unix(started)
	}
	if progress := columnBytes(s, 11); len(progress) > 0 {
		job.Progress = readProgress(progress)
	}
	return job, err
}

// finishedPlaces is how many places of one hash are looked at.
const finishedPlaces = 64

// finishedJob finds the job of an id that finished last.
func (l *loop) finishedJob(id string, now int64) (job forebay.Job, ok bool, err error) {
	var places []int64
	err = l.db.each("SELECT at FROM finished_id WHERE h = ? ORDER BY at DESC LIMIT ?", func(s *sqlite.Stmt) error {
		places = append(places, s.ColumnInt64(0))
		return nil
	}, finishedID([]byte(id)), int64(finishedPlaces))
	for i := 0; i < len(places) && !ok && err == nil; i++ {
		job, ok, err = l.finishedAt(places[i], now)
		ok = ok && job.ID == id
	}
	return job, ok, err
}

const finishedColumns = "queue, at, ord, until, last, states, data"

// finishedAt reads the job at a place; not ok: it is no longer kept.
func (l *loop) finishedAt(place, now int64) (job forebay.Job, ok bool, err error) {
	idx := int(place & (1<<finishedIdx - 1))
	err = l.db.each("SELECT "+finishedColumns+" FROM finished WHERE seq = ?", func(s *sqlite.Stmt) error {
		row := l.readFinishedRow(s)
		if !row.keeps(idx, now) {
			return nil
		}
		record := recordOf(columnBytes(s, 6), idx, len(row.states))
		if record == nil {
			err = errUnreadable
		} else {
			job, err = finishedJob(record, row.q.name, row.at)
		}
		if err != nil {
			return forebay.Errorf(forebay.CodeDamaged, "sqlite: finished job", "%w", err)
		}
		ok = true
		return nil
	}, place>>finishedIdx)
	return job, ok, err
}

// finishedRow is a row without its data.
type finishedRow struct {
	q       *queue
	at, ord int64
	until   int64 // 0: for ever
	last    int64 // 0: for ever
	states  []byte
}

func (l *loop) readFinishedRow(s *sqlite.Stmt) finishedRow {
	return finishedRow{q: l.byID[s.ColumnInt64(0)], at: s.ColumnInt64(1), ord: s.ColumnInt64(2),
		until: s.ColumnInt64(3), last: s.ColumnInt64(4), states: columnBytes(s, 5)}
}

// keeps tells whether one of the row's jobs is still kept.
func (r *finishedRow) keeps(idx int, now int64) bool {
	if r.q == nil || idx >= len(r.states) || r.states[idx] == 0 || r.until != 0 && r.until <= now {
		return false
	}
	return r.last == 0 || r.last-int64(len(r.states)-1-idx) > r.q.tally.ord
}
