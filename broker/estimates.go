package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/estimate"
)

const (
	estimateCollection = "estimate"
	estimateKey        = "all"
	estimateSave       = time.Minute
	estimateLate       = 5 * time.Second // between looks for jobs that are overdue
	choreEvery         = time.Second
	choreTimeout       = 10 * time.Second

	codeOverdue = "overdue"
)

// estimates feeds the estimator and keeps what it knows.
type estimates struct {
	*estimate.Estimator

	mu    sync.Mutex
	moved map[string]bool // queues with events since their depth was asked for

	// Owned by chores.
	dirty  bool // something is not saved
	saved  time.Time
	looked time.Time // for what is overdue
}

func newEstimates() *estimates {
	return &estimates{Estimator: estimate.New(), moved: make(map[string]bool)}
}

const maxMoved = 200

func (e *estimates) feed(events []forebay.HistoryEvent) {
	for i := range events {
		e.Feed(&events[i])
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range events {
		if len(e.moved) < maxMoved {
			e.moved[events[i].Queue] = true
		}
	}
}

func (e *estimates) takeMoved() (queues []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for q := range e.moved {
		queues = append(queues, q)
	}
	clear(e.moved)
	return queues
}

// Estimate says how long a job will take that is sent now, until its end. It knows
// what the Watcher saw, and what an earlier process has left; with Samples of 0 it
// knows nothing.
func (b *Broker) Estimate(queue, kind string) estimate.Range {
	return b.estimates.Estimate(queue, kind)
}

// EstimateJob says how long from now a job will take until its end; the zero Range
// for one that has finished.
func (b *Broker) EstimateJob(_ context.Context, j forebay.Job) estimate.Range {
	if j.State.Final() {
		return estimate.Range{}
	}
	p := estimate.Pending{ID: j.ID, Queue: j.Queue, Kind: j.Kind, Due: j.Due, Percent: j.Progress.Percent}
	if j.State == forebay.StateActive {
		p.Started = j.StartedAt
	}
	return b.estimates.Remaining(p, b.now())
}

// Coverage says how good the estimates were.
func (b *Broker) Coverage() estimate.Coverage { return b.estimates.Coverage() }

// Overdue counts the jobs that took longer than their estimate, since this broker was made.
func (b *Broker) Overdue() int64 { return b.overdue.Load() }

// chores are what has to be done now and then. What fails is tried again the next
// time: none of it is the only place where something is known.
func (b *Broker) chores(ctx context.Context) {
	b.loadEstimates(ctx)
	tick := time.NewTicker(choreEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.chore(ctx)
		case <-ctx.Done():
			// The engine is still open: who runs the Watcher closes it afterwards.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), choreTimeout)
			defer cancel()
			b.saveEstimates(last)
			return
		}
	}
}

func (b *Broker) chore(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, choreTimeout)
	defer cancel()
	now := b.now()
	if b.alertQueue != "" {
		b.tellDeaths(ctx, now)
		_ = b.raise(ctx, b.alerts.due(now))
	}
	b.watchDead(ctx, now)
	e := b.estimates
	if queues := e.takeMoved(); len(queues) > 0 {
		e.dirty = true
		if stats, err := b.engine.Stats(ctx, queues...); err == nil {
			for _, s := range stats {
				e.Depth(s.Queue, s.Waiting, s.Active)
			}
		}
	}
	if now.Sub(e.looked) >= estimateLate {
		e.looked = now
		b.tellLate(ctx, e.Late(now), now)
	}
	if e.dirty && now.Sub(e.saved) >= estimateSave {
		b.saveEstimates(ctx)
	}
}

func (b *Broker) loadEstimates(ctx context.Context) {
	b.estimates.saved = b.now()
	if b.able.docs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, choreTimeout)
	defer cancel()
	if d, err := b.able.docs.Document(ctx, estimateCollection, estimateKey); err == nil {
		_ = b.estimates.Load(d.Value) // of another version: it learns anew
	}
}

func (b *Broker) saveEstimates(ctx context.Context) {
	e := b.estimates
	if b.able.docs == nil || !e.dirty && len(e.takeMoved()) == 0 {
		return
	}
	e.saved = b.now()
	data, err := e.Save(engine.MaxDocumentBytes)
	if err != nil {
		return
	}
	_, err = b.able.docs.PutDocument(ctx, engine.Document{
		Collection: estimateCollection, Key: estimateKey, Rev: engine.AnyRev, Value: data,
	})
	e.dirty = err != nil
}

// tellLate alerts of jobs that are overdue, and writes it into their logs where a
// worker of this process has them.
func (b *Broker) tellLate(ctx context.Context, late []estimate.Late, now time.Time) {
	raised := make(map[string]Alert)
	b.overdue.Add(int64(len(late)))
	for _, l := range late {
		text := fmt.Sprintf("overdue: not finished after %s, and was to take %s at most",
			now.Sub(l.Since).Round(time.Second), l.High.Round(time.Second))
		b.watcher.note(l.ID, text)
		if b.alertQueue == "" || b.isAlert(l.Queue, l.Kind) || b.able.jobs == nil {
			continue
		}
		j, err := b.able.jobs.Job(ctx, l.ID)
		if err != nil || j.State.Final() {
			continue
		}
		al := Alert{
			ID: l.ID, Queue: l.Queue, Name: l.Kind, Error: text, Code: codeOverdue, Attempts: j.Attempts,
			Reason: AlertOverdue, Owner: j.Job.Owner, Count: 1, At: now,
		}
		if ad := b.alerts.admit(&al, now); ad.out {
			raised[ad.group] = al
		}
	}
	_ = b.raise(ctx, raised)
}
