package outbox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// statsTimeout bounds what the remote engine is asked for numbers.
const statsTimeout = 5 * time.Second

// Stats counts both engines together. Of a remote engine that does not answer it gives
// what that one told last, or nothing: what waits here is known all the same, and
// Backlog tells that the other is away.
func (e *Engine) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	all, err := e.remoteStats(ctx, queues)
	if err != nil {
		return nil, err
	}
	for i := range all {
		s := &all[i]
		waiting, _ := e.localName(s.Queue, false)
		dead, _ := e.localName(s.Queue, true)
		own, err := e.local.Stats(ctx, waiting, dead)
		if err != nil {
			return nil, err
		}
		for _, l := range own {
			s.Waiting += l.Waiting + l.Active // what is being forwarded could be handed out next
			s.Delayed += l.Delayed
			s.Dead += l.Dead
			s.Bytes += l.Bytes
			if s.Oldest.IsZero() || !l.Oldest.IsZero() && l.Oldest.Before(s.Oldest) {
				s.Oldest = l.Oldest
			}
		}
	}
	return all, nil
}

// remoteStats asks the remote engine, or remembers. Its error is that of ctx.
func (e *Engine) remoteStats(ctx context.Context, queues []string) ([]forebay.QueueStats, error) {
	call, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	all, err := e.remote.Stats(call, queues...)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		for _, s := range all {
			e.told[s.Queue] = s
		}
		return all, nil
	case ctx.Err() != nil || forebay.CodeOf(err) == forebay.CodeClosed:
		return nil, err
	}
	if len(queues) == 0 {
		queues = slices.Sorted(maps.Keys(e.queues))
	}
	for _, name := range queues {
		last := e.told[name]
		last.Queue = name
		all = append(all, last)
	}
	return all, nil
}

// Backlog is what waits locally of one queue.
type Backlog struct {
	Queue    string
	Messages int64
	Away     bool // the remote engine is not asked by Send now
}

// Backlog tells what waits locally, by queue, and of how many bytes all of it is,
// about. It asks no engine.
func (e *Engine) Backlog() (queues []Backlog, bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, q := range e.queues {
		queues = append(queues, Backlog{q.name, q.waiting, q.failures > 0})
	}
	slices.SortFunc(queues, func(a, b Backlog) int { return cmp.Compare(a.Queue, b.Queue) })
	return queues, e.bytes
}

// Check tells whether messages can be stored durably now: here, if not remotely.
func (e *Engine) Check(ctx context.Context) error {
	e.mu.Lock()
	full := e.full || e.bytes >= e.cfg.Budget
	e.mu.Unlock()
	if full {
		return forebay.Errorf(forebay.CodeFull, "outbox", "the remote engine is away, and the %d bytes that may wait here are used up", e.cfg.Budget)
	}
	if able, ok := engine.As[engine.Checker](e.local); ok {
		return able.Check(ctx)
	}
	return nil
}

// Size tells of the local engine's disk.
func (e *Engine) Size(ctx context.Context) (used, free int64, err error) {
	able, ok := engine.As[engine.Sizer](e.local)
	if !ok {
		return 0, 0, forebay.Errorf(forebay.CodeUnsupported, "outbox", "the local engine does not tell its size")
	}
	return able.Size(ctx)
}

// Purge drops what waits of a queue, here and in the remote engine.
func (e *Engine) Purge(ctx context.Context, queue string) (dropped int64, err error) {
	remote, ok := engine.As[engine.Purger](e.remote)
	if !ok {
		return 0, forebay.Errorf(forebay.CodeUnsupported, "outbox", "the remote engine cannot purge")
	}
	if local, ok := engine.As[engine.Purger](e.local); ok {
		waiting, _ := e.localName(queue, false)
		if dropped, err = local.Purge(ctx, waiting); err != nil {
			return 0, err
		}
	}
	n, err := remote.Purge(ctx, queue)
	return dropped + n, err
}
