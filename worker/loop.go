package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker/adapt"
)

// loop is one Run. Its fields are owned by the goroutine of run, but for those
// that say otherwise.
type loop struct {
	w        *Worker
	dispatch dispatcher
	auto     *adapt.Limiter // nil: the concurrency is fixed
	receiver *receiver
	keeper   *keeper
	settler  *settler
	talker   *talker

	// Where settling is slower than handling, receiving waits for it.
	mostUnsettled int

	got  chan received
	done chan result // has room for every work that may run, so that nobody hangs on it

	overdue chan *work    // ended, and its handler has not returned in time
	over    chan struct{} // closed when nobody reads that any more

	asking  bool // a receive is open
	running map[*work]struct{}
	timer   *time.Timer // of the dispatcher

	base     context.Context // of handlers
	cancel   context.CancelCauseFunc
	stop     context.CancelFunc // cuts the open receive
	draining bool
	drained  chan struct{}    // closed with it, for handlers (forebay.Draining)
	deadline <-chan time.Time // of the phase of draining
	fatal    error
}

type received struct {
	ds  []forebay.Delivery
	err error
}

func newLoop(w *Worker, ctx context.Context) *loop {
	l := &loop{
		w:        w,
		receiver: &receiver{b: w.b, queue: w.cfg.Queue, lease: w.cfg.Lease, observe: w.cfg.Observe.Received, health: health{log: w.log, what: "receiving"}},
		got:      make(chan received, 1),
		done:     make(chan result, w.most),
		overdue:  make(chan *work),
		over:     make(chan struct{}),
		running:  make(map[*work]struct{}),
		timer:    time.NewTimer(forever),
	}
	if w.cfg.Batch != nil {
		l.dispatch = newBatches(&w.cfg)
	} else {
		l.dispatch = newSingles(w.cfg.Concurrency)
	}
	l.tune()
	l.keeper = newKeeper(w)
	l.keeper.stopWork, l.keeper.refuse = l.end, l.refuse
	l.talker = newTalker(w, l.keeper)
	l.settler = newSettler(w, l.keeper, l.talker)
	l.drained = make(chan struct{})
	base := forebay.WithDraining(context.WithoutCancel(ctx), l.drained)
	l.base, l.cancel = context.WithCancelCause(base)
	return l
}

func (l *loop) run(ctx context.Context) error {
	defer l.timer.Stop()
	defer l.cancel(forebay.ErrDraining)
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	l.stop = stop

	quit := make(chan struct{})
	flush, endFlush := context.WithCancel(context.Background())
	defer endFlush()
	unstored := 0
	var keeping, settling sync.WaitGroup
	keeping.Go(func() { l.keeper.run(quit) })
	if l.w.cfg.Jobs != nil {
		keeping.Go(func() { l.talker.run(quit) })
		keeping.Go(func() { l.listen(quit) })
	}
	settling.Go(func() { unstored = l.settler.run(flush) })

	hung := l.consume(receiving)
	close(l.over)

	l.settler.close()
	last := time.AfterFunc(flushTimeout, endFlush)
	settling.Wait()
	last.Stop()
	close(quit)
	keeping.Wait()
	return l.verdict(hung, unstored)
}

// consume is the loop. It returns the works whose handlers did not come back.
func (l *loop) consume(receiving context.Context) (hung []*work) {
	ended, abort := receiving.Done(), l.w.abort
	for {
		if !l.draining {
			l.begin()
			l.ask(receiving)
		} else if !l.asking && len(l.running) == 0 {
			return nil
		}
		select {
		case got := <-l.got:
			l.take(got)
		case r := <-l.done:
			l.finish(r)
		case k := <-l.overdue:
			l.leave(k)
		case <-l.w.tuned:
			l.tune()
		case <-l.settler.freed:
			l.left()
		case <-l.timer.C:
		case <-ended:
			ended = nil
			l.drain()
			l.deadline = time.After(l.w.cfg.DrainTimeout)
		case <-abort:
			ended, abort = nil, nil
			l.drain()
			l.interrupt()
		case <-l.deadline:
			if context.Cause(l.base) != nil {
				return l.leaveBehind()
			}
			l.interrupt()
		}
	}
}

// begin starts what may start now.
func (l *loop) begin() {
	for {
		items, at := l.dispatch.next(time.Now(), l.settler.pending.Load() > 0)
		if len(items) == 0 {
			if !at.IsZero() {
				l.timer.Reset(time.Until(at))
			}
			return
		}
		k := &work{all: items, began: time.Now()}
		k.ctx, k.cancel = context.WithCancelCause(l.base)
		l.refuseLate(k)
		l.keeper.begin(k)
		if len(k.items) == 0 {
			l.finish(result{work: k})
			continue
		}
		if l.w.cfg.Jobs != nil {
			k.items[0].voice = &voice{t: l.talker, it: k.items[0]}
		}
		l.limit(k)
		l.running[k] = struct{}{}
		if k.auto = l.auto; k.auto != nil {
			k.auto.Begin(k.began)
		}
		l.w.busy.Store(int64(len(l.running)))
		go l.call(k)
	}
}

// call runs in a goroutine of its own. It answers also where the handler ends
// that goroutine (runtime.Goexit).
func (l *loop) call(k *work) {
	r := result{work: k}
	defer func() {
		if r.errs == nil {
			r.errs = make([]error, len(k.items))
			for i := range r.errs {
				r.errs[i] = fmt.Errorf("the handler ended its goroutine")
			}
		}
		r.run = time.Since(k.began)
		l.done <- r
	}()
	r.errs, r.data = l.w.handle(k)
}

// finish books what a handler said.
func (l *loop) finish(r result) {
	k := r.work
	if k.auto != nil && k.auto == l.auto { // else somebody has set another one meanwhile
		k.auto.End(time.Now(), k.began, len(k.items), howEnded(k, r.errs))
		l.fit()
	}
	delete(l.running, k)
	l.w.busy.Store(int64(len(l.running)))
	k.clock.stop()
	k.cancel(nil)
	if observe := l.w.cfg.Observe.Batch; observe != nil && l.w.cfg.Batch != nil && len(k.items) > 0 {
		size := 0
		for _, it := range k.items {
			size += len(it.d.Payload)
		}
		observe(len(k.items), size, r.run)
	}
	var endings []ending
	if !k.left {
		endings = l.settled(k, r)
	} else {
		l.w.log.Info("a handler that was left behind has returned", "job", k.items[0].d.ID, "running", r.run.Round(time.Millisecond))
	}
	for _, it := range l.keeper.unsettled(k.unbegun) {
		it.again = true
		endings = append(endings, release(it))
	}
	for _, it := range l.keeper.unsettled(l.dispatch.done(k.all, r.run)) {
		endings = append(endings, release(it))
	}
	l.settler.add(endings)
}

// left lets groups go on whose verdicts were stored.
func (l *loop) left() {
	for _, d := range l.settler.departed() {
		l.release(l.dispatch.left(d))
	}
}

// settled gives the verdicts for what the handler had.
func (l *loop) settled(k *work, r result) []ending {
	endings := make([]ending, 0, len(k.all))
	for i, it := range k.items {
		s := l.w.b.DecideJob(it.d, r.data, r.errs[i])
		if it.d.Job != nil && s.Cause.Code != "" {
			s.Cause.Started = k.began
		}
		if follow := k.follow.Load(); follow != nil {
			s = (*follow)(s)
		}
		it.again = s.Verdict == forebay.Retry || s.Verdict == forebay.Release || it.lost.Load()
		endings = append(endings, ending{it: it, s: s, outcome: Outcome{
			Delivery: it.d, Verdict: s.Verdict, Cause: s.Cause, Started: true, Began: k.began,
			Wait: waited(&it.d, k.began), Run: r.run, Batch: len(k.items),
		}})
	}
	return endings
}

// waited counts from when the message was sent, or could first be handed out.
func waited(d *forebay.Delivery, began time.Time) time.Duration {
	from := d.SentAt
	if d.NotBefore.After(from) {
		from = d.NotBefore
	}
	return max(0, began.Sub(from))
}

// release ends an item that no handler has seen to its end.
func release(it *item) ending {
	s := forebay.Settlement{Receipt: it.d.Receipt, Queue: it.d.Queue, Verdict: forebay.Release}
	return ending{it: it, s: s, outcome: Outcome{Delivery: it.d, Verdict: s.Verdict}}
}

// release gives back what no handler has begun.
func (l *loop) release(items []*item) {
	items = l.keeper.unsettled(items)
	endings := make([]ending, len(items))
	for i, it := range items {
		endings[i] = release(it)
	}
	l.settler.add(endings)
}

// refuseLate settles jobs for which it is too late to begin.
func (l *loop) refuseLate(k *work) {
	for _, it := range k.all {
		if cause := late(&it.d, k.began); cause != nil {
			l.keeper.end(func(other *item) bool { return other == it }, cause)
		}
	}
}

// ask opens a receive if there is room for what it may bring.
func (l *loop) ask(ctx context.Context) {
	room := min(l.dispatch.room(), l.mostUnsettled-int(l.settler.pending.Load()), engine.MaxReceive)
	if l.asking || room <= 0 {
		return
	}
	l.asking = true
	go func() {
		ds, err := l.receiver.receive(ctx, room)
		l.got <- received{ds, err}
	}()
}

func (l *loop) take(got received) {
	l.asking = false
	if got.err != nil {
		l.fatal = got.err
		l.stop()
	}
	if len(got.ds) == 0 {
		return
	}
	items := wrap(got.ds, l.w.cfg.Lease)
	l.keeper.hold(items)
	if l.draining {
		l.release(items)
		return
	}
	l.dispatch.take(items)
}
