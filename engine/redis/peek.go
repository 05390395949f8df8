package redis

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const peekAtOnce = 200 // messages that one script looks at

// Peek lists messages as they are, oldest first; see engine.Peeker. Of jobs that Node
// clients added, those are there that Jobs lists too.
func (e *Engine) Peek(ctx context.Context, q engine.PeekQuery) (page engine.PeekPage, err error) {
	if q.Limit < 0 || q.Limit > engine.MaxPeek {
		return page, bad("limit", "a limit of %d; 1 to %d are allowed", q.Limit, engine.MaxPeek)
	}
	sent, id, ok := strings.Cut(q.After, " ")
	if _, err := strconv.ParseInt(sent, 10, 64); q.After != "" && (!ok || err != nil || id == "") {
		return page, bad("after", "%q is not the next of a page", cut(q.After, 80))
	}
	if err := engine.CheckQueue(q.Queue); err != nil {
		return page, err
	}
	if err := e.enter(); err != nil {
		return page, err
	}
	defer e.leave()
	if q.After == "" {
		if _, err := e.run(ctx, "index", 1, q.Queue); err != nil {
			return page, err
		}
	}
	left := cmp.Or(q.Limit, engine.DefaultPeek)
	for left > 0 {
		v, err := e.run(ctx, "peek", q.Queue, cmp.Or(sent, "0"), id, min(left, peekAtOnce))
		if err != nil {
			return engine.PeekPage{}, err
		}
		for _, one := range v.out {
			page.Messages = append(page.Messages, e.peeked(q.Queue, list(one)))
			left--
		}
		if len(v.extra) < 2 {
			page.Next = ""
			return page, nil
		}
		sent, id = text(v.extra[0]), text(v.extra[1])
		page.Next = sent + " " + id
	}
	return page, nil
}

func (e *Engine) peeked(queue string, f []any) engine.Peeked {
	h := readHash(queue, text(f[0]), list(f[3]))
	h.state = forebay.State(text(f[1]))
	p := engine.Peeked{
		Message: h.message(), Where: engine.Where(h.state), Deliveries: h.deliveries(), Attempts: h.failed(), SentAt: atMillis(h.number("timestamp")),
	}
	switch till := atMillis(e.byHere(number(f[2]))); h.state {
	case forebay.StateDelayed:
		p.NotBefore = till
	case forebay.StateActive:
		p.LeaseUntil = till
	}
	return p
}
