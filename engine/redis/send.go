package redis

import (
	"context"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const (
	sendsAtOnce   = 250
	settlesAtOnce = 250
)

// sendItem is a message that is to be sent, as arguments of the script.
type sendItem struct {
	queue string
	arg   string
	size  int
}

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
	now, res := e.now(), make([]forebay.SendResult, len(msgs))
	items, of := make([]sendItem, 0, len(msgs)), make([]int, 0, len(msgs))
	for i := range msgs {
		res[i].ID = msgs[i].ID
		if res[i].Err = engine.CheckMessage(&msgs[i], now); res[i].Err != nil {
			continue
		}
		items, of = append(items, itemOf(&msgs[i])), append(of, i)
	}
	answers, err := e.sends.submit(ctx, items, func(it sendItem) int { return it.size })
	if err != nil {
		return nil, err
	}
	for n, a := range answers {
		i := of[n]
		res[i] = sendResult(msgs[i].ID, a)
	}
	return res, nil
}

func itemOf(m *forebay.Message) sendItem {
	arg := messageArg(m)
	return sendItem{m.Queue, arg, len(arg) + 256}
}

func sendResult(id string, a sendAnswer) forebay.SendResult {
	kind, first, _ := strings.Cut(string(a), "|")
	if kind == "0" {
		return forebay.SendResult{ID: id}
	}
	return forebay.SendResult{ID: messageID(first), Duplicate: true, Conflict: kind == "2", Replaced: kind == "3"}
}

func (e *Engine) sendScript(ctx context.Context, items []sendItem) ([]sendAnswer, error) {
	args := make([]any, 1, 1+len(items))
	args[0] = len(items)
	for _, it := range items {
		args = append(args, it.arg)
	}
	r, err := e.run(ctx, "send", args...)
	if err != nil {
		return nil, err
	}
	out := make([]sendAnswer, len(items))
	for i, v := range r.out {
		out[i] = sendAnswer(text(v))
		e.tally.sent(items[i].queue, out[i])
		if i == 0 || items[i].queue != items[i-1].queue {
			e.keeper.uses(items[i].queue) // if only Node works it, what that leaves of ours is swept too
		}
	}
	return out, nil
}
