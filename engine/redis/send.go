package redis

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const (
	sendsAtOnce   = 250
	sendsReady    = 125 // of a longer Send the next are made ready while the server has these
	settlesAtOnce = 250
)

// sendItem is a message that is to be sent, as the scripts take it.
type sendItem struct {
	queue, id, kind, data, enc, opts, fb, print, window string

	plain bool     // lua/plain/send.lua can do it, and adds the id to opts
	rules []string // of others than plain ones
}

func sizeOfSend(it sendItem) int { return len(it.data) + len(it.opts) + len(it.fb) + 512 }

// sendAnswer is what became of it: 0, or how it is a duplicate and of what.
type sendAnswer string

func (e *Engine) now() time.Time {
	if e.cfg.Now != nil {
		return e.cfg.Now()
	}
	return time.Now()
}

// Send stores messages; see engine.Engine.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if len(msgs) > engine.MaxSend {
		return nil, fail(forebay.CodeInvalid, "%d messages in one call; at most %d are allowed", len(msgs), engine.MaxSend)
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now, res, of := e.now(), make([]forebay.SendResult, len(msgs)), make([]int, 0, len(msgs))
	i := 0
	answers, err := e.sends.submit(ctx, func() []sendItem {
		items := make([]sendItem, 0, min(len(msgs)-i, sendsReady))
		for ; i < len(msgs) && len(items) < sendsReady; i++ {
			res[i].ID = msgs[i].ID
			if res[i].Err = engine.CheckMessage(&msgs[i], now); res[i].Err == nil {
				items, of = append(items, e.itemOf(&msgs[i])), append(of, i)
			}
		}
		return items
	}, sizeOfSend)
	if err != nil {
		return nil, err
	}
	for n, a := range answers {
		res[of[n]] = sendResult(msgs[of[n]].ID, a)
	}
	return res, nil
}

func sendResult(id string, a sendAnswer) forebay.SendResult {
	kind, first, _ := strings.Cut(string(a), "|")
	if kind == "0" {
		return forebay.SendResult{ID: id}
	}
	return forebay.SendResult{ID: messageID(first), Duplicate: true, Conflict: kind == "2", Replaced: kind == "3"}
}

func (e *Engine) sendScript(ctx context.Context, items []sendItem) ([]sendAnswer, error) {
	r, done, err := reply{}, false, error(nil)
	if !slices.ContainsFunc(items, func(it sendItem) bool { return !it.plain }) {
		r, done, err = e.runPlain(ctx, "send", plainArgs(items)...)
	}
	if err == nil && !done {
		args := []any{len(items)}
		for i := range items {
			args = append(args, items[i].args()...)
		}
		r, err = e.run(ctx, "send", args...)
	}
	if err != nil {
		return nil, err
	}
	out := make([]sendAnswer, len(items))
	for i := range items {
		out[i] = "0" // all are new, where nothing else is told
		if len(r.out) > i {
			out[i] = sendAnswer(text(r.out[i]))
		}
		e.tally.sent(items[i].queue, out[i])
		if i == 0 || items[i].queue != items[i-1].queue {
			e.keeper.uses(items[i].queue) // if only Node works it, what that leaves of ours is swept too
		}
	}
	return out, nil
}
