package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// flush writes what has changed, in one round trip, and commits.
func (w *work) flush(ctx context.Context) error {
	b := &pgx.Batch{}
	var fresh, changed, gone []*item
	for _, it := range w.order {
		switch {
		case it.fresh && it.gone:
			w.unended = append(w.unended, it.seq) // nothing was written of it but perhaps what follows
		case it.fresh:
			fresh = append(fresh, it)
		case it.gone:
			gone = append(gone, it)
		case it.changed:
			changed = append(changed, it)
		}
	}
	w.writeRecords(b)
	w.drop(b, gone)
	w.insert(b, fresh)
	w.update(b, changed)
	w.writeEnded(b)
	w.writeLanes(b)
	for _, f := range w.more {
		f(b)
	}
	w.writeGroups(b)
	w.writeEvents(b)
	b.Queue("COMMIT")
	return w.conn.SendBatch(ctx, b).Close()
}

// column gathers one column of rows.
func column[T, R any](rows []R, f func(r R) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = f(r)
	}
	return out
}

func (w *work) insert(b *pgx.Batch, its []*item) {
	if len(its) == 0 {
		return
	}
	w.moveBodies(b, its)
	bodies := slices.DeleteFunc(slices.Clone(its), func(it *item) bool { return it.bodyOf != 0 })
	b.Queue(w.e.q(`INSERT INTO ~body (seq, id, kind, dedup, meta, payload, older) SELECT s, i, k, nullif(d, ''), m, p, nullif(o, 0)
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bytea[], $7::bigint[]) t(s, i, k, d, m, p, o)`),
		column(bodies, func(it *item) int64 { return it.seq }), column(bodies, func(it *item) string { return it.id }),
		column(bodies, func(it *item) string { return it.kind }), column(bodies, func(it *item) string { return it.dedup }),
		column(bodies, func(it *item) []byte { return encode(&it.meta) }), column(bodies, func(it *item) []byte { return notNil(it.payload) }),
		column(bodies, func(it *item) int64 { return it.older }))
	b.Queue(w.e.q(`INSERT INTO ~item (seq, queue, state, rank, sent, due, until, alarm, token, attempts, deliveries, size, job, tenant, chain, limit_key,
			expires, deadline, started)
		SELECT s, q, st, r, se, d, 0, nullif(al, 0), 0, 0, 0, si, j, t, nullif(c, ''), nullif(l, ''), ex, de, 0
		FROM unnest($1::bigint[], $2::int[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::int[], $9::bool[], $10::text[],
			$11::text[], $12::text[], $13::bigint[], $14::bigint[]) x(s, q, st, r, se, d, al, si, j, t, c, l, ex, de)`),
		column(its, func(it *item) int64 { return it.seq }), column(its, func(it *item) int32 { return it.queue }),
		column(its, func(it *item) int16 { return it.state }), column(its, func(it *item) int64 { return it.rank }),
		column(its, func(it *item) int64 { return it.sent }), column(its, func(it *item) int64 { return it.due }),
		column(its, func(it *item) int64 { return it.alarm }), column(its, func(it *item) int32 { return it.size }),
		column(its, func(it *item) bool { return it.job }), column(its, func(it *item) string { return it.tenant }),
		column(its, func(it *item) string { return it.chain }), column(its, func(it *item) string { return it.key }),
		column(its, func(it *item) int64 { return it.expires }), column(its, func(it *item) int64 { return it.deadline }))
}

// moveBodies gives the bodies of dead letters to what they are sent again as.
func (w *work) moveBodies(b *pgx.Batch, its []*item) {
	its = slices.DeleteFunc(slices.Clone(its), func(it *item) bool { return it.bodyOf == 0 })
	if len(its) > 0 {
		b.Queue(w.e.q(`UPDATE ~body b SET seq = n FROM unnest($1::bigint[], $2::bigint[]) x(o, n) WHERE b.seq = o`),
			column(its, func(it *item) int64 { return it.bodyOf }), column(its, func(it *item) int64 { return it.seq }))
	}
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (w *work) update(b *pgx.Batch, its []*item) {
	if len(its) == 0 {
		return
	}
	b.Queue(w.e.q(`UPDATE ~item i SET state = st, rank = r, due = d, until = u, alarm = nullif(al, 0), token = tk, attempts = a, deliveries = de, size = si,
			started = sr, extra = ex
		FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::int[], $9::int[], $10::int[],
			$11::bigint[], $12::bytea[]) x(s, st, r, d, u, al, tk, a, de, si, sr, ex) WHERE i.seq = s`),
		column(its, func(it *item) int64 { return it.seq }), column(its, func(it *item) int16 { return it.state }),
		column(its, func(it *item) int64 { return it.rank }), column(its, func(it *item) int64 { return it.due }),
		column(its, func(it *item) int64 { return it.until }), column(its, func(it *item) int64 { return it.alarm }),
		column(its, func(it *item) int64 { return it.token }), column(its, func(it *item) int32 { return it.attempts }),
		column(its, func(it *item) int32 { return it.deliveries }), column(its, func(it *item) int32 { return it.size }),
		column(its, func(it *item) int64 { return it.started }), column(its, func(it *item) []byte { return it.extra.encode() }))
	its = slices.DeleteFunc(slices.Clone(its), func(it *item) bool { return !it.rewritten })
	if len(its) > 0 {
		b.Queue(w.e.q(`UPDATE ~body b SET payload = coalesce(p, payload), meta = m FROM unnest($1::bigint[], $2::bytea[], $3::bytea[]) x(s, p, m) WHERE b.seq = s`),
			column(its, func(it *item) int64 { return it.seq }), column(its, func(it *item) []byte { return it.payload }),
			column(its, func(it *item) []byte { return encode(&it.meta) }))
	}
}

func (w *work) drop(b *pgx.Batch, its []*item) {
	if len(its) > 0 {
		b.Queue(w.e.q(`DELETE FROM ~item WHERE seq = ANY($1)`), column(its, func(it *item) int64 { return it.seq }))
	}
	its = slices.DeleteFunc(its, func(it *item) bool { return it.keptBody })
	w.unended = append(w.unended, column(its, func(it *item) int64 { return it.seq })...)
}

// writeEnded writes what has ended, and takes away what is kept no more.
func (w *work) writeEnded(b *pgx.Batch) {
	if len(w.unended) > 0 {
		// An id leads to the job before it again, if that is still kept.
		b.Queue(w.e.q(`WITH gone AS (DELETE FROM ~body WHERE seq = ANY($1) RETURNING seq, id, older)
			UPDATE ~record r SET seq = g.older FROM gone g WHERE g.older IS NOT NULL AND r.key = 'i' || g.id AND r.seq = g.seq`), w.unended)
	}
	ds := w.ended
	if len(ds) == 0 {
		return
	}
	b.Queue(w.e.q(`INSERT INTO ~ended (no, seq, queue, state, dead, job, sent, at, leave, keep, print, code, tell)
		SELECT CASE WHEN d THEN nextval('~dead_no') ELSE nextval('~no') END, s, q, st, d, j, se, $12, nullif(l, 0), k, p, c, t FROM unnest($1::bigint[], $2::int[], $3::text[], $4::bool[], $5::bool[], $6::bigint[], $7::bigint[],
			$8::int[], $9::bigint[], $10::text[], $11::bytea[]) x(s, q, st, d, j, se, l, k, p, c, t)`),
		column(ds, func(d *ending) int64 { return d.seq }), column(ds, func(d *ending) int32 { return d.queue }),
		column(ds, func(d *ending) string { return d.state }), column(ds, func(d *ending) bool { return d.dead }),
		column(ds, func(d *ending) bool { return d.job }), column(ds, func(d *ending) int64 { return d.sent }),
		column(ds, func(d *ending) int64 { return d.leave }), column(ds, func(d *ending) int32 { return int32(min(d.keep.Count, 1<<30)) }),
		column(ds, func(d *ending) int64 { return d.print }), column(ds, func(d *ending) string { return d.code }),
		column(ds, func(d *ending) []byte { return encode(&d.tell) }), w.now)
	w.thinNow(b)
}

const thinAtOnce = 1000 // places that a commit looks through; beyond it the keeper does

// thinNow drops the finished jobs of a queue that are more than the newest that are to be
// kept, where those are few enough to be looked through.
func (w *work) thinNow(b *pgx.Batch) {
	for s, most := range w.thin {
		if s.dead || most > thinAtOnce {
			continue
		}
		delete(w.thin, s)
		b.Queue(w.e.q(`WITH old AS MATERIALIZED (SELECT no, seq FROM (SELECT no, seq, keep, $2 + row_number() OVER (ORDER BY no DESC) AS place FROM (
				SELECT no, seq, keep FROM ~ended WHERE queue = $1 AND NOT dead AND job ORDER BY no DESC OFFSET $2 LIMIT $3) x) y WHERE keep > 0 AND place > keep),
			gone AS (DELETE FROM ~body b USING old WHERE b.seq = old.seq RETURNING b.seq, b.id, b.older),
			led AS (UPDATE ~record r SET seq = g.older FROM gone g WHERE g.older IS NOT NULL AND r.key = 'i' || g.id AND r.seq = g.seq)
			DELETE FROM ~ended n USING old WHERE NOT n.dead AND n.no = old.no`), s.queue, int64(most), 3*thinAtOnce)
	}
}

// writeLanes lets the first of chains come, and what was held by its limit key.
func (w *work) writeLanes(b *pgx.Batch) {
	if len(w.chains) > 0 {
		ls := slices.Collect(maps.Keys(w.chains))
		b.Queue(w.e.q(`WITH heads AS (
				SELECT h.seq FROM unnest($1::int[], $2::text[]) t(q, c) CROSS JOIN LATERAL (
					SELECT seq, state FROM ~item WHERE queue = t.q AND chain = t.c ORDER BY seq LIMIT 1) h WHERE h.state = 3)
			UPDATE ~item i SET state = CASE WHEN i.due > $3 THEN 1 ELSE 0 END FROM heads WHERE i.seq = heads.seq RETURNING i.queue, i.due`),
			column(ls, func(l lane) int32 { return l.queue }), column(ls, func(l lane) string { return l.name }), w.now).Query(w.came)
	}
	if len(w.freed) > 0 {
		ls := slices.Collect(maps.Keys(w.freed))
		b.Queue(w.e.q(`WITH free AS (
				SELECT h.seq FROM unnest($1::int[], $2::text[], $3::int[]) t(q, k, n) CROSS JOIN LATERAL (
					SELECT seq FROM ~item WHERE queue = t.q AND limit_key = t.k AND state = 4 ORDER BY rank, seq LIMIT t.n) h)
			UPDATE ~item i SET state = 0 FROM free WHERE i.seq = free.seq RETURNING i.queue, 0::bigint`),
			column(ls, func(l lane) int32 { return l.queue }), column(ls, func(l lane) string { return l.name }),
			column(ls, func(l lane) int32 { return w.freed[l] })).Query(w.came)
	}
}

// came takes in what a statement has let come.
func (w *work) came(rows pgx.Rows) error {
	var queue int32
	var due int64
	_, err := pgx.ForEachRow(rows, []any{&queue, &due}, func() error {
		if due > w.now {
			w.soon(due)
		} else {
			w.wake[w.queueName(queue)] = true
		}
		return nil
	})
	return err
}

// writeEvents is the last of all: while it holds its lock, readers of the history wait.
func (w *work) writeEvents(b *pgx.Batch) {
	evs := w.events
	if len(evs) == 0 {
		return
	}
	w.news = true
	b.Queue(`SELECT pg_advisory_xact_lock_shared($1, $2)`, w.e.class, historyLock)
	b.Queue(w.e.q(`INSERT INTO ~event (at, type, job, queue, kind, attempt, state, more)
		SELECT $1, t, j, q, k, a, s, m FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[], $8::bytea[])
			WITH ORDINALITY x(t, j, q, k, a, s, m, n) ORDER BY n`), w.now,
		column(evs, func(ev event) string { return string(ev.typ) }), column(evs, func(ev event) string { return ev.job }),
		column(evs, func(ev event) string { return ev.queue }), column(evs, func(ev event) string { return ev.kind }),
		column(evs, func(ev event) int32 { return ev.attempt }), column(evs, func(ev event) string { return string(ev.state) }),
		column(evs, func(ev event) []byte { return ev.more.encode() }))
}
