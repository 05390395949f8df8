package forebay

import "context"

type drainingKey struct{}

// WithDraining gives a handler's context the signal that Draining reads.
func WithDraining(ctx context.Context, signal <-chan struct{}) context.Context {
	return context.WithValue(ctx, drainingKey{}, signal)
}

// Draining is closed when the worker that runs a handler begins to drain, long
// before it ends the handler's context. A handler that only waits (for a database
// that is away) looks at it and gives its messages back at once with ErrDraining,
// instead of holding up the shutdown. Outside a worker it is nil and never closed.
func Draining(ctx context.Context) <-chan struct{} {
	signal, _ := ctx.Value(drainingKey{}).(<-chan struct{})
	return signal
}
