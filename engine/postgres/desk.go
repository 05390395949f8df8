package postgres

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Receives, life of one:
//
//  1. It joins the desk of its queue as a want. If nothing is under way there, a goroutine
//     begins that claims for all wants that have not been tried, in one transaction.
//  2. A want that gets something leaves. One that does not wait leaves with nothing. The
//     others stay, tried, until the desk is signalled: something came (here or, told by
//     NOTIFY, elsewhere), a limit opens, or the bounded time after which one looks anyway.
//  3. When its wait is over a want is tried once more, as one that does not wait. When its
//     context ends it leaves; what it had been given meanwhile is given back.

// want is one Receive.
type want struct {
	max   int
	lease time.Duration
	kept  bool
	waits bool
	tried bool
	gone  bool         // whoever asked only waits for what is being claimed
	got   chan claimed // has room for one
}

type claimed struct {
	ds  []forebay.Delivery
	err error
}

// desk is where the receives of one queue meet.
type desk struct {
	e    *Engine
	name string

	mu    sync.Mutex // guards all below
	wants []*want
	runs  bool
	gen   int // of signals
	at    time.Time
	timer *time.Timer
}

type desks struct {
	mu  sync.Mutex // guards all
	all map[string]*desk
}

func (ds *desks) of(e *Engine, name string) *desk {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.all == nil {
		ds.all = make(map[string]*desk)
	}
	d := ds.all[name]
	if d == nil {
		d = &desk{e: e, name: name}
		ds.all[name] = d
	}
	return d
}

// signal lets the receives of queues look again.
func (ds *desks) signal(names map[string]bool) {
	for name := range names {
		ds.mu.Lock()
		d := ds.all[name]
		ds.mu.Unlock()
		if d != nil {
			d.signal()
		}
	}
}

// signalAll is for when signals may have been lost.
func (ds *desks) signalAll() {
	ds.mu.Lock()
	all := make(map[string]bool, len(ds.all))
	for name := range ds.all {
		all[name] = true
	}
	ds.mu.Unlock()
	ds.signal(all)
}

func checkReceive(r *engine.Receive) error {
	if err := engine.CheckQueue(r.Queue); err != nil {
		return err
	}
	r.Lease = cmp.Or(r.Lease, forebay.DefaultLease)
	switch {
	case r.Max < 1 || r.Max > engine.MaxReceive:
		return fail(forebay.CodeInvalid, "receive of %d; 1 to %d are allowed", r.Max, engine.MaxReceive)
	case r.Wait < 0 || r.Wait > engine.MaxWait:
		return fail(forebay.CodeInvalid, "a wait of %v; 0 to %v are allowed", r.Wait, engine.MaxWait)
	}
	return checkLease(r.Lease)
}

func checkLease(d time.Duration) error {
	if d < engine.MinLease || d > engine.MaxLease {
		return fail(forebay.CodeInvalid, "a lease of %v; %v to %v are allowed", d, engine.MinLease, engine.MaxLease)
	}
	return nil
}

// Receive leases messages; see engine.Engine.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if err := checkReceive(&r); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, w := e.desks.of(e, r.Queue), &want{max: r.Max, lease: r.Lease, kept: r.Kept, waits: r.Wait > 0, got: make(chan claimed, 1)}
	d.join(w)
	end := time.NewTimer(r.Wait)
	defer end.Stop()
	for {
		var err error
		select {
		case c := <-w.got:
			if ctx.Err() == nil {
				return c.ds, c.err
			}
			e.giveBack(c.ds)
			return nil, ctx.Err()
		case <-end.C:
			d.last(w)
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-e.closing:
			err = errClosed()
		}
		if !d.leave(w) {
			e.returnClaim(w)
		}
		return nil, err
	}
}

// claimPatience is how long a receive that is given up waits for what is being claimed for it.
const claimPatience = time.Second

// returnClaim gives back what is being claimed for a want whose caller has gone: before the
// caller is answered, so that others find it, unless the server does not answer.
func (e *Engine) returnClaim(w *want) {
	t := time.NewTimer(claimPatience)
	defer t.Stop()
	select {
	case c := <-w.got:
		e.giveBack(c.ds)
	case <-t.C:
		e.running.Go(func() { // the claim has a deadline
			c := <-w.got
			e.giveBack(c.ds)
		})
	}
}

// giveBack returns what nobody waits for any more, as if it had not been handed out. What
// cannot be given back comes again when its lease ends.
func (e *Engine) giveBack(ds []forebay.Delivery) {
	items := make([]settling, 0, len(ds))
	for _, d := range ds {
		r, _ := readReceipt(d.Receipt)
		items = append(items, settling{&forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Release}, r})
		e.held.Drop(d.Receipt)
	}
	_, _ = e.settles.submit(context.Background(), items, sizeOfSettling)
}

func (d *desk) join(w *want) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wants = append(d.wants, w)
	d.start()
}

// start lets the desk claim, if it does not. It needs d.mu.
func (d *desk) start() {
	if !d.runs && len(d.wants) > 0 {
		d.runs = true
		d.e.running.Go(d.run) // a receive is running, so the engine waits for this too
	}
}

// leave takes a want away. False: it is being claimed for, and is answered after that.
func (d *desk) leave(w *want) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, o := range d.wants {
		if o == w {
			d.wants = append(d.wants[:i:i], d.wants[i+1:]...)
			return true
		}
	}
	w.gone = true
	return false
}

// last tries a want once more, whose time is over.
func (d *desk) last(w *want) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.waits, w.tried = false, false
	d.start()
}

func (d *desk) signal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gen++
	for _, w := range d.wants {
		w.tried = false
	}
	d.start()
}

// look signals the desk in a while.
func (d *desk) look(in time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := time.Now().Add(in)
	if !d.at.IsZero() && d.at.After(time.Now()) && !at.Before(d.at) || len(d.wants) == 0 {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at, d.timer = at, time.AfterFunc(in, func() {
		if d.e.enter() == nil {
			d.signal()
			d.e.leave()
		}
	})
}

// run claims until all wants have been tried.
func (d *desk) run() {
	for {
		ws, gen := d.take()
		if len(ws) == 0 {
			return
		}
		got, again, err := d.e.claim(d.name, ws)
		d.give(ws, got, gen, d.e.fault(err))
		if again > 0 {
			d.look(again)
		}
		d.look(d.e.wire.recheck())
	}
}

// take gives the wants of one claim: those of one kind that have not been tried.
func (d *desk) take() (ws []*want, gen int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left, sum := d.wants[:0:0], 0
	for _, w := range d.wants {
		if !w.tried && (len(ws) == 0 || sum < claimsAtOnce && w.lease == ws[0].lease && w.kept == ws[0].kept) {
			ws, sum = append(ws, w), sum+w.max
		} else {
			left = append(left, w)
		}
	}
	d.wants, d.runs = left, len(ws) > 0
	return ws, d.gen
}

// give hands out what was claimed, want by want.
func (d *desk) give(ws []*want, got [][]forebay.Delivery, gen int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	any := false
	for i := range got {
		any = any || len(got[i]) > 0
	}
	var stay []*want
	for i, w := range ws {
		switch {
		case err != nil:
			w.got <- claimed{err: err}
		case len(got[i]) > 0 || w.gone || !w.waits && !any:
			w.got <- claimed{ds: got[i]}
		default:
			w.tried = !any && gen == d.gen
			stay = append(stay, w)
		}
	}
	d.wants = append(stay, d.wants...)
}
