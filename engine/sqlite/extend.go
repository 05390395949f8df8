package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Extend sets leases to end lease from now; see engine.Engine.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	if err := checkExtend(receipts, lease); err != nil {
		return nil, err
	}
	o := &extend{at: e.sealer.tickets(receipts), lease: lease, errs: make([]error, len(receipts))}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

func checkExtend(receipts []forebay.Receipt, lease time.Duration) error {
	if len(receipts) > engine.MaxReceive {
		return tooMany("receipts", engine.MaxReceive)
	}
	if lease == 0 {
		return nil
	}
	return checkLease(lease)
}

// extend is the op of Extend.
type extend struct {
	change
	at    []ticket
	lease time.Duration
	errs  []error

	was    []extended
	lapses []*lapse
}

// extended is an item that has another end, and the one before.
type extended struct {
	it    *item
	until int64
}

func (o *extend) size() int64 { return 64 }

// durable is false: whether a lease was extended matters to who is still there.
func (*extend) durable() bool { return false }

func (o *extend) apply(t *tx) error {
	o.was, o.lapses = o.was[:0], o.lapses[:0]
	for i, at := range o.at {
		ls, it := t.l.held(at)
		if it == nil {
			o.errs[i] = errLeaseLost()
			continue
		}
		var err error
		if o.errs[i], err = o.one(t, ls, it); err != nil {
			return err
		}
	}
	return nil
}

// one sets the end of a lease at once, as if it were committed: nothing else of this
// transaction goes by it. An end that is now is met by the next cycle's timers, before
// whatever comes with it; but a job that is not to wait again ends here.
func (o *extend) one(t *tx, ls *lease, it *item) (answer, err error) {
	answer = it.stopping()
	if o.lease == 0 && it.job {
		if x, _ := t.l.lapse(ls, it, t.now); x != nil {
			o.lapses = append(o.lapses, x)
			return answer, x.apply(t)
		}
	}
	o.was = append(o.was, extended{it, it.until})
	it.until = t.now + int64(o.lease)
	t.l.timers.sooner(&ls.timer, it.until)
	if ls.kept {
		ls.stale = true
		t.touch(ls)
	}
	return answer, nil
}

func (o *extend) publish(t *tx) {
	for _, x := range o.lapses {
		x.publish(t)
	}
}

func (o *extend) abort() {
	for _, x := range o.lapses {
		x.abort()
	}
	for _, w := range slices.Backward(o.was) {
		w.it.until = w.until
	}
	o.was, o.lapses = nil, nil
}
