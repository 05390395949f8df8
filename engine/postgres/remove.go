package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// endings loads and locks what has ended, by a condition.
func (w *work) endings(ctx context.Context, where string, args ...any) ([]*ending, error) {
	rows, err := w.conn.Query(ctx, w.e.q(`SELECT `+endingColumns+` FROM ~ended n JOIN ~body b ON b.seq = n.seq WHERE `+where), args...)
	if err != nil {
		return nil, err
	}
	var out []*ending
	var queues []int32
	for rows.Next() {
		d := &ending{}
		if err := d.scan(rows); err != nil {
			rows.Close()
			return nil, err
		}
		out, queues = append(out, d), append(queues, d.queue)
	}
	if rows.Close(); rows.Err() != nil {
		return nil, rows.Err()
	}
	return out, w.e.queues.nameOf(ctx, w.e, queues)
}

// noteEnding writes an event of what has ended.
func (w *work) noteEnding(d *ending, typ forebay.HistoryType, text string) {
	w.note(&item{id: d.id, job: d.job, queue: d.queue, kind: d.kind, attempts: d.tell.Attempts}, typ, "")
	if d.job {
		w.events[len(w.events)-1].more.Text = text
	}
}

// discard drops what has ended, for good.
func (w *work) discard(ds []*ending, reason string) {
	for _, d := range ds {
		if d.dead {
			w.noteEnding(d, forebay.HistoryDiscarded, reason)
		}
	}
	w.dropEndings(ds, true)
}

// dropEndings takes away what has ended; whole: with its bodies.
func (w *work) dropEndings(ds []*ending, whole bool) {
	if len(ds) == 0 {
		return
	}
	seqs := column(ds, func(d *ending) int64 { return d.seq })
	if whole {
		w.unended = append(w.unended, seqs...)
	}
	w.more = append(w.more, w.deleteEnded(seqs))
	for _, d := range ds {
		if d.dead {
			w.groups = append(w.groups, deadDelta{print: d.print, n: -1})
		}
	}
}

func (w *work) deleteEnded(seqs []int64) func(b *pgx.Batch) {
	return func(b *pgx.Batch) { b.Queue(w.e.q(`DELETE FROM ~ended WHERE seq = ANY($1)`), seqs) }
}

// Remove drops finished jobs; see engine.Jobs.
func (e *Engine) Remove(ctx context.Context, ids []string) ([]error, error) {
	if err := tooMany("remove", len(ids), engine.MaxCancel); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := e.catchUp(ctx); err != nil {
		return nil, err
	}
	errs := make([]error, len(ids))
	if err := e.remove(ctx, ids, errs); err != nil {
		return nil, err
	}
	for range 100 { // jobs that had the same ids before
		gone := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return errs[slices.Index(ids, id)] != nil })
		again := make([]error, len(gone))
		if err := e.remove(ctx, gone, again); err != nil || !slices.Contains(again, nil) {
			return errs, err
		}
	}
	return errs, nil
}

func (e *Engine) remove(ctx context.Context, ids []string, errs []error) error {
	return e.do(ctx, plan{}, func(ctx context.Context, w *work) error {
		const where = `n.job AND n.seq IN (SELECT seq FROM ~record WHERE key = ANY($1)) ORDER BY n.seq FOR UPDATE OF n`
		ds, err := w.endings(ctx, where, column(ids, idKey))
		if err != nil {
			return err
		}
		waiting := make(map[string]bool)
		rows, err := w.conn.Query(ctx, w.e.q(`SELECT r.id FROM ~record r JOIN ~item i ON i.seq = r.seq WHERE r.key = ANY($1) AND i.job`), column(ids, idKey))
		if err != nil {
			return err
		}
		var id string
		if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { waiting[id] = true; return nil }); err != nil {
			return err
		}
		w.discard(ds, "")
		for i, id := range ids {
			errs[i] = nil
			at := slices.IndexFunc(ds, func(d *ending) bool { return d.id == id })
			switch {
			case waiting[id]:
				errs[i] = fail(forebay.CodeConflict, "job %.200q has not finished", id)
			case at < 0:
				errs[i] = noJob(id)
			default:
				ds = slices.Delete(ds, at, at+1)
			}
		}
		return nil
	})
}

// Purge drops what is not active; see engine.Purger.
func (e *Engine) Purge(ctx context.Context, name string) (dropped int64, err error) {
	if err := engine.CheckQueue(name); err != nil {
		return 0, err
	}
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	if err := e.catchUp(ctx); err != nil {
		return 0, err
	}
	q, ok, err := e.queues.find(ctx, e, name)
	for err == nil && ok {
		var n int
		if n, err = e.purgeSome(ctx, q); err == nil {
			dropped += int64(n)
		}
		if n < purgeAtOnce {
			break
		}
	}
	return dropped, err
}

const purgeAtOnce = 2000

func (e *Engine) purgeSome(ctx context.Context, q queue) (n int, err error) {
	return n, e.do(ctx, plan{alone: []int32{q.id}}, func(ctx context.Context, w *work) error {
		its, err := w.load(ctx, `i.queue = $1 AND i.state <> 2 ORDER BY i.seq LIMIT $2 FOR UPDATE OF i SKIP LOCKED`, q.id, purgeAtOnce)
		if err != nil {
			return err
		}
		n = len(its)
		var keys []string
		var seqs []int64
		for _, it := range its {
			w.noteDiscarded(it)
			w.remove(it, false)
			keys, seqs = append(keys, idKey(it.id)), append(seqs, it.seq)
			if it.dedup != "" {
				keys, seqs = append(keys, it.dedup), append(seqs, it.seq)
			}
		}
		if n == 0 {
			return nil
		}
		w.more = append(w.more, func(b *pgx.Batch) {
			b.Queue(w.e.q(`UPDATE ~record r SET until = 0 FROM unnest($1::text[], $2::bigint[]) x(k, s) WHERE r.key = k`), keys, seqs)
			b.Queue(w.e.q(`DELETE FROM ~record r USING unnest($1::text[], $2::bigint[]) x(k, s) WHERE r.key = k AND r.seq = s`), keys, seqs)
		})
		return nil
	})
}

func (w *work) noteDiscarded(it *item) {
	if ev := w.note(it, forebay.HistoryDiscarded, ""); ev != nil {
		ev.more.Text = "its queue was purged"
	}
}

// Peek lists messages as they are, oldest first; see engine.Peeker.
func (e *Engine) Peek(ctx context.Context, q engine.PeekQuery) (page engine.PeekPage, err error) {
	after, ok := parsePlace(cmp.Or(q.After, "0"))
	switch {
	case q.Limit < 0 || q.Limit > engine.MaxPeek:
		return page, bad("limit", "a limit of %d; 1 to %d are allowed", q.Limit, engine.MaxPeek)
	case !ok:
		return page, bad("after", "%.80q is not the next of a page", q.After)
	}
	if err := engine.CheckQueue(q.Queue); err != nil {
		return page, err
	}
	if err := e.enter(); err != nil {
		return page, err
	}
	defer e.leave()
	if err := e.catchUp(ctx); err != nil {
		return page, err
	}
	of, known, err := e.queues.find(ctx, e, q.Queue)
	if err != nil || !known {
		return page, err
	}
	now, err := e.stored(ctx)
	if err != nil {
		return page, err
	}
	limit, bytes, last := cmp.Or(q.Limit, engine.DefaultPeek), 0, int64(0)
	sql := `SELECT ` + itemColumns + `, b.payload FROM ~item i JOIN ~body b ON b.seq = i.seq WHERE i.queue = $1 AND i.seq > $2 ORDER BY i.seq LIMIT $3`
	return page, e.read(ctx, sql, []any{of.id, after, limit + 1}, func(rows pgx.Rows) error {
		it := &item{}
		if err := it.scan(rows, &it.payload); err != nil {
			return err
		}
		if len(page.Messages) == limit || bytes > claimedBytes {
			page.Next = placeText(last)
			return nil
		}
		bytes, last = bytes+len(it.payload), it.seq
		page.Messages = append(page.Messages, e.peeked(it, now))
		return nil
	})
}

func (e *Engine) peeked(it *item, now int64) engine.Peeked {
	p := engine.Peeked{
		Message: it.meta.message(it.id, e.queues.name(it.queue), it.kind, it.payload), Where: engine.Where(stateAt(it, now)),
		Deliveries: int(it.deliveries), Attempts: int(it.attempts), SentAt: atMicros(it.sent),
	}
	switch p.Where {
	case engine.WhereDelayed:
		p.NotBefore = e.byHere(it.due)
	case engine.WhereActive:
		p.LeaseUntil = e.byHere(it.until)
	}
	return p
}
