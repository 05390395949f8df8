package postgres

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
)

// record remembers an id or a dedup key. It holds until its window has passed and its
// message is gone.
type record struct {
	key   string
	seq   int64
	queue int32
	id    string
	until int64
	print int64

	here, dead bool // its message waits or is active; is a dead letter
	finished   bool // is in the ledger
	stored     bool
	changed    bool
}

func idKey(id string) string { return "i" + id }

// dedupKey is under which a dedup key is remembered: that of a job is one of its queue.
func (w *work) dedupKey(m *forebay.Message) string {
	switch {
	case m.DedupKey == "":
		return ""
	case m.Job != nil:
		return "j" + strconv.Itoa(int(w.e.queues.id(m.Queue))) + ":" + m.DedupKey
	}
	return "k" + m.DedupKey
}

// printOf stands for what a message says.
func printOf(m *forebay.Message) int64 {
	if m.Fingerprint != 0 {
		return int64(m.Fingerprint)
	}
	return int64(xxhash.Sum64(m.Payload))
}

// know loads the records of messages, and the items that they may change.
func (w *work) know(ctx context.Context, msgs []*forebay.Message) error {
	keys := make([]string, 0, len(msgs))
	for _, m := range msgs {
		keys = append(keys, idKey(m.ID))
		if k := w.dedupKey(m); k != "" {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(slices.Compact(keys), func(k string) bool { return w.records[k] != nil })
	if len(keys) == 0 {
		return nil
	}
	rows, err := w.conn.Query(ctx, w.e.q(`SELECT r.key, r.seq, r.queue, r.id, r.until, r.print, i.seq IS NOT NULL, coalesce(n.dead, false), n.seq IS NOT NULL AND NOT n.dead
		FROM ~record r LEFT JOIN ~item i ON i.seq = r.seq LEFT JOIN ~ended n ON n.seq = r.seq
		WHERE r.key = ANY($1) ORDER BY r.key FOR UPDATE OF r`), keys)
	if err != nil {
		return err
	}
	r := record{}
	_, err = pgx.ForEachRow(rows, []any{&r.key, &r.seq, &r.queue, &r.id, &r.until, &r.print, &r.here, &r.dead, &r.finished}, func() error {
		one := r
		one.stored = true
		w.records[r.key] = &one
		return nil
	})
	if err != nil {
		return err
	}
	var seqs []int64
	for _, m := range msgs {
		if r := w.records[w.dedupKey(m)]; replaces(m) && r != nil && r.here {
			seqs = append(seqs, r.seq)
		}
	}
	return w.bySeq(ctx, seqs)
}

// here tells whether the message of a record waits or is active.
func (w *work) here(r *record) bool {
	if it := w.items[r.seq]; it != nil {
		return !it.gone
	}
	return r.here
}

// isDead tells whether the message of a record is a dead letter.
func (w *work) isDead(r *record) bool {
	if it := w.items[r.seq]; it != nil && it.gone {
		return slices.ContainsFunc(w.ended, func(d *ending) bool { return d.seq == r.seq && d.dead })
	}
	return r.dead && !slices.Contains(w.unended, r.seq)
}

// remember writes a record.
func (w *work) remember(key string, it *item, until, print int64) {
	r := w.records[key]
	if r == nil {
		r = &record{key: key}
		w.records[key] = r
	}
	r.seq, r.queue, r.id, r.until, r.print = it.seq, it.queue, it.id, until, print
	r.here, r.dead, r.finished, r.changed = true, false, false, true
}

func (w *work) writeRecords(b *pgx.Batch) {
	var rs []*record
	fresh := 0
	for _, r := range w.records {
		if r.changed {
			rs = append(rs, r)
		}
	}
	// First the new ones, in one order for all: two transactions that store the same would
	// else lock each other out.
	slices.SortFunc(rs, func(a, b *record) int { return cmp.Or(order(a.stored, b.stored), cmp.Compare(a.key, b.key)) })
	for ; fresh < len(rs) && !rs[fresh].stored; fresh++ {
	}
	args := func(rs []*record) []any {
		return []any{
			column(rs, func(r *record) string { return r.key }), column(rs, func(r *record) int64 { return r.seq }), column(rs, func(r *record) int32 { return r.queue }),
			column(rs, func(r *record) string { return r.id }), column(rs, func(r *record) int64 { return r.until }), column(rs, func(r *record) int64 { return r.print }),
		}
	}
	const from = ` FROM unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::bigint[], $6::bigint[]) x(k, s, q, i, u, p)`
	if fresh > 0 {
		b.Queue(w.e.q(`INSERT INTO ~record (key, seq, queue, id, until, look, print) SELECT k, s, q, i, u, u, p`+from), args(rs[:fresh])...)
	}
	if fresh < len(rs) {
		b.Queue(w.e.q(`UPDATE ~record SET seq = s, queue = q, id = i, until = u, look = u, print = p`+from+` WHERE key = k`), args(rs[fresh:])...)
	}
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
