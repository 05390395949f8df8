package broker

import (
	"context"

	"github.com/forebayhq/forebay/engine"
)

// ReadLog reads messages as they were sent, also those that were settled long ago, as
// engine.Log says.
func (b *Broker) ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error) {
	if b.able.log == nil {
		return engine.LogPage{}, noLog()
	}
	if err := engine.CheckLogQuery(&q); err != nil {
		return engine.LogPage{}, err
	}
	return b.able.log.ReadLog(ctx, q)
}

// Logs tells what is kept of messages, by queue.
func (b *Broker) Logs(ctx context.Context) ([]engine.LogInfo, error) {
	if b.able.log == nil {
		return nil, noLog()
	}
	return b.able.log.Logs(ctx)
}

func noLog() error { return unsupported("keep messages after they were settled") }
