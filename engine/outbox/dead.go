package outbox

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// The dead letters of a remote engine that keeps none are in the local one, together
// with those of others, which are not shown and not touched.

// localDead finds who keeps dead letters.
func (e *Engine) localDead() (engine.DeadLetters, error) {
	if able, ok := engine.As[engine.DeadLetters](e.remote); ok {
		return able, nil
	}
	able, ok := engine.As[engine.DeadLetters](e.local)
	if !ok {
		return nil, forebay.Errorf(forebay.CodeUnsupported, "outbox", "neither engine keeps dead letters")
	}
	return able, nil
}

// Dead lists dead letters, by the names of their remote queues.
func (e *Engine) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	const most, usual = 1000, 100
	able, err := e.localDead()
	if err != nil {
		return nil, err
	}
	if e.keepsDead() || q.Limit < 0 || q.Limit > most {
		return able.Dead(ctx, q) // which refuses what is out of bounds
	}
	limit := q.Limit
	if limit == 0 {
		limit = usual
	}
	queue := q.Queue
	q.Queue, q.Limit = "", most // each has two local ones
	var out []forebay.DeadLetter
	for {
		page, err := able.Dead(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			q.Before = d.Seq
			if !e.isOurs(&d.Message) || queue != "" && e.remoteName(&d.Message) != queue {
				continue
			}
			d.Message = e.forRemote(&d.Message)
			if out = append(out, d); len(out) == limit {
				return out, nil
			}
		}
		if len(page) < most {
			return out, nil
		}
	}
}

// Replay sends dead letters again: they wait here, and go to the remote engine.
func (e *Engine) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	able, err := e.localDead()
	if err != nil {
		return nil, err
	}
	errs, err := able.Replay(ctx, seqs)
	if err == nil && !e.keepsDead() {
		err = e.recount(ctx)
	}
	return errs, err
}

// recount reads what waits locally of all queues, after a replay.
func (e *Engine) recount(ctx context.Context) error {
	if err := e.recall(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	names := make([]string, 0, len(e.queues))
	for name := range e.queues {
		names = append(names, name)
	}
	e.mu.Unlock()
	for _, name := range names {
		n, _, err := e.left(ctx, name)
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.queues[name].waiting = max(n, e.queues[name].waiting)
		e.mu.Unlock()
	}
	e.ring()
	return nil
}

// Discard removes dead letters for good.
func (e *Engine) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	able, err := e.localDead()
	if err != nil {
		return nil, err
	}
	return able.Discard(ctx, seqs)
}

// buried tells whether a message is a dead letter here.
func (e *Engine) buried(ctx context.Context, id string) (bool, error) {
	if able, ok := engine.As[engine.DeadLetters](e.local); ok {
		some, err := able.Dead(ctx, engine.DeadQuery{ID: id})
		for _, d := range some {
			if e.isOurs(&d.Message) {
				return true, err
			}
		}
		return false, err
	}
	return false, forebay.Errorf(forebay.CodeUnsupported, "outbox", "the local engine keeps no dead letters either")
}

func (e *Engine) isOurs(m *forebay.Message) bool {
	_, yes := e.ours(m.Queue)
	return yes
}
