package broker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Growth is when a queue's dead letters are alerted of together: so many more within the
// window. It sees all that are counted, whoever let them die, those of SQS too.
type Growth struct {
	Count  int           // 0: no such alert
	Window time.Duration // 0: 10 min
}

const (
	growthWindow = 10 * time.Minute
	growthSteps  = 20 // looks at the counts per window
	growthMost   = 30 * time.Second
	deadSlice    = 500 // dead letters over the bound of their queue that leave at once
	deadSlices   = 20  // of one look
)

// deadWatch looks at the counts of dead letters now and then. Only chores use it, but
// for what was dropped.
type deadWatch struct {
	growth Growth
	every  time.Duration
	looked time.Time
	queues map[string]*deadCounts

	dropped map[string]*atomic.Int64 // by queue, of those with a bound; never changed
}

// deadCounts is how the dead letters of a queue grew.
type deadCounts struct {
	last   int64
	rises  []rise // within the window, oldest first
	raised time.Time
}

type rise struct {
	at time.Time
	n  int64
}

func newDeadWatch(g Growth, queues map[string]Policy) deadWatch {
	fill(&g.Window, growthWindow)
	w := deadWatch{growth: g, queues: make(map[string]*deadCounts), dropped: make(map[string]*atomic.Int64)}
	w.every = min(max(g.Window/growthSteps, choreEvery), growthMost)
	for name, p := range queues {
		if p.DeadMost > 0 {
			w.dropped[name] = new(atomic.Int64)
		}
	}
	return w
}

func (g Growth) check() error {
	if g.Count < 0 || g.Window < 0 || g.Window > 24*time.Hour {
		return invalid("alerts.growth", "%d within %s; 0 (no alert) or more, within at most 24h, are allowed", g.Count, g.Window)
	}
	return nil
}

// watchDead alerts of queues whose dead letters grow, and lets leave what is over the
// bound of its queue.
func (b *Broker) watchDead(ctx context.Context, now time.Time) {
	w := &b.dead
	if now.Sub(w.looked) < w.every || w.growth.Count == 0 && len(w.dropped) == 0 {
		return
	}
	stats, err := b.engine.Stats(ctx)
	if err != nil {
		return // looked at again; the alert is late, not lost
	}
	begun := !w.looked.IsZero()
	w.looked = now
	raised := make(map[string]Alert)
	for _, s := range stats {
		if al, ok := w.grew(s.Queue, s.Dead, begun, now); ok && s.Queue != b.alertQueue {
			raised["growth/"+s.Queue] = al
		}
		if most := int64(b.policyOf(s.Queue).DeadMost); w.dropped[s.Queue] != nil && s.Dead > most {
			b.dropDead(ctx, s.Queue, s.Dead-most, now)
		}
	}
	if b.alertQueue != "" {
		_ = b.raise(ctx, raised) // one that could not be stored is raised when there are more
	}
}

// grew counts what came since the last look. What has left meanwhile hides as many.
func (w *deadWatch) grew(queue string, dead int64, begun bool, now time.Time) (Alert, bool) {
	c := w.queues[queue]
	if c == nil {
		c = new(deadCounts)
		if !begun { // they were there before
			c.last = dead
		}
		w.queues[queue] = c
	}
	if dead > c.last {
		c.rises = append(c.rises, rise{now, dead - c.last})
	}
	c.last = dead
	sum := int64(0)
	for len(c.rises) > 0 && now.Sub(c.rises[0].at) > w.growth.Window {
		c.rises = c.rises[1:]
	}
	for _, r := range c.rises {
		sum += r.n
	}
	if w.growth.Count == 0 || sum < int64(w.growth.Count) || now.Sub(c.raised) < w.growth.Window && !c.raised.IsZero() {
		return Alert{}, false
	}
	c.raised = now
	return Alert{
		Queue: queue, Reason: AlertGrowth, Code: AlertGrowth, Count: int(sum), At: now,
		Error: fmt.Sprintf("%d more dead letters within %s; %d are there", sum, w.growth.Window, dead),
	}, true
}

// dropDead lets the oldest dead letters of a queue leave that are over its bound. Each
// is counted, and they are alerted of.
func (b *Broker) dropDead(ctx context.Context, queue string, n int64, now time.Time) {
	most, done := b.policyOf(queue).DeadMost, int64(0)
	for range deadSlices {
		seqs, err := b.DeadSeqs(ctx, engine.DeadQuery{Queue: queue, Limit: int(min(n-done, deadSlice))}, 0)
		if err != nil || len(seqs) == 0 {
			break
		}
		errs, err := b.DiscardDead(ctx, seqs, fmt.Sprintf("its queue keeps %d dead letters at most", most))
		if err != nil {
			break
		}
		for _, err := range errs {
			if err == nil {
				done++
			}
		}
		if done >= n {
			break
		}
	}
	b.dead.dropped[queue].Add(done)
	if done > 0 && b.alertQueue != "" {
		b.alerts.heard(Alert{
			Queue: queue, Reason: AlertDropped, Code: AlertDropped, Count: int(done), At: now,
			Error: fmt.Sprintf("dead letters left, since the queue keeps %d at most", most),
		})
	}
}

// DeadDropped counts the dead letters of a queue that left since they were over its
// bound, since this broker was made.
func (b *Broker) DeadDropped(queue string) int64 {
	if n := b.dead.dropped[queue]; n != nil {
		return n.Load()
	}
	return 0
}

// dropped is the alert of a dead job that left by its own retention; false: it is none.
func dropped(e *forebay.HistoryEvent) (Alert, bool) {
	if e.Type != forebay.HistoryDiscarded || !strings.HasPrefix(e.Text, engine.LeftByRetention) {
		return Alert{}, false
	}
	return Alert{
		ID: e.Job, Queue: e.Queue, Name: e.Kind, Reason: AlertDropped, Code: AlertDropped, Count: 1, At: e.At,
		Error: "dead jobs left: " + e.Text,
	}, true
}
