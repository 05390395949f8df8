package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/engine"
)

// deadDelta is one dead letter more, or less, of a group.
type deadDelta struct {
	print                   int64
	queue, kind, code, text string
	n, at                   int64
}

// writeGroups counts dead letters by their cause, so that to list the groups asks for no
// dead letter.
func (w *work) writeGroups(b *pgx.Batch) {
	all := make(map[int64]*deadDelta)
	for _, d := range w.groups {
		have := all[d.print]
		if have == nil {
			one := d
			all[d.print] = &one
			continue
		}
		n := have.n + d.n
		if d.n > 0 {
			*have = d
		}
		have.n = n
	}
	ds := slices.SortedFunc(maps.Values(all), func(a, b *deadDelta) int { return cmp.Compare(a.print, b.print) })
	if len(ds) == 0 {
		return
	}
	prints := column(ds, func(d *deadDelta) int64 { return d.print })
	more := slices.DeleteFunc(slices.Clone(ds), func(d *deadDelta) bool { return d.at == 0 })
	if len(more) > 0 {
		b.Queue(w.e.q(`INSERT INTO ~deadgroup (print, queue, kind, code, said, count, first, last, sample)
			SELECT p, q, k, c, t, 0, a, a, 0 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) x(p, q, k, c, t, a)
			ON CONFLICT (print) DO UPDATE SET last = excluded.last`),
			column(more, func(d *deadDelta) int64 { return d.print }), column(more, func(d *deadDelta) string { return d.queue }),
			column(more, func(d *deadDelta) string { return d.kind }), column(more, func(d *deadDelta) string { return d.code }),
			column(more, func(d *deadDelta) string { return d.text }), column(more, func(d *deadDelta) int64 { return d.at }))
	}
	b.Queue(w.e.q(`UPDATE ~deadgroup g SET count = count + n, sample = coalesce((SELECT no FROM ~ended e WHERE e.print = p AND e.dead ORDER BY no DESC LIMIT 1), 0)
		FROM unnest($1::bigint[], $2::bigint[]) x(p, n) WHERE g.print = p`), prints, column(ds, func(d *deadDelta) int64 { return d.n }))
	b.Queue(w.e.q(`DELETE FROM ~deadgroup WHERE print = ANY($1) AND count <= 0`), prints)
}

// DeadGroups lists what dead letters there are; see engine.DeadGroups.
func (e *Engine) DeadGroups(ctx context.Context, q engine.DeadGroupQuery) (page engine.DeadGroupPage, err error) {
	if err := checkDeadLimit(q.Limit); err != nil {
		return page, err
	}
	after, ok := parsePlace(cmp.Or(q.After, "0"))
	switch {
	case !ok:
		return page, bad("after", "%.80q is not the next of a page", q.After)
	case q.Order != "" && q.Order != engine.DeadNewest && q.Order != engine.DeadLargest:
		return page, bad("order", "the order %q is not known; %s or %s is allowed", q.Order, engine.DeadNewest, engine.DeadLargest)
	}
	if err := e.enter(); err != nil {
		return page, err
	}
	defer e.leave()
	if err := e.catchUp(ctx); err != nil {
		return page, err
	}
	by := "sample DESC"
	if q.Order == engine.DeadLargest {
		by = "count DESC, sample DESC"
	}
	limit := int64(cmp.Or(q.Limit, 100))
	sql := `SELECT print, queue, kind, code, said, count, first, last, sample FROM ~deadgroup WHERE ($1 = '' OR queue = $1) AND ($2 = '' OR kind = $2)
		AND ($3 = '' OR code = $3) AND ($4::bigint = 0 OR print = $4) ORDER BY ` + by + ` OFFSET $5 LIMIT $6`
	return page, e.read(ctx, sql, []any{q.Queue, q.Kind, plainText(q.Code), int64(q.Fingerprint), after, limit + 1}, func(rows pgx.Rows) error {
		var g engine.DeadGroup
		var print, first, last int64
		if err := rows.Scan(&print, &g.Queue, &g.Kind, &g.Code, &g.Text, &g.Count, &first, &last, &g.Sample); err != nil {
			return err
		}
		if int64(len(page.Groups)) == limit {
			page.Next = placeText(after + limit)
			return nil
		}
		g.Fingerprint, g.First, g.Last = uint64(print), atMicros(first), atMicros(last)
		page.Groups = append(page.Groups, g)
		return nil
	})
}

// parsePlace reads the next of a page.
func parsePlace(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

func placeText(n int64) string { return strconv.FormatInt(n, 10) }

func placeholder(n int) string { return "$" + strconv.Itoa(n) }
