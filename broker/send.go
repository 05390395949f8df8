package broker

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Send stores messages durably and answers per message, in order. A message
// without an id gets a UUIDv7; one that breaks a limit gets its own error, and
// the others are stored. An error of the whole call means that none was.
func (b *Broker) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if b.draining.Load() {
		e := forebay.Errorf(forebay.CodeClosed, "broker: send", "the server is shutting down")
		e.Hint = "send again to the next instance, or once this one is back"
		return nil, e
	}
	good, refused, err := b.prepare(msgs)
	if err != nil {
		return nil, err
	}
	failed := func(err error) forebay.SendResult { return forebay.SendResult{Err: err} }
	results, err := inParts(good, engine.MaxSend, func(part []forebay.Message) ([]forebay.SendResult, error) {
		return b.engine.Send(ctx, part)
	}, failed)
	if err != nil {
		return nil, err
	}
	return weave(results, refused, failed), nil
}

// prepare fills ids and checks. It gives back msgs itself where nothing had to
// change, and never changes msgs. refused has the errors by index; nil: none.
func (b *Broker) prepare(msgs []forebay.Message) (good []forebay.Message, refused map[int]error, err error) {
	good = msgs
	copied := false
	now := b.now()
	for i := range msgs {
		if m := &msgs[i]; !copied && m.ID != "" && m.Job == nil && b.checkMessage(m, now) == nil {
			continue // most are like this, and are not copied
		}
		m, bad, err := b.prepareOne(msgs[i], now)
		if err != nil {
			return nil, nil, err
		}
		if bad == nil && msgs[i].ID != "" && m.Job == msgs[i].Job && !copied {
			continue
		}
		if !copied {
			good, copied = append(make([]forebay.Message, 0, len(msgs)), msgs[:i]...), true
		}
		if bad != nil {
			if refused == nil {
				refused = make(map[int]error)
			}
			refused[i] = bad
			continue
		}
		good = append(good, m)
	}
	return good, refused, nil
}

// prepareOne gives the message as it is sent; bad is what is wrong with it.
func (b *Broker) prepareOne(m forebay.Message, now time.Time) (_ forebay.Message, bad, err error) {
	if m.ID == "" {
		if m.ID, err = newID(); err != nil {
			return m, nil, err
		}
	}
	b.fillJob(&m)
	return m, b.checkMessage(&m, now), nil
}

func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", forebay.Errorf(forebay.CodeInternal, "broker: make an id", "%w", err)
	}
	return id.String(), nil
}

// checkSettlements does for the messages that follow a settlement what prepare
// does for those of a Send, and looks at results.
func (b *Broker) checkSettlements(s []forebay.Settlement) (good []forebay.Settlement, refused map[int]error) {
	plain := true
	for i := range s {
		plain = plain && len(s[i].Next) == 0 && len(s[i].Result) == 0
	}
	if plain {
		return s, nil
	}
	refused = make(map[int]error)
	good = make([]forebay.Settlement, 0, len(s))
	for i, one := range s {
		next, bad, err := b.prepare(one.Next)
		for _, e := range bad {
			err = e // any of them will do: the settlement is refused as a whole
		}
		if err == nil {
			err = engine.CheckResult(one.Result)
		}
		if err != nil {
			refused[i] = err
			continue
		}
		one.Next = next
		good = append(good, one)
	}
	return good, refused
}

// inParts calls do for at most size items at a time. The first part's error is
// the whole call's, for nothing was done; a later part's is told per item.
func inParts[T, R any](items []T, size int, do func([]T) ([]R, error), failed func(error) R) ([]R, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if len(items) <= size {
		return do(items)
	}
	all := make([]R, 0, len(items))
	for len(items) > 0 {
		part := items[:min(size, len(items))]
		items = items[len(part):]
		results, err := do(part)
		if err != nil && len(all) == 0 {
			return nil, err
		}
		if err != nil {
			for range part {
				all = append(all, failed(err))
			}
			continue
		}
		all = append(all, results...)
	}
	return all, nil
}

// weave puts the refusals back between the results, so that the answer has the
// order and length of the question.
func weave[R any](results []R, refused map[int]error, failed func(error) R) []R {
	if len(refused) == 0 {
		return results
	}
	all := make([]R, len(results)+len(refused))
	for i := range all {
		if err, ok := refused[i]; ok {
			all[i] = failed(err)
			continue
		}
		all[i], results = results[0], results[1:]
	}
	return all
}
