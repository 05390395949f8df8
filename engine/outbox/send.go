package outbox

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Send stores messages in the remote engine, or in the local one.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if len(msgs) > engine.MaxSend {
		return nil, forebay.Errorf(forebay.CodeInvalid, "outbox: send", "%d messages in one call; at most %d are allowed", len(msgs), engine.MaxSend)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	byQueue := make(map[string][]int)
	for i := range msgs {
		byQueue[msgs[i].Queue] = append(byQueue[msgs[i].Queue], i)
	}
	results := make([]forebay.SendResult, len(msgs))
	errs := make(chan error, len(byQueue))
	var all sync.WaitGroup
	for name, at := range byQueue {
		all.Go(func() { errs <- e.sendOne(ctx, name, msgs, at, results) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// sendOne sends the messages of one queue, those at the places at.
func (e *Engine) sendOne(ctx context.Context, name string, msgs []forebay.Message, at []int, results []forebay.SendResult) error {
	some := make([]forebay.Message, len(at))
	for n, i := range at {
		some[n] = msgs[i]
	}
	if engine.CheckQueue(name) != nil { // it has no local queue either
		res, err := e.remote.Send(ctx, some)
		return spread(results, at, res, err)
	}
	q, err := e.queue(ctx, name)
	if err != nil {
		return err
	}
	if !e.mayTry(q, time.Now()) {
		return e.keep(ctx, q, msgs, at, results)
	}
	began := time.Now()
	call, cancel := context.WithTimeout(ctx, e.cfg.SendTimeout)
	res, err := e.remote.Send(call, some)
	cancel()
	if err == nil {
		if later := e.refused(res, at); len(later) > 0 {
			e.failed(q, began, res[firstAway(res)].Err)
			if err := spread(results, at, res, nil); err != nil {
				return err
			}
			return e.keep(ctx, q, msgs, later, results)
		}
		e.worked(q)
		return spread(results, at, res, nil)
	}
	if ctx.Err() != nil || !away(err) {
		e.unprobe(q)
		return err
	}
	e.failed(q, began, err)
	return e.keep(ctx, q, msgs, at, results)
}

// unprobe gives up a try that said nothing of the remote engine.
func (e *Engine) unprobe(q *queue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q.probing = false
}

// refused gives the places of messages that the remote engine may take later.
func (e *Engine) refused(res []forebay.SendResult, at []int) (later []int) {
	for n, r := range res {
		if r.Err != nil && away(r.Err) {
			later = append(later, at[n])
		}
	}
	return later
}

func firstAway(res []forebay.SendResult) int {
	for n, r := range res {
		if r.Err != nil && away(r.Err) {
			return n
		}
	}
	return 0
}

// spread puts results in the places of their messages.
func spread(results []forebay.SendResult, at []int, res []forebay.SendResult, err error) error {
	for n, r := range res {
		results[at[n]] = r
	}
	return err
}

// keep stores messages in the local engine.
func (e *Engine) keep(ctx context.Context, q *queue, msgs []forebay.Message, at []int, results []forebay.SendResult) error {
	var some []forebay.Message
	var places []int
	var size int64
	e.mu.Lock()
	for _, i := range at {
		n := sizeOf(&msgs[i])
		switch {
		case msgs[i].Job != nil:
			results[i] = forebay.SendResult{ID: msgs[i].ID, Err: forebay.Errorf(forebay.CodeUnavailable, "outbox",
				"the remote engine is away, and jobs do not wait here")}
		case e.bytes+size+n > e.cfg.Budget:
			e.full = true
			results[i] = forebay.SendResult{ID: msgs[i].ID, Err: forebay.Errorf(forebay.CodeFull, "outbox",
				"the remote engine is away, and the %d bytes that may wait here are used up", e.cfg.Budget)}
		default:
			size += n
			some, places = append(some, e.forLocal(&msgs[i], false)), append(places, i)
		}
	}
	// Counted before they are there: a Send that comes now must not overtake them.
	e.bytes += size
	q.waiting += int64(len(some))
	e.mu.Unlock()
	res, err := e.local.Send(ctx, some)
	if err != nil {
		e.forget(q, int64(len(some)), size)
		return err
	}
	for n, r := range res {
		if r.Err != nil || r.Duplicate {
			e.forget(q, 1, sizeOf(&msgs[places[n]]))
		}
	}
	e.ring()
	return spread(results, places, res, nil)
}

// forget takes messages off the count of what waits.
func (e *Engine) forget(q *queue, n, bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q.waiting = max(0, q.waiting-n)
	e.bytes, e.full = max(0, e.bytes-bytes), e.full && bytes == 0
}

// keptWindow is for how long the local engine remembers a message that has left it: what
// the remote engine refuses is sent to another queue here (refuse).
const keptWindow = time.Millisecond

// forLocal is a message as the local engine keeps it.
func (e *Engine) forLocal(m *forebay.Message, dead bool) forebay.Message {
	out := *m
	out.DedupWindow = keptWindow
	var cut bool
	if out.Queue, cut = e.localName(m.Queue, dead); cut {
		out.Headers = maps.Clone(m.Headers)
		if out.Headers == nil {
			out.Headers = make(map[string]string, 1)
		}
		out.Headers[headQueue] = m.Queue
	}
	return out
}

// forRemote is the message again as it was.
func (e *Engine) forRemote(m *forebay.Message) forebay.Message {
	out := *m
	out.Queue = e.remoteName(m)
	if _, ok := m.Headers[headQueue]; ok {
		out.Headers = maps.Clone(m.Headers)
		delete(out.Headers, headQueue)
	}
	return out
}
