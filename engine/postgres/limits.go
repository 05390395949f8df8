package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func checkLimits(name string, l engine.QueueLimits) error {
	if err := engine.CheckQueue(name); err != nil {
		return err
	}
	if min(l.Active, l.KeyActive, l.Rate.Count, l.Rate.Burst, l.KeyRate.Count, l.KeyRate.Burst) < 0 || min(l.Rate.Per, l.KeyRate.Per) < 0 {
		return fail(forebay.CodeInvalid, "a limit of queue %q is below 0; 0 (none) or more is allowed", name)
	}
	return nil
}

// SetLimits sets the limits of a queue; see engine.Limiter. What was held by its limit key
// is looked at again, all of it at once.
func (e *Engine) SetLimits(ctx context.Context, name string, l engine.QueueLimits) error {
	if err := checkLimits(name, l); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.queues.ensure(ctx, e, []*forebay.Message{{Queue: name}}); err != nil {
		return err
	}
	q, _ := e.queues.get(name)
	var stored []byte
	if l != (engine.QueueLimits{}) {
		stored = encode(l)
	}
	return e.do(ctx, plan{alone: []int32{q.id}}, func(_ context.Context, w *work) error {
		w.more = append(w.more, func(b *pgx.Batch) {
			b.Queue(w.e.q(`UPDATE ~queue SET limits = $2 WHERE id = $1`), q.id, stored)
			b.Queue(w.e.q(`UPDATE ~item SET state = 0 WHERE queue = $1 AND limit_key IS NOT NULL AND state = 4`), q.id)
			b.Queue(w.e.q(`UPDATE ~pace SET wake = NULL WHERE queue = $1`), q.id)
		})
		w.wake[name] = true
		return nil
	})
}

// QueueLimits tells the limits of a queue; see engine.Limiter.
func (e *Engine) QueueLimits(ctx context.Context, name string) (l engine.QueueLimits, err error) {
	if err := e.enter(); err != nil {
		return l, err
	}
	defer e.leave()
	return l, e.read(ctx, `SELECT limits FROM ~queue WHERE name = $1 AND limits IS NOT NULL`, []any{name}, func(rows pgx.Rows) error {
		var stored []byte
		if err := rows.Scan(&stored); err != nil {
			return err
		}
		if err := json.Unmarshal(stored, &l); err != nil {
			return fail(forebay.CodeDamaged, "the limits of queue %q cannot be read: %v", name, err)
		}
		return nil
	})
}
