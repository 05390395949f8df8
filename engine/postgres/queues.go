package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
)

// queues are those that this engine has met: their names and numbers never change.
type queues struct {
	mu     sync.Mutex // guards all below
	byName map[string]*queue
	byID   map[int32]*queue
}

type queue struct {
	id      int32
	name    string
	special bool // it has had more than plain messages
}

func (qs *queues) get(name string) (queue, bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		return queue{}, false
	}
	return *q, true
}

// id is that of a queue that is known; 0: it is not.
func (qs *queues) id(name string) int32 {
	q, _ := qs.get(name)
	return q.id
}

func (qs *queues) name(id int32) string {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byID[id]; q != nil {
		return q.name
	}
	return ""
}

func (qs *queues) put(q queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.byName == nil {
		qs.byName, qs.byID = make(map[string]*queue), make(map[int32]*queue)
	}
	qs.byName[q.name], qs.byID[q.id] = &q, &q
}

func (qs *queues) all() []string {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	var out []string
	for name := range qs.byName {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// ensure makes the queues of messages known, and what they are.
func (qs *queues) ensure(ctx context.Context, e *Engine, msgs []*forebay.Message) error {
	wanted := make(map[string]bool) // name: is it special
	for _, m := range msgs {
		q, ok := qs.get(m.Queue)
		if sp := special(m); !ok || sp && !q.special {
			wanted[m.Queue] = wanted[m.Queue] || sp
		}
	}
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := qs.create(ctx, e, name, wanted[name]); err != nil {
			return err
		}
	}
	return nil
}

// create makes one queue, or learns its number.
func (qs *queues) create(ctx context.Context, e *Engine, name string, special bool) error {
	const insert = `INSERT INTO ~queue (name, special) SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM ~queue WHERE name = $1) ON CONFLICT (name) DO NOTHING`
	if err := e.read(ctx, insert, []any{name, special}, func(pgx.Rows) error { return nil }); err != nil {
		return err
	}
	const mark = `UPDATE ~queue SET special = true WHERE name = $1 AND NOT special`
	if special {
		if err := e.read(ctx, mark, []any{name}, func(pgx.Rows) error { return nil }); err != nil {
			return err
		}
	}
	return qs.learn(ctx, e, name)
}

// learn asks for queues; "": for all. One that there is not stays unknown.
func (qs *queues) learn(ctx context.Context, e *Engine, name string) error {
	return e.read(ctx, `SELECT id, name, special FROM ~queue WHERE $1 = '' OR name = $1`, []any{name}, func(rows pgx.Rows) error {
		var q queue
		err := rows.Scan(&q.id, &q.name, &q.special)
		if err == nil {
			qs.put(q)
		}
		return err
	})
}

// find is get that asks for what is not known.
func (qs *queues) find(ctx context.Context, e *Engine, name string) (queue, bool, error) {
	q, ok := qs.get(name)
	if ok {
		return q, true, nil
	}
	if err := qs.learn(ctx, e, name); err != nil {
		return q, false, err
	}
	q, ok = qs.get(name)
	return q, ok, nil
}

// nameOf is name that asks for what is not known.
func (qs *queues) nameOf(ctx context.Context, e *Engine, ids []int32) error {
	if !slices.ContainsFunc(ids, func(id int32) bool { return qs.name(id) == "" }) {
		return nil
	}
	return qs.learn(ctx, e, "")
}
