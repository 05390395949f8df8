package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Waiting receives, life of one:
//
//  1. It found nothing, joins the waiters of its queue, and the reader learns of the
//     queue if it did not know it.
//  2. The reader, one for all queues, blocks on the markers of the queues that have
//     waiters: BullMQ's own, and one beside it for what BullMQ knows nothing of. Who
//     makes something ready sets a marker, and the reader that pops it wakes one waiter.
//  3. That one asks again. If more is left, the script sets the marker anew, so the next
//     is woken; each queue also has a timer for what becomes ready by time alone.
//  4. A signal that its waiter did not use is handed to the next waiter of the queue; if
//     there is none, the marker is set again for other processes.

// waiter is one receive that waits.
type waiter struct {
	queue  string
	signal chan struct{} // one signal is kept
}

// watch is what is known of a queue with waiters.
type watch struct {
	waiters []*waiter
	at      time.Time // of the timer; zero: none
	timer   *time.Timer
}

type waits struct {
	e *Engine

	mu      sync.Mutex // guards all below
	queues  map[string]*watch
	reading map[string]bool // queues that the reader blocks on, or soon will
	runs    bool            // the reader
	turn    int             // of the reader's connection
}

func newWaits(e *Engine) *waits {
	return &waits{e: e, queues: make(map[string]*watch), reading: make(map[string]bool)}
}

func (ws *waits) join(queue string) *waiter {
	w := &waiter{queue: queue, signal: make(chan struct{}, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	q := ws.queues[queue]
	if q == nil {
		q = &watch{}
		ws.queues[queue] = q
	}
	q.waiters = append(q.waiters, w)
	fresh := !ws.reading[queue]
	ws.reading[queue] = true
	switch {
	case !ws.runs:
		ws.runs = true
		ws.e.running.Go(ws.read)
	case fresh:
		ws.e.running.Go(ws.nudge)
	}
	return w
}

// leave takes a waiter away, and hands on a signal that it has not used.
func (ws *waits) leave(w *waiter) {
	if w == nil {
		return
	}
	ws.mu.Lock()
	q := ws.queues[w.queue]
	q.waiters = slices.DeleteFunc(q.waiters, func(o *waiter) bool { return o == w })
	if len(q.waiters) == 0 {
		if q.timer != nil {
			q.timer.Stop()
		}
		delete(ws.queues, w.queue)
	}
	ws.mu.Unlock()
	select {
	case <-w.signal:
		ws.wake(w.queue)
	default:
	}
}

// wake signals one waiter of a queue that has none yet. It tells whether there was a
// waiter at all.
func (ws *waits) wake(queue string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.signal(queue)
}

// signal is wake. It needs ws.mu.
func (ws *waits) signal(queue string) bool {
	q := ws.queues[queue]
	if q == nil {
		return false
	}
	for _, w := range q.waiters {
		select {
		case w.signal <- struct{}{}:
			return true
		default:
		}
	}
	return true
}

// due lets one waiter of a queue look again in a while; 0: nothing will come by itself.
func (ws *waits) due(queue string, in time.Duration) {
	if in <= 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	q := ws.queues[queue]
	if q == nil {
		return
	}
	at := time.Now().Add(in)
	if !q.at.IsZero() && !at.Before(q.at) {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	q.at = at
	q.timer = time.AfterFunc(in, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		if ws.queues[queue] == q {
			q.at = time.Time{}
		}
		ws.signal(queue)
	})
}

// ripe tells whether a waiter whose time is over should look once more.
func (ws *waits) ripe(w *waiter) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	q := ws.queues[w.queue]
	return len(w.signal) > 0 || !q.at.IsZero() && !q.at.After(time.Now())
}

// wakeKey is another for each connection: the server may not have learned that the one
// before has ended, and would give it what the reader should get. It needs ws.mu.
func (ws *waits) wakeKey() string {
	return ws.e.global("w:" + ws.e.instance + ":" + strconv.Itoa(ws.turn))
}

// nudge makes the reader look again at what it should block on.
func (ws *waits) nudge() {
	ctx, cancel := context.WithTimeout(context.Background(), ws.e.cfg.Timeout)
	defer cancel()
	// When it fails, the reader looks again at the end of its block.
	ws.mu.Lock()
	key := ws.wakeKey()
	ws.mu.Unlock()
	pipe := ws.e.client.Pipeline()
	pipe.ZAdd(ctx, key, goredis.Z{Member: "0"})
	pipe.PExpire(ctx, key, time.Minute)
	_, _ = pipe.Exec(ctx)
	ws.e.did()
}

// keys are what the reader blocks on, and the queue of each.
func (ws *waits) keys() ([]string, map[string]string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	keys, of := []string{ws.wakeKey()}, make(map[string]string)
	for queue := range ws.reading {
		for _, k := range []string{ws.e.key(queue, "marker"), ws.e.key(queue, "fb:marker")} {
			keys, of[k] = append(keys, k), queue
		}
	}
	return keys, of
}

const blockFor = 10 * time.Second

// read is the reader. It ends with the engine.
func (ws *waits) read() {
	for pauseFor := time.Duration(0); ; {
		select {
		case <-ws.e.closing:
			return
		case <-time.After(pauseFor):
		}
		keys, of := ws.keys()
		got, err := ws.e.block.pop(blockFor, keys)
		switch {
		case errors.Is(err, goredis.Nil):
			pauseFor = 0
		case err != nil:
			pauseFor = min(max(2*pauseFor, 50*time.Millisecond), 2*time.Second)
			ws.lost()
		default:
			pauseFor = 0
			ws.popped(of[got.Key], got.Member, got.Score)
		}
	}
}

// popped handles a marker: 1 says when the next delayed job is due, 0 that there is work.
func (ws *waits) popped(queue string, member any, score float64) {
	if queue == "" {
		return
	}
	if member == "1" {
		now := ws.e.byServer(ws.e.now().UnixMilli())
		if wait := int64(score) - now; wait > 0 {
			ws.due(queue, time.Duration(wait)*time.Millisecond)
			return
		}
	}
	if ws.wake(queue) {
		return
	}
	ws.mu.Lock()
	delete(ws.reading, queue)
	ws.mu.Unlock()
	// Nobody here: it is for another process. A sweep sets the marker if there is work.
	_, _ = ws.e.run(context.Background(), "rewake", queue)
}

// lost lets all look, since signals may have been lost with a connection.
func (ws *waits) lost() {
	ws.mu.Lock()
	ws.turn++
	queues := make([]string, 0, len(ws.queues))
	for queue := range ws.queues {
		queues = append(queues, queue)
	}
	ws.mu.Unlock()
	for _, queue := range queues {
		ws.wake(queue)
	}
}
