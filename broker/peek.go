package broker

import (
	"context"

	"github.com/forebayhq/forebay/engine"
)

// Peek looks at messages of a queue without a hand-out, as engine.Peeker says.
func (b *Broker) Peek(ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
	if b.able.peeker == nil {
		return engine.PeekPage{}, unsupported("show messages without handing them out")
	}
	if err := engine.CheckQueue(q.Queue); err != nil {
		return engine.PeekPage{}, err
	}
	return b.able.peeker.Peek(ctx, q)
}
