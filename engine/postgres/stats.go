package postgres

import (
	"cmp"
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
)

// tally counts what counts since the opening.
type tally struct {
	mu  sync.Mutex // guards all
	all map[string]*forebay.QueueStats
}

func (t *tally) add(cs []counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[string]*forebay.QueueStats)
	}
	for _, c := range cs {
		s := t.all[c.queue]
		if s == nil {
			s = &forebay.QueueStats{}
			t.all[c.queue] = s
		}
		s.Sent += c.what.Sent
		s.Duplicate += c.what.Duplicate
		s.Conflict += c.what.Conflict
		s.Completed += c.what.Completed
		s.Cancelled += c.what.Cancelled
		s.Expired += c.what.Expired
	}
}

// of gives the counts of one queue.
func (t *tally) of(queue string) forebay.QueueStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.all[queue]; s != nil {
		return *s
	}
	return forebay.QueueStats{}
}

// Stats counts; see engine.Engine. It reads what is there: its cost grows with the backlog,
// that of no other call does.
func (e *Engine) Stats(ctx context.Context, names ...string) ([]forebay.QueueStats, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.catchUp(ctx); err != nil {
		return nil, err
	}
	if err := e.queues.learn(ctx, e, ""); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = e.queues.all()
	}
	out, at := make([]forebay.QueueStats, len(names)), make(map[int32][]int)
	ids := make([]int32, 0, len(names))
	for i, name := range names {
		out[i] = e.tally.of(name)
		out[i].Queue = name
		if q, ok := e.queues.get(name); ok {
			ids, at[q.id] = append(ids, q.id), append(at[q.id], i)
		}
	}
	now, err := e.stored(ctx)
	if err != nil {
		return nil, err
	}
	const sql = `SELECT queue, count(*) FILTER (WHERE state <> 2 AND due <= $2 OR state = 2 AND until <= $2), count(*) FILTER (WHERE state = 2 AND until > $2),
			count(*) FILTER (WHERE state <> 2 AND due > $2), 0::bigint, coalesce(min(sent) FILTER (WHERE state <> 2 AND due <= $2), 0), sum(size)::bigint
		FROM ~item WHERE queue = ANY($1) GROUP BY queue
		UNION ALL SELECT queue, 0, 0, 0, count(*), 0, 0 FROM ~ended WHERE dead AND queue = ANY($1) GROUP BY queue`
	return out, e.read(ctx, sql, []any{ids, now}, func(rows pgx.Rows) error {
		var id int32
		var s forebay.QueueStats
		var oldest int64
		if err := rows.Scan(&id, &s.Waiting, &s.Active, &s.Delayed, &s.Dead, &oldest, &s.Bytes); err != nil {
			return err
		}
		for _, i := range at[id] {
			o := &out[i]
			o.Waiting, o.Active, o.Delayed, o.Dead, o.Bytes = o.Waiting+s.Waiting, o.Active+s.Active, o.Delayed+s.Delayed, o.Dead+s.Dead, o.Bytes+s.Bytes
			o.Oldest = cmp.Or(o.Oldest, atMicros(oldest))
		}
		return nil
	})
}

// stored is the time by which stored times are judged.
func (e *Engine) stored(ctx context.Context) (now int64, err error) {
	if e.cfg.Now != nil {
		return e.cfg.Now().UnixMicro(), nil
	}
	return now, e.read(ctx, clock, nil, func(rows pgx.Rows) error { return rows.Scan(&now) })
}
