package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
)

// outageOver is how long nothing may fail before an outage counts as over: where
// every other request fails, that is one outage and not a thousand.
const outageOver = 5 * time.Second

// outage logs when events cannot be stored and when they can again: a line for each
// kind of failure, not for each request.
type outage struct {
	logger *slog.Logger
	on     atomic.Bool // so that a request that is well takes no lock

	mu      sync.Mutex
	last    time.Time
	refused int
	codes   map[forebay.Code]bool // that were logged
}

// failed notes what kept a request's events from being stored. A client that has
// gone is no failure of ours.
func (o *outage) failed(err error, now time.Time) {
	if errors.Is(err, context.Canceled) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on.Load() {
		o.refused, o.codes = 0, map[forebay.Code]bool{}
		o.on.Store(true)
	}
	o.last = now
	o.refused++
	if code := forebay.CodeOf(err); !o.codes[code] {
		o.codes[code] = true
		o.logger.Error("events cannot be stored", "error", err)
	}
}

// stored notes that a request's events were.
func (o *outage) stored(now time.Time) {
	if !o.on.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.on.Load() && now.Sub(o.last) >= outageOver {
		o.on.Store(false)
		o.logger.Info("events are stored again", "refusedRequests", o.refused)
	}
}
