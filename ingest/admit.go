package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
)

// Load is what admission looks at: the broker.
type Load interface {
	Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error)
	Size(ctx context.Context) (used, free int64, err error)
	DrainRate(queue string) float64
}

// Admission says when the edge refuses events before it reads them. Zero values
// mean the default; -1 means not to look.
type Admission struct {
	MinFreeBytes int64 // of disk; 256 MiB
	MaxBacklog   int64 // waiting and delayed events; 10,000,000
}

func (a *Admission) fill() {
	set(&a.MinFreeBytes, 256<<20)
	set(&a.MaxBacklog, 10_000_000)
}

func (a *Admission) check() error {
	var errs []error
	if a.MinFreeBytes < -1 {
		errs = append(errs, fmt.Errorf("admission.minFreeBytes is %d; -1 or more is allowed", a.MinFreeBytes))
	}
	if a.MaxBacklog < -1 {
		errs = append(errs, fmt.Errorf("admission.maxBacklog is %d; -1 or more is allowed", a.MaxBacklog))
	}
	return errors.Join(errs...)
}

// Bounds of Retry-After, and how often the load is looked at while requests come.
const (
	leastWait   = time.Second
	mostWait    = 5 * time.Minute
	unknownWait = 30 * time.Second // nothing drains, so nobody knows
	sampleEvery = 250 * time.Millisecond
	sampleTime  = time.Second
)

// gate is admission. It has no goroutine: the first request after sampleEvery
// looks, all others use what it saw. Once closed it opens only when there is some
// room again (a tenth of the backlog, a quarter more disk), so that it does not
// flap.
type gate struct {
	load   Load
	queue  string
	limits Admission
	logger *slog.Logger

	next   atomic.Int64 // when to look again
	closed atomic.Pointer[problem]
	room   atomic.Int64 // how long a failed request should wait, of the last look
}

// check gives the reason why no request is admitted now, or nil.
func (g *gate) check(now time.Time) *problem {
	if g.load == nil {
		return nil
	}
	next := g.next.Load()
	if now.UnixNano() >= next && g.next.CompareAndSwap(next, now.Add(sampleEvery).UnixNano()) {
		g.look()
	}
	return g.closed.Load()
}

// Check tells whether events are admitted now, for readiness.
func (e *Edge) Check(context.Context) error {
	if p := e.gate.check(e.cfg.Now()); p != nil {
		return forebay.Errorf(forebay.CodeFull, "", "%s", p.detail)
	}
	return nil
}

// wait is when to come again after a store failed.
func (g *gate) wait() time.Duration { return max(leastWait, time.Duration(g.room.Load())) }

func (g *gate) look() {
	ctx, cancel := context.WithTimeout(context.Background(), sampleTime)
	defer cancel()
	was := g.closed.Load()
	backlog := g.backlog(ctx)
	p := g.lookBacklog(backlog, was)
	if p == nil {
		p = g.lookDisk(ctx, backlog, was)
	}
	g.closed.Store(p)
	g.room.Store(int64(g.drainTime(backlog / 20)))
	switch {
	case p != nil && was == nil:
		g.logger.Warn("events are refused", "reason", p.detail, "retryAfter", p.wait)
	case p == nil && was != nil:
		g.logger.Info("events are accepted again")
	}
}

// backlog is what waits; zero where the queue does not say: a queue that does not
// answer will say so itself when it is sent to.
func (g *gate) backlog(ctx context.Context) int64 {
	stats, err := g.load.Stats(ctx, g.queue)
	if err != nil || len(stats) != 1 {
		return 0
	}
	return stats[0].Waiting + stats[0].Delayed
}

const (
	codeBacklog  = "backlog_full"
	codeDiskFull = "disk_full"
)

func (g *gate) lookBacklog(backlog int64, was *problem) *problem {
	most := g.limits.MaxBacklog
	if most < 0 {
		return nil
	}
	resume := most - most/10
	if backlog < most && (was == nil || was.code != codeBacklog || backlog <= resume) {
		return nil
	}
	return &problem{status: http.StatusServiceUnavailable, code: codeBacklog, wait: g.drainTime(backlog - resume),
		detail: fmt.Sprintf("%d events wait to be written; at most %d may", backlog, most)}
}

func (g *gate) lookDisk(ctx context.Context, backlog int64, was *problem) *problem {
	least := g.limits.MinFreeBytes
	if least < 0 {
		return nil
	}
	used, free, err := g.load.Size(ctx)
	if err != nil || free < 0 {
		return nil // this queue has no disk that we know
	}
	resume := least + least/4
	if free >= least && (was == nil || was.code != codeDiskFull || free >= resume) {
		return nil
	}
	wait := unknownWait
	if used > 0 && backlog > 0 {
		wait = g.drainTime(int64(float64(resume-free) / (float64(used) / float64(backlog))))
	}
	return &problem{status: http.StatusServiceUnavailable, code: codeDiskFull, wait: wait,
		detail: fmt.Sprintf("%d bytes of disk are free; %d are needed", free, least)}
}

// drainTime is how long the measured rate takes for so many events.
func (g *gate) drainTime(events int64) time.Duration {
	if events <= 0 {
		return leastWait
	}
	seconds := float64(events) / g.load.DrainRate(g.queue)
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return unknownWait
	}
	return min(max(time.Duration(min(seconds, mostWait.Seconds())*float64(time.Second)), leastWait), mostWait)
}
