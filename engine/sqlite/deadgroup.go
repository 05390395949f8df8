package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// A group has a row that counts its dead letters. The commit that buries one counts it;
// a trigger counts those that leave, whoever removes them, and drops the row with the
// last one. So a list of groups reads no dead letter.

var _ engine.DeadGroups = (*Engine)(nil)

// group counts one more dead letter, and gives the fingerprint that it has.
func (t *tx) group(q *queue, kind string, c forebay.Cause, diedAt int64) (int64, error) {
	print, text := engine.DeadFingerprint(q.name, kind, c)
	known, err := t.l.db.int("SELECT 1 FROM dead_group WHERE print = ?", int64(print))
	if err != nil {
		return 0, err
	}
	if known == 0 {
		n, err := t.l.db.int("SELECT count(*) FROM dead_group")
		if err != nil {
			return 0, err
		}
		if n >= engine.MaxDeadGroups {
			print, text = engine.DeadFingerprintRest(q.name, kind, c.Code), ""
		}
	}
	return int64(print), t.exec(`INSERT INTO dead_group (print, queue, kind, code, text, n, first, last) VALUES (?, ?, ?, ?, ?, 1, ?, ?)
		ON CONFLICT (print) DO UPDATE SET n = n + 1, first = min(first, excluded.first), last = max(last, excluded.last)`,
		int64(print), q.id, kind, c.Code, text, diedAt, diedAt)
}

// loadDeadGroups groups what an earlier version has buried, or a recovery has saved.
func (l *loop) loadDeadGroups(t *tx) error {
	if l.damaged {
		return nil
	}
	type letter struct {
		seq, queue, died int64
		code, cause      string
		body             []byte
	}
	for {
		var page []letter
		err := l.db.each("SELECT seq, queue, died_at, code, cause, body FROM dead WHERE print = 0 ORDER BY seq LIMIT 500", func(s *sqlite.Stmt) error {
			page = append(page, letter{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnText(3), s.ColumnText(4), columnBytes(s, 5)})
			return nil
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, d := range page {
			g, _ := glanceAt(d.body) // one that cannot be read has no kind
			var c forebay.Cause
			_ = json.Unmarshal([]byte(d.cause), &c) // or no text
			c.Code = d.code
			q := l.byID[d.queue]
			if q == nil {
				q = &queue{id: d.queue}
			}
			print, err := t.group(q, string(g.kind), c, d.died)
			if err == nil {
				err = t.exec("UPDATE dead SET print = ? WHERE seq = ?", print, d.seq)
			}
			if err != nil {
				return err
			}
		}
	}
}

// DeadGroups lists groups; see engine.DeadGroups.
func (e *Engine) DeadGroups(ctx context.Context, q engine.DeadGroupQuery) (engine.DeadGroupPage, error) {
	limit, err := deadLimit(q.Limit)
	if err != nil {
		return engine.DeadGroupPage{}, err
	}
	q.Limit = limit
	column := map[engine.DeadOrder]string{"": "last", engine.DeadNewest: "last", engine.DeadLargest: "n"}[q.Order]
	if column == "" {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: dead groups", "%q is no order; %s and %s are", q.Order, engine.DeadNewest, engine.DeadLargest)
		err.Field = "order"
		return engine.DeadGroupPage{}, err
	}
	at := [2]int64{math.MaxInt64, math.MaxInt64}
	if q.After != "" {
		_, err := fmt.Sscanf(q.After, "%d.%d", &at[0], &at[1])
		if err != nil || placeOfGroup(at) != q.After {
			err := forebay.Errorf(forebay.CodeInvalid, "sqlite: dead groups", "%q is not the next of a page", q.After)
			err.Field = "after"
			return engine.DeadGroupPage{}, err
		}
	}
	return ask(ctx, e, func(t *tx) (engine.DeadGroupPage, error) { return t.l.deadGroups(&q, column, at) })
}

func placeOfGroup(at [2]int64) string { return fmt.Sprintf("%d.%d", at[0], at[1]) }

func deadLimit(n int) (int, error) {
	if n < 0 || n > 1000 {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: dead", "must be 1 to 1000")
		err.Field = "limit"
		return 0, err
	}
	return cmp.Or(n, 100), nil
}

func (l *loop) deadGroups(dq *engine.DeadGroupQuery, column string, at [2]int64) (page engine.DeadGroupPage, err error) {
	where, args := "("+column+", print) < (?, ?)", []any{at[0], at[1]}
	and := func(column string, value any) { where, args = where+" AND "+column+" = ?", append(args, value) }
	if dq.Queue != "" {
		q := l.queues[dq.Queue]
		if q == nil || q.id == 0 {
			return page, nil
		}
		and("queue", q.id)
	}
	if dq.Kind != "" {
		and("kind", dq.Kind)
	}
	if dq.Code != "" {
		and("code", dq.Code)
	}
	if dq.Fingerprint != 0 {
		and("print", int64(dq.Fingerprint))
	}
	var last [2]int64
	err = l.db.each("SELECT print, queue, kind, code, text, n, first, last, (SELECT max(seq) FROM dead WHERE dead.print = dead_group.print), "+column+
		" FROM dead_group WHERE "+where+" ORDER BY "+column+" DESC, print DESC LIMIT ?", func(s *sqlite.Stmt) error {
		g := engine.DeadGroup{
			Fingerprint: uint64(s.ColumnInt64(0)), Kind: s.ColumnText(2), Code: s.ColumnText(3), Text: s.ColumnText(4),
			Count: s.ColumnInt64(5), First: unix(s.ColumnInt64(6)), Last: unix(s.ColumnInt64(7)), Sample: s.ColumnInt64(8),
		}
		if q := l.byID[s.ColumnInt64(1)]; q != nil {
			g.Queue = q.name
		}
		page.Groups = append(page.Groups, g)
		last = [2]int64{s.ColumnInt64(9), s.ColumnInt64(0)}
		return nil
	}, append(args, int64(dq.Limit))...)
	if len(page.Groups) == dq.Limit {
		page.Next = placeOfGroup(last)
	}
	return page, err
}

// DeadSeqs lists dead letters, oldest first; see engine.DeadGroups.
func (e *Engine) DeadSeqs(ctx context.Context, dq engine.DeadQuery, after int64) ([]int64, error) {
	limit, err := deadLimit(dq.Limit)
	if err != nil {
		return nil, err
	}
	return ask(ctx, e, func(t *tx) (seqs []int64, err error) {
		where, args, none := t.l.deadWhere(dq)
		if none {
			return nil, nil
		}
		err = t.l.db.each("SELECT seq FROM dead WHERE "+where+" AND seq > ? ORDER BY seq LIMIT ?", func(s *sqlite.Stmt) error {
			seqs = append(seqs, s.ColumnInt64(0))
			return nil
		}, append(args, after, int64(limit))...)
		return seqs, err
	})
}
