package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const mostDead = 1000 // of one answer

func checkDeadLimit(limit int) error {
	if limit < 0 || limit > mostDead {
		return bad("limit", "a limit of %d; 1 to %d are allowed", limit, mostDead)
	}
	return nil
}

// deadWhere is the condition of a query, from the argument $1 on.
func (e *Engine) deadWhere(ctx context.Context, q *engine.DeadQuery) (string, []any, error) {
	queue := int32(0)
	if q.Queue != "" {
		of, ok, err := e.queues.find(ctx, e, q.Queue)
		if err != nil {
			return "", nil, err
		}
		if queue = of.id; !ok {
			queue = -1 // nothing has it
		}
	}
	where, args := `n.dead AND ($1::bigint = 0 OR n.no < $1)`, []any{q.Before}
	add := func(cond string, arg any) {
		args = append(args, arg)
		where += ` AND ` + cond + placeholder(len(args))
	}
	if queue != 0 {
		add(`n.queue = `, queue)
	}
	if q.ID != "" {
		args = append(args, idKey(q.ID))
		where += ` AND n.seq = (SELECT seq FROM ~record WHERE key = ` + placeholder(len(args)) + `)`
	}
	if q.Code != "" {
		add(`n.code = `, plainText(q.Code))
	}
	if q.Group != 0 {
		add(`n.print = `, int64(q.Group))
	}
	return where, args, nil
}

// Dead lists dead letters; see engine.DeadLetters.
func (e *Engine) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	if err := checkDeadLimit(q.Limit); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := e.catchUp(ctx); err != nil {
		return nil, err
	}
	where, args, err := e.deadWhere(ctx, &q)
	if err != nil {
		return nil, err
	}
	if err := e.queues.learn(ctx, e, ""); err != nil {
		return nil, err
	}
	var out []forebay.DeadLetter
	args = append(args, cmp.Or(q.Limit, 100))
	sql := `SELECT ` + endingColumns + `, b.payload FROM ~ended n JOIN ~body b ON b.seq = n.seq WHERE ` + where + ` ORDER BY n.no DESC LIMIT ` + placeholder(len(args))
	return out, e.read(ctx, sql, args, func(rows pgx.Rows) error {
		d := &ending{}
		if err := d.scan(rows, &d.payload); err != nil {
			return err
		}
		out = append(out, e.letter(d))
		return nil
	})
}

// DeadSeqs lists numbers, oldest first; see engine.DeadGroups.
func (e *Engine) DeadSeqs(ctx context.Context, q engine.DeadQuery, after int64) ([]int64, error) {
	if err := checkDeadLimit(q.Limit); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	where, args, err := e.deadWhere(ctx, &q)
	if err != nil {
		return nil, err
	}
	var out []int64
	args = append(args, after, cmp.Or(q.Limit, 100))
	sql := `SELECT n.no FROM ~ended n WHERE ` + where + ` AND n.no > ` + placeholder(len(args)-1) + ` ORDER BY n.no LIMIT ` + placeholder(len(args))
	return out, e.read(ctx, sql, args, func(rows pgx.Rows) error {
		var no int64
		err := rows.Scan(&no)
		out = append(out, no)
		return err
	})
}

// Replay sends dead letters again; see engine.DeadLetters.
func (e *Engine) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	return e.endDead(ctx, column(seqs, func(no int64) engine.DeadEnd { return engine.DeadEnd{Seq: no} }), func(w *work, d *ending, _ *engine.DeadEnd) { w.replay(d) })
}

// Discard removes dead letters; see engine.DeadLetters.
func (e *Engine) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	return e.EndDead(ctx, column(seqs, func(no int64) engine.DeadEnd { return engine.DeadEnd{Seq: no} }))
}

// EndDead takes dead letters away; see engine.DeadGroups.
func (e *Engine) EndDead(ctx context.Context, ends []engine.DeadEnd) ([]error, error) {
	return e.endDead(ctx, ends, func(w *work, d *ending, end *engine.DeadEnd) {
		if end.Next == nil {
			w.discard([]*ending{d}, end.Reason)
			return
		}
		w.noteEnding(d, forebay.HistoryReplayed, "as job "+end.Next.ID)
		w.dropEndings([]*ending{d}, true)
		w.send(end.Next)
	})
}

// endDead ends dead letters in the order of dying, whatever the order of asking.
func (e *Engine) endDead(ctx context.Context, ends []engine.DeadEnd, f func(w *work, d *ending, end *engine.DeadEnd)) ([]error, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	errs, order, now := make([]error, len(ends)), []int(nil), e.now()
	for i := range ends {
		if ends[i].Next != nil {
			errs[i] = engine.CheckMessage(ends[i].Next, now)
		}
		if errs[i] == nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ends[a].Seq, ends[b].Seq) })
	for part := range slices.Chunk(order, atOnce) {
		if err := e.endDeadSome(ctx, ends, errs, part, f); err != nil {
			return nil, err
		}
	}
	return errs, nil
}

func (e *Engine) endDeadSome(ctx context.Context, ends []engine.DeadEnd, errs []error, part []int, f func(w *work, d *ending, end *engine.DeadEnd)) error {
	p, nos, next := plan{seqs: len(part)}, make([]int64, len(part)), []*forebay.Message(nil)
	for n, i := range part {
		nos[n] = ends[i].Seq
		if ends[i].Next != nil {
			next = append(next, ends[i].Next)
		}
	}
	if err := e.planned(ctx, next, &p); err != nil {
		return err
	}
	if err := e.read(ctx, `SELECT DISTINCT queue FROM ~ended WHERE dead AND no = ANY($1)`, []any{nos}, func(rows pgx.Rows) error {
		var id int32
		err := rows.Scan(&id)
		p.alone = append(p.alone, id)
		return err
	}); err != nil {
		return err
	}
	return e.do(ctx, p, func(ctx context.Context, w *work) error {
		ds, err := w.endings(ctx, `n.dead AND n.no = ANY($1) ORDER BY n.no FOR UPDATE OF n`, nos)
		if err != nil {
			return err
		}
		if err := w.know(ctx, append(column(ds, func(d *ending) *forebay.Message { return &forebay.Message{ID: d.id} }), next...)); err != nil {
			return err
		}
		for _, i := range part {
			errs[i] = nil
			at := slices.IndexFunc(ds, func(d *ending) bool { return d.no == ends[i].Seq })
			if at < 0 {
				errs[i] = fail(forebay.CodeNotFound, "there is no dead letter %d", ends[i].Seq)
				continue
			}
			f(w, ds[at], &ends[i])
			ds = slices.Delete(ds, at, at+1)
		}
		return nil
	})
}

// replay lets a dead letter wait again, as if it had just been sent.
func (w *work) replay(d *ending) {
	w.dropEndings([]*ending{d}, false)
	m := d.meta.message(d.id, w.queueName(d.queue), d.kind, nil)
	it := &item{
		seq: w.takeSeq(), queue: d.queue, sent: w.now, rank: rankOf(w.now, m.Priority), job: d.job, tenant: tenantOf(&m), chain: chainOf(&m), key: m.LimitKey,
		id: d.id, kind: d.kind, dedup: w.dedupKey(&m), meta: d.meta, fresh: true, bodyOf: d.seq, size: d.size,
	}
	if m.Job != nil {
		it.expires, it.deadline = w.byServer(m.Job.Expires), w.byServer(m.Job.Deadline)
	}
	w.add(it)
	if r := w.records[idKey(d.id)]; r != nil {
		r.seq, r.here, r.dead, r.changed = it.seq, true, false, true
	}
	w.more = append(w.more, func(b *pgx.Batch) {
		b.Queue(w.e.q(`UPDATE ~record SET seq = $1 WHERE seq = $2 AND key = $3`), it.seq, d.seq, it.dedup)
	})
	w.note(it, forebay.HistoryReplayed, forebay.StateWaiting)
}
