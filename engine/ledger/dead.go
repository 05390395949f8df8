package ledger

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Dead letters are those of the ledger's engine. A replay rings, since what is no job
// has no history that would tell of it.

var _ engine.DeadLetters = (*Engine)(nil)

func (e *Engine) deadLetters() (engine.DeadLetters, error) {
	able, ok := engine.As[engine.DeadLetters](e.rows)
	if !ok {
		return nil, forebay.Errorf(forebay.CodeUnsupported, "ledger", "the engine that keeps jobs keeps no dead letters")
	}
	return able, nil
}

// Dead lists dead letters.
func (e *Engine) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	able, err := e.deadLetters()
	if err != nil {
		return nil, err
	}
	return able.Dead(ctx, q)
}

// Replay sends dead letters again.
func (e *Engine) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	able, err := e.deadLetters()
	if err != nil {
		return nil, err
	}
	errs, err := able.Replay(ctx, seqs)
	for _, q := range e.queues {
		q.ring()
	}
	return errs, err
}

// Discard removes dead letters for good.
func (e *Engine) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	able, err := e.deadLetters()
	if err != nil {
		return nil, err
	}
	return able.Discard(ctx, seqs)
}
