package redis

import (
	"context"
	"slices"
	"strconv"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// settleItem is a settlement as arguments of the script.
type settleItem struct {
	receipt          forebay.Receipt
	queue, id, token string
	result           string
	arg              string // as lua/settle.lua reads it; empty: it is plain, see whole
	size             int
	next             []sendItem
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
	it := settleItem{receipt: s.Receipt, queue: queue, id: id, token: token, result: string(s.Result)}
	ack := s.Verdict == forebay.Ack && len(s.Next) == 0
	if ack && isPlain(token) {
		it.size = 256 + len(it.result)
		return it, true
	}
	it.arg = it.whole(verdictOf(s))
	if !ack {
		it.arg = packStrings(append(it.first(verdictOf(s)), decimal(ceilMillis(s.After)), encode(s.Cause), s.Cause.Message, encode([]string{cut(s.Cause.Message, 4096)}),
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

// first are the strings that each settlement begins with.
func (it *settleItem) first(verdict int) []string {
	return []string{it.queue, it.id, it.token, strconv.Itoa(verdict), it.result}
}

func (it *settleItem) whole(verdict int) string { return packStrings(it.first(verdict)...) }

// settlements are they as lua/settle.lua reads them.
func settlements(items []settleItem) []any {
	args := []any{len(items)}
	for i := range items {
		it := &items[i]
		if it.arg == "" {
			it.arg = it.whole(int(forebay.Ack))
		}
		args = append(args, it.arg)
		for n := range it.next {
			args = append(args, it.next[n].args()...)
		}
	}
	return args
}

// plainSettlements are acks of plain jobs as lua/plain/settle.lua reads them.
func plainSettlements(items []settleItem) []any {
	args, runs, begun := []any{0}, 0, 0
	for i := range items {
		it := &items[i]
		if i == 0 || it.queue != items[i-1].queue {
			runs, begun = runs+1, len(args)+1
			args = append(args, it.queue, 0)
		}
		args[begun] = args[begun].(int) + 1
		args = append(args, it.id, it.token, it.result)
	}
	args[0] = runs
	return args
}

func (e *Engine) settleScript(ctx context.Context, items []settleItem) ([]settleAnswer, error) {
	r, done, err := reply{}, false, error(nil)
	if !slices.ContainsFunc(items, func(it settleItem) bool { return it.arg != "" }) {
		r, done, err = e.runPlain(ctx, "settle", plainSettlements(items)...)
	}
	switch {
	case err != nil:
		return nil, err
	case !done:
		if r, err = e.run(ctx, "settle", settlements(items)...); err != nil {
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
