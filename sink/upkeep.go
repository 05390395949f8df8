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

// Upkeep runs maintain again and again until ctx ends. failed is how it went last;
// only the first of several failures is logged.
func (w *Writer) Upkeep(ctx context.Context, failed error, maintain func(context.Context) error) {
	for {
		next := upkeepEvery
		if failed != nil {
			next = upkeepRetry
		}
		if wait(ctx, next) != nil {
			return
		}
		before := failed
		failed = maintain(ctx)
		if failed != nil && before == nil && ctx.Err() == nil {
			w.cfg.Logger.Warn("upkeep of the table failed, it is tried again each minute",
				slog.String("sink", w.cfg.Name), slog.String("reason", failed.Error()))
		}
	}
}
