package sqlite

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

func unix(ns int64) time.Time { return time.Unix(0, ns) }

// Stats counts; see engine.Engine.
func (e *Engine) Stats(ctx context.Context, names ...string) ([]forebay.QueueStats, error) {
	names = slices.Clone(names)
	return ask(ctx, e, func(t *tx) (stats []forebay.QueueStats, err error) {
		if len(names) == 0 {
			for _, q := range t.l.byID {
				stats = append(stats, forebay.QueueStats{Queue: q.name})
			}
			slices.SortFunc(stats, func(a, b forebay.QueueStats) int { return strings.Compare(a.Queue, b.Queue) })
		}
		for _, name := range names {
			stats = append(stats, forebay.QueueStats{Queue: name})
		}
		for i := range stats {
			if q := t.l.queues[stats[i].Queue]; q != nil {
				if err := q.stats(t.l, &stats[i], t.now); err != nil {
					return nil, err
				}
			}
		}
		return stats, nil
	})
}

func (q *queue) stats(l *loop, s *forebay.QueueStats, now int64) error {
	for tn := range q.all {
		if err := tn.countDue(l, now); err != nil {
			return err
		}
	}
	oldest, err := q.oldest(l, now)
	if err != nil {
		return err
	}
	waiting := q.total - q.active - q.delayed
	held := min(q.hold.count(now), waiting)
	*s = forebay.QueueStats{
		Queue: q.name, Waiting: waiting - held, Active: q.active, Delayed: q.delayed + held, Dead: q.dead,
		Sent: q.sent, Duplicate: q.duplicate, Conflict: q.conflict, Completed: q.completed,
		Cancelled: q.cancelled, Expired: q.expired, Bytes: q.bytes,
	}
	if s.Waiting > 0 && oldest > 0 {
		s.Oldest = unix(oldest)
	}
	return nil
}

// oldest is when the oldest waiting message was sent, of those that memory knows;
// of a lane that is its head. Where that is not in memory and there are several
// tenants, it is the time of the block before, or of the first.
func (q *queue) oldest(l *loop, now int64) (int64, error) {
	oldest := q.outside.oldest()
	see := func(at int64) {
		if at != 0 && !q.hold.keeps(at, now) && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	for tn := range q.all {
		for _, n := range tn.lanes {
			switch {
			case n == nil:
			case len(n.window) == 0 && n.last < n.tail && len(q.tenants) > 0:
				see(n.nextAt)
			default:
				b, _, err := n.peek(l)
				if err != nil {
					return 0, err
				}
				if b != nil {
					see(b.sentAt)
				}
			}
		}
	}
	return oldest, nil
}
