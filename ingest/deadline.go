package ingest

import (
	"context"
	"sync/atomic"
	"time"
)

// Deadlines gives contexts that end after a time. Those who ask within a tenth of
// that time share one, which lives as much longer: a request costs no timer.
type Deadlines struct {
	After time.Duration
	last  atomic.Pointer[deadline]
}

type deadline struct {
	ctx    context.Context
	cancel context.CancelFunc
	shared time.Time // until when it is given away
}

// Next gives a context for something that begins now.
func (d *Deadlines) Next() context.Context {
	now := time.Now()
	last := d.last.Load()
	if last != nil && now.Before(last.shared) {
		return last.ctx
	}
	share := d.After / 10
	made := &deadline{shared: now.Add(share)}
	made.ctx, made.cancel = context.WithTimeout(context.Background(), d.After+share)
	if !d.last.CompareAndSwap(last, made) {
		made.cancel()
		return d.last.Load().ctx
	}
	return made.ctx
}
