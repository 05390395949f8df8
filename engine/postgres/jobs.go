package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func noJob(id string) error { return fail(forebay.CodeNotFound, "there is no job %.200q", id) }

func tooMany(what string, n, most int) error {
	if n > most {
		return fail(forebay.CodeInvalid, "%s of %d in one call; at most %d are allowed", what, n, most)
	}
	return nil
}

// found is what is known of an id.
type found struct {
	seq, until int64
	queue      int32
	it         *item
	payload    []byte
	end        *ending
}

// ofID leads from the record of an id to its message.
const ofID = ` = (SELECT seq FROM ~record WHERE key = $1)`

// find asks for what is known of an id, in one round trip; nil: nothing.
func (e *Engine) find(ctx context.Context, id string) (f *found, now int64, err error) {
	if err := e.catchUp(ctx); err != nil {
		return nil, 0, err
	}
	within, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	b, key := &pgx.Batch{}, idKey(id)
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") // a job that ends, or is replayed, is in one of both
	each := func(sql string, scan func(rows pgx.Rows) error) {
		b.Queue(e.q(sql), key).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := scan(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	var it *item
	var end *ending
	var payload []byte
	each(`SELECT `+itemColumns+`, b.payload FROM ~item i JOIN ~body b ON b.seq = i.seq WHERE i.seq`+ofID, func(rows pgx.Rows) error {
		it = &item{}
		return it.scan(rows, &payload)
	})
	each(`SELECT `+endingColumns+`, b.payload FROM ~ended n JOIN ~body b ON b.seq = n.seq WHERE n.seq`+ofID, func(rows pgx.Rows) error {
		end = &ending{}
		return end.scan(rows, &end.payload)
	})
	each(`SELECT seq, until, queue FROM ~record WHERE key = $1`, func(rows pgx.Rows) error {
		f = &found{}
		return rows.Scan(&f.seq, &f.until, &f.queue)
	})
	if now = e.now().UnixMicro(); e.cfg.Now == nil {
		b.Queue(clock).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	}
	b.Queue("COMMIT")
	if err := e.pool.SendBatch(within, b).Close(); err != nil {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		return nil, 0, e.fault(err)
	}
	if f == nil {
		return nil, now, nil
	}
	f.it, f.payload, f.end = it, payload, end
	return f, now, e.queues.nameOf(ctx, e, []int32{f.queue})
}

// Locate tells where a message is; see engine.Locator.
func (e *Engine) Locate(ctx context.Context, id string) (engine.Location, error) {
	if err := e.enter(); err != nil {
		return engine.Location{}, err
	}
	defer e.leave()
	f, now, err := e.find(ctx, id)
	switch {
	case err != nil:
		return engine.Location{}, err
	case f == nil:
		return engine.Location{Where: engine.WhereUnknown}, nil
	case f.it != nil:
		it := f.it
		l := engine.Location{
			Where: engine.Where(stateAt(it, now)), Queue: e.queues.name(it.queue), SentAt: atMicros(it.sent), Attempts: int(it.attempts), Deliveries: int(it.deliveries),
		}
		if l.Where == engine.WhereDelayed {
			l.NotBefore = e.byHere(it.due)
		}
		if n := len(it.extra.Failures); n > 0 {
			l.Last = &it.extra.Failures[n-1]
		}
		return l, nil
	case f.end != nil && f.end.dead:
		c := f.end.cause()
		return engine.Location{
			Where: engine.WhereDead, Queue: e.queues.name(f.queue), SentAt: atMicros(f.end.sent), Attempts: int(f.end.tell.Attempts),
			Deliveries: int(f.end.tell.Deliveries), Last: &c, DeadSeq: f.end.no,
		}, nil
	case now < f.until:
		return engine.Location{Where: engine.WhereDone, Queue: e.queues.name(f.queue)}, nil
	}
	return engine.Location{Where: engine.WhereUnknown}, nil
}

// Job tells what is known of one; see engine.Jobs.
func (e *Engine) Job(ctx context.Context, id string) (forebay.Job, error) {
	if err := e.enter(); err != nil {
		return forebay.Job{}, err
	}
	defer e.leave()
	f, now, err := e.find(ctx, id)
	switch {
	case err != nil:
		return forebay.Job{}, err
	case f != nil && f.it != nil && f.it.job:
		f.it.payload = f.payload
		return e.waitingJob(f.it, now), nil
	case f != nil && f.end != nil && f.end.job:
		return e.endedJob(f.end), nil
	}
	return forebay.Job{}, noJob(id)
}

// waitingJob is an item as a job.
func (e *Engine) waitingJob(it *item, now int64) forebay.Job {
	j := forebay.Job{
		Message: it.meta.message(it.id, e.queues.name(it.queue), it.kind, it.payload), State: stateAt(it, now), Attempts: int(it.attempts),
		Deliveries: int(it.deliveries), Progress: it.extra.Progress.progress(), SentAt: atMicros(it.sent), StartedAt: atMicros(it.started),
		Failures: it.extra.Failures, CancelRequested: it.extra.Stop != nil,
	}
	if j.State == forebay.StateDelayed {
		j.Due = e.byHere(it.due)
	}
	return j
}

// byID runs f with the jobs of ids loaded, and their queues alone. f gets what each id is
// now; what is neither there nor in the ledger is nil.
func (e *Engine) byID(ctx context.Context, ids []string, f func(w *work, at map[string]*record)) error {
	if err := e.catchUp(ctx); err != nil {
		return err
	}
	keys, seen := column(ids, idKey), make(map[int32]bool)
	if err := e.read(ctx, `SELECT DISTINCT queue FROM ~record WHERE key = ANY($1)`, []any{keys}, func(rows pgx.Rows) error {
		var id int32
		err := rows.Scan(&id)
		seen[id] = true
		return err
	}); err != nil {
		return err
	}
	p := plan{}
	for id := range seen {
		p.alone = append(p.alone, id)
	}
	if err := e.queues.nameOf(ctx, e, p.alone); err != nil {
		return err
	}
	msgs := make([]*forebay.Message, len(ids))
	for i, id := range ids {
		msgs[i] = &forebay.Message{ID: id}
	}
	return e.do(ctx, p, func(ctx context.Context, w *work) error {
		if err := w.know(ctx, msgs); err != nil {
			return err
		}
		at, seqs := make(map[string]*record), []int64(nil)
		for _, id := range ids {
			if r := w.records[idKey(id)]; r != nil && slices.Contains(p.alone, r.queue) {
				at[id] = r
				if r.here {
					seqs = append(seqs, r.seq)
				}
			}
		}
		if err := w.bySeq(ctx, seqs); err != nil {
			return err
		}
		if slices.ContainsFunc(seqs, func(seq int64) bool { return w.items[seq] == nil }) {
			return errRaced // a settlement has ended it meanwhile
		}
		f(w, at)
		return nil
	})
}

// itemOf is the job of a record that has not finished.
func (w *work) itemOf(r *record) *item {
	if r == nil {
		return nil
	}
	if it := w.items[r.seq]; it != nil && !it.gone && it.job {
		return it
	}
	return nil
}

// Cancel ends jobs; see engine.Jobs.
func (e *Engine) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	if err := tooMany("cancel", len(ids), engine.MaxCancel); err != nil {
		return nil, err
	}
	if err := engine.CheckText("reason", reason); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	out := make([]engine.CancelResult, len(ids))
	return out, e.byID(ctx, ids, func(w *work, at map[string]*record) {
		for i, id := range ids {
			out[i] = w.cancel(id, at[id], reason)
		}
	})
}

func (w *work) cancel(id string, r *record, reason string) engine.CancelResult {
	it := w.itemOf(r)
	switch {
	case it == nil:
		return engine.CancelResult{Err: w.whyNot(id, r)}
	case !w.holds(it):
		w.finish(it, forebay.StateCancelled, cancelCause(reason, atMicros(w.now)), nil)
		return engine.CancelResult{State: forebay.StateCancelled}
	case it.extra.Stop == nil:
		it.extra.Stop, it.changed = &reason, true
		w.note(it, forebay.HistoryCancelRequested, "").more.Text = reason
	}
	return engine.CancelResult{State: forebay.StateActive}
}

// whyNot says why there is no such job to act on.
func (w *work) whyNot(id string, r *record) error {
	if r != nil && (r.finished || r.dead || w.items[r.seq] != nil && w.items[r.seq].job) {
		return fail(forebay.CodeConflict, "job %.200q has finished", id)
	}
	return noJob(id)
}

// Change changes jobs that wait; see engine.Jobs.
func (e *Engine) Change(ctx context.Context, changes []engine.JobChange) ([]error, error) {
	if err := tooMany("change", len(changes), engine.MaxCancel); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	errs, ids, now := make([]error, len(changes)), []string(nil), e.now()
	for i := range changes {
		if errs[i] = engine.CheckChange(&changes[i], now); errs[i] == nil {
			ids = append(ids, changes[i].ID)
		}
	}
	checked := slices.Clone(errs)
	return errs, e.byID(ctx, ids, func(w *work, at map[string]*record) {
		for i := range changes {
			if errs[i] = checked[i]; errs[i] == nil {
				errs[i] = w.change(&changes[i], at[changes[i].ID])
			}
		}
	})
}

func (w *work) change(c *engine.JobChange, r *record) error {
	it := w.itemOf(r)
	switch {
	case it == nil:
		return w.whyNot(c.ID, r)
	case w.holds(it):
		return fail(forebay.CodeConflict, "job %.200q is active", c.ID)
	case c.Priority != nil && it.chain != "":
		return fail(forebay.CodeInvalid, "job %.200q is of a group, whose order goes before priority", c.ID)
	}
	if c.Priority != nil {
		it.meta.Priority, it.rank, it.rewritten = *c.Priority, rankOf(it.sent, *c.Priority), true
	}
	if c.Payload != nil {
		it.payload, it.size, it.rewritten = bytes.Clone(c.Payload), int32(len(c.Payload)), true
	}
	if c.Due != nil {
		it.due = w.byServer(*c.Due)
	}
	w.enqueue(it)
	w.note(it, forebay.HistoryChanged, w.stateOf(it))
	return nil
}

// Progress notes what running jobs tell; see engine.Jobs.
func (e *Engine) Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error) {
	if err := tooMany("progress", len(updates), engine.MaxProgress); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	errs, read, seqs, queues := make([]error, len(updates)), make([]receipt, len(updates)), []int64(nil), []int32(nil)
	for i := range updates {
		r, ok := readReceipt(updates[i].Receipt)
		if !ok {
			errs[i] = lost(updates[i].Receipt)
		} else if errs[i] = engine.CheckProgress(&updates[i]); errs[i] == nil {
			read[i], seqs, queues = r, append(seqs, r.seq), append(queues, r.queue)
		}
	}
	if err := e.queues.nameOf(ctx, e, queues); err != nil {
		return nil, err
	}
	checked := slices.Clone(errs)
	return errs, e.do(ctx, plan{lazy: true}, func(ctx context.Context, w *work) error {
		if err := w.bySeq(ctx, seqs); err != nil {
			return err
		}
		for i := range updates {
			if errs[i] = checked[i]; errs[i] == nil {
				errs[i] = w.progress(&updates[i], read[i])
			}
		}
		return nil
	})
}

func (w *work) progress(u *forebay.ProgressUpdate, r receipt) error {
	it := w.items[r.seq]
	if it == nil || it.token != r.token || !w.holds(it) || !it.job {
		return lost(u.Receipt)
	}
	if u.Progress != nil {
		p := &keptProgress{Progress: *u.Progress, Data: u.Progress.Data}
		p.Progress.Data, p.At = nil, cmp.Or(p.At, atMicros(w.now))
		it.extra.Progress, it.changed = p, true
		w.note(it, forebay.HistoryProgress, "").more.Progress = p
	}
	for _, line := range u.Log {
		w.note(it, forebay.HistoryLog, "").more.Text = line.Text
	}
	if it.extra.Stop != nil {
		return toStop(*it.extra.Stop)
	}
	return nil
}
