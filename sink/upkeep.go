package sink

import (
	"context"
	"log/slog"
	"time"
)

const (
	upkeepEvery = time.Hour
	upkeepRetry = time.Minute // after a failure
)

// Upkeep runs maintain at once, and then again and again until ctx ends. It may
// take long and belongs into a goroutine of its own.
func (w *Writer) Upkeep(ctx context.Context, maintain func(context.Context) error) {
	w.UpkeepAfter(ctx, w.tend(ctx, nil, maintain), maintain)
}

// UpkeepAfter is Upkeep where maintain has just been run; failed is how it went.
func (w *Writer) UpkeepAfter(ctx context.Context, failed error, maintain func(context.Context) error) {
	for {
		next := upkeepEvery
		if failed != nil {
			next = upkeepRetry
		}
		if wait(ctx, next) != nil {
			return
		}
		failed = w.tend(ctx, failed, maintain)
	}
}

// tend runs maintain once; only the first of several failures is logged.
func (w *Writer) tend(ctx context.Context, before error, maintain func(context.Context) error) error {
	err := maintain(ctx)
	if err != nil && before == nil && ctx.Err() == nil {
		w.cfg.Logger.Warn("upkeep of the table failed, it is tried again each minute",
			slog.String("sink", w.cfg.Name), slog.String("reason", err.Error()))
	}
	return err
}
