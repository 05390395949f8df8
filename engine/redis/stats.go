package redis

import (
	"context"
	"sync"

	"github.com/forebayhq/forebay"
)

// tally counts since the opening, what this engine saw.
type tally struct {
	mu     sync.Mutex // guards counts
	counts map[string]*forebay.QueueStats
}

// of gives the counts of a queue. The lock must be held.
func (t *tally) of(queue string) *forebay.QueueStats {
	if t.counts == nil {
		t.counts = make(map[string]*forebay.QueueStats)
	}
	c := t.counts[queue]
	if c == nil {
		c = &forebay.QueueStats{Queue: queue}
		t.counts[queue] = c
	}
	return c
}

func (t *tally) sent(queue string, a sendAnswer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of(queue)
	switch a[0] {
	case '0':
		c.Sent++
	case '2':
		c.Conflict++
		fallthrough
	default:
		c.Duplicate++
	}
}

// ended counts what a script says: queue, state and number by turns.
func (t *tally) ended(v []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := 0; i+2 < len(v); i += 3 {
		c, n := t.of(text(v[i])), number(v[i+2])
		switch forebay.State(text(v[i+1])) {
		case forebay.StateCompleted:
			c.Completed += n
		case forebay.StateCancelled:
			c.Cancelled += n
		case forebay.StateExpired:
			c.Expired += n
		}
	}
}

// Stats counts; see engine.Engine.
func (e *Engine) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	args := []any{len(queues)}
	for _, q := range queues {
		args = append(args, q)
	}
	v, err := e.run(ctx, "stats", args...)
	if err != nil {
		return nil, err
	}
	e.tally.mu.Lock()
	defer e.tally.mu.Unlock()
	out := make([]forebay.QueueStats, len(v.out))
	for i, one := range v.out {
		f := list(one)
		out[i] = *e.tally.of(text(f[0]))
		out[i].Waiting, out[i].Active, out[i].Delayed, out[i].Dead = number(f[1]), number(f[2]), number(f[3]), number(f[4])
		out[i].Oldest = atMillis(number(f[5]))
	}
	return out, nil
}
