package redis

import (
	"context"
	"strconv"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// settleItem is a settlement as arguments of the script.
type settleItem struct {
	receipt forebay.Receipt
	arg     string
	plain   bool
	size    int
	next    []sendItem
}

type settleAnswer bool // false: the delivery had ended

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
	items, of := make([]settleItem, 0, len(ss)), make([]int, 0, len(ss))
	for i := range ss {
		it, ok := e.itemOfSettlement(&ss[i])
		if !ok {
			errs[i] = lost(ss[i].Receipt)
			continue
		}
		if errs[i] = e.checkSettlement(&ss[i]); errs[i] != nil {
			continue
		}
		items, of = append(items, it), append(of, i)
	}
	answers, err := e.settles.submit(ctx, once(items), sizeOfSettlement)
	if err != nil {
		return nil, err
	}
	for n, done := range answers {
		e.held.Drop(items[n].receipt)
		if !done {
			errs[of[n]] = lost(items[n].receipt)
		}
	}
	return errs, nil
}

func sizeOfSettlement(it settleItem) int { return it.size }

func (e *Engine) checkSettlement(s *forebay.Settlement) error {
	if s.Verdict < forebay.Ack || s.Verdict > forebay.Expired {
		return fail(forebay.CodeInvalid, "the verdict %d is not known", s.Verdict)
	}
	if s.After < 0 || s.After > forebay.MaxDelay {
		return fail(forebay.CodeInvalid, "a wait of %v; 0 to %v are allowed", s.After, forebay.MaxDelay)
	}
	if s.Verdict == forebay.Ack {
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

func (e *Engine) itemOfSettlement(s *forebay.Settlement) (settleItem, bool) {
	token, queue, id, ok := readReceipt(s.Receipt)
	if !ok {
		return settleItem{}, false
	}
	it := settleItem{receipt: s.Receipt}
	plain := []string{queue, id, token, strconv.Itoa(verdictOf(s)), string(s.Result)}
	if s.Verdict == forebay.Ack && len(s.Next) == 0 {
		it.arg, it.plain = packStrings(plain...), isPlain(token)
	} else {
		it.arg = packStrings(append(plain, decimal(ceilMillis(s.After)), encode(s.Cause), s.Cause.Message, encode([]string{cut(s.Cause.Message, 4096)}),
			strconv.Itoa(len(s.Next)))...)
	}
	it.size = 256 + len(it.arg)
	for i := range s.Next {
		n := e.itemOf(&s.Next[i])
		it.next, it.size = append(it.next, n), it.size+sizeOfSend(n)
	}
	return it, true
}

// unbegun is how the script is told that a dead message was begun by nobody.
const unbegun = 7

func verdictOf(s *forebay.Settlement) int {
	if s.Verdict == forebay.Dead && s.Unbegun {
		return unbegun
	}
	return int(s.Verdict)
}

func (e *Engine) settleScript(ctx context.Context, items []settleItem) ([]settleAnswer, error) {
	args, plain := []any{len(items)}, true
	for _, it := range items {
		args, plain = append(args, it.arg), plain && it.plain
		for i := range it.next {
			args = append(args, it.next[i].args()...)
		}
	}
	r, done, err := reply{}, false, error(nil)
	if plain {
		r, done, err = e.runPlain(ctx, "settle", args...)
	}
	switch {
	case err != nil:
		return nil, err
	case !done:
		if r, err = e.run(ctx, "settle", args...); err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(r.extra); i += 2 { // queue and answer of each message that followed
			e.tally.sent(text(r.extra[i]), sendAnswer(text(r.extra[i+1])))
		}
	case len(r.extra) > 0: // queues that keep more than they should, and how many that is
		// What is not thinned out now is when the next are settled.
		_, _ = e.run(ctx, "thin", append([]any{2 * settlesAtOnce, len(r.extra) / 2}, r.extra...)...)
	}
	out := make([]settleAnswer, len(items))
	for i, v := range r.out {
		out[i] = number(v) == 1
	}
	return out, nil
}
