package route

import (
	"context"
	"slices"

	"github.com/forebayhq/forebay/engine"
)

var _ engine.Log = (*Engine)(nil)

// ReadLog asks the engine that keeps the queue.
func (e *Engine) ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error) {
	able, err := of[engine.Log](e, q.Queue, "keep messages after they were settled")
	if err != nil {
		return engine.LogPage{}, err
	}
	return able.ReadLog(ctx, q)
}

// Logs asks all engines that keep logs, each for its own queues.
func (e *Engine) Logs(ctx context.Context) ([]engine.LogInfo, error) {
	var all []engine.LogInfo
	for at, one := range e.all {
		able, ok := engine.As[engine.Log](one)
		if !ok {
			continue
		}
		infos, err := able.Logs(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(infos, func(i engine.LogInfo) bool { return e.queues[i.Queue] != at })...)
	}
	return all, nil
}
