package sqlite

import "context"

// change is what ops that write have in common.
type change struct{}

func (change) size() int64     { return 256 }
func (change) messages() int64 { return 1 }
func (change) publish(*tx)     {}
func (change) abort()          {}
func (change) durable() bool   { return true }

// ask submits a question and gives its answer. When the call ends early, the
// answer is the loop's alone.
func ask[T any](ctx context.Context, e *Engine, f func(*tx) (T, error)) (T, error) {
	answer := new(T)
	err := e.submit(ctx, question(func(t *tx) (err error) {
		*answer, err = f(t)
		return err
	}))
	if err != nil {
		var none T
		return none, err
	}
	return *answer, nil
}

// question is an op that reads only.
type question func(t *tx) error

func (question) size() int64         { return 64 }
func (question) messages() int64     { return 1 }
func (f question) apply(t *tx) error { return f(t) }
func (question) publish(*tx)         {}
func (question) abort()              {}
func (question) durable() bool       { return false }
