package ingest

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines gives contexts that end after a time. Those who ask within a tenth of
// that time share one, which lives as much longer: a request costs no timer.
type deadlines struct {
	after time.Duration
	last  atomic.Pointer[deadline]
}

type deadline struct {
	ctx    context.Context
	cancel context.CancelFunc
	shared time.Time // until when it is given away
}

func (d *deadlines) next() context.Context {
	now := time.Now()
	last := d.last.Load()
	if last != nil && now.Before(last.shared) {
		return last.ctx
	}
	share := d.after / 10
	made := &deadline{shared: now.Add(share)}
	made.ctx, made.cancel = context.WithTimeout(context.Background(), d.after+share)
	if !d.last.CompareAndSwap(last, made) {
		made.cancel()
		return d.last.Load().ctx
	}
	return made.ctx
}
