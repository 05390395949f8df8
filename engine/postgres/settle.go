package postgres

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// settling is a settlement whose receipt can be read.
type settling struct {
	s *forebay.Settlement
	r receipt
}

// Settle ends deliveries; see engine.Engine.
func (e *Engine) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	errs := make([]error, len(ss))
	items, of := make([]settling, 0, len(ss)), make([]int, 0, len(ss))
	for i := range ss {
		r, ok := readReceipt(ss[i].Receipt)
		if !ok {
			errs[i] = lost(ss[i].Receipt)
			continue
		}
		if errs[i] = e.checkSettlement(&ss[i]); errs[i] == nil {
			items, of = append(items, settling{&ss[i], r}), append(of, i)
		}
	}
	answers, err := e.settles.submit(ctx, items, sizeOfSettling)
	if err != nil {
		return nil, err
	}
	for n, err := range answers {
		errs[of[n]] = err
		e.held.Drop(items[n].s.Receipt)
	}
	return errs, nil
}

func sizeOfSettling(s settling) int {
	n := 256 + len(s.s.Result) + len(s.s.Cause.Message)
	for i := range s.s.Next {
		n += len(s.s.Next[i].Payload) + 512
	}
	return n
}

func (e *Engine) checkSettlement(s *forebay.Settlement) error {
	switch {
	case s.Verdict < forebay.Ack || s.Verdict > forebay.Expired:
		return fail(forebay.CodeInvalid, "the verdict %d is not known", s.Verdict)
	case s.After < 0 || s.After > forebay.MaxDelay:
		return fail(forebay.CodeInvalid, "a wait of %v; 0 to %v are allowed", s.After, forebay.MaxDelay)
	case s.Verdict == forebay.Ack:
		if err := engine.CheckResult(s.Result); err != nil {
			return err
		}
	}
	now := e.now()
	for i := range s.Next {
		if err := engine.CheckMessage(&s.Next[i], now); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) settleAll(ctx context.Context, items []settling) ([]error, error) {
	var p plan
	var seqs []int64
	var queues []int32
	var next []*forebay.Message
	for _, it := range items {
		seqs, queues = append(seqs, it.r.seq), append(queues, it.r.queue)
		if it.r.special {
			p.alone = append(p.alone, it.r.queue)
		}
		for i := range it.s.Next {
			next = append(next, &it.s.Next[i])
		}
	}
	p.seqs = len(next)
	if err := e.queues.nameOf(ctx, e, queues); err != nil {
		return nil, err
	}
	if err := e.planned(ctx, next, &p); err != nil {
		return nil, err
	}
	out := make([]error, len(items))
	return out, e.do(ctx, p, func(ctx context.Context, w *work) error {
		if err := w.bySeq(ctx, seqs); err != nil {
			return err
		}
		if len(next) > 0 {
			if err := w.know(ctx, next); err != nil {
				return err
			}
		}
		for i, one := range items {
			out[i] = w.settle(one)
		}
		return nil
	})
}

// settle does one settlement.
func (w *work) settle(s settling) error {
	it := w.items[s.r.seq]
	if it == nil || it.token != s.r.token || !w.holds(it) {
		return lost(s.s.Receipt)
	}
	w.settleItem(it, s.s)
	for i := range s.s.Next {
		w.send(&s.s.Next[i])
	}
	return nil
}
