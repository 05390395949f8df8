// Package route is an engine made of several: most queues are kept by one of them,
// the main one, and some are kept elsewhere. A program whose events go through SQS
// and whose jobs stay in its own file sees one engine.
//
// It promises that a call reaches the engine that keeps the queue, item by item, and
// that what one of them cannot do is refused for its queues only. What the main
// engine can do beyond the contract (engine.As) holds for its own queues.
//
// It refuses to make two engines one store. What follows a settlement into another
// engine is sent first, and may be there twice or without its verdict after a crash;
// ids that are fixed make that harmless.
package route

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// mark begins the receipts of engines other than the main one. No engine of ours
// begins its own with it.
const mark = "@"

// Engine sends calls on. Close closes all.
type Engine struct {
	all    []engine.Engine // the main one first
	queues map[string]int  // of those that are kept elsewhere → place in all
}

var _ engine.Engine = (*Engine)(nil)

// New keeps the named queues in the engines given with them and all others in main.
func New(main engine.Engine, elsewhere map[string]engine.Engine) (*Engine, error) {
	if main == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "route: new", "no main engine was given")
	}
	e := &Engine{all: []engine.Engine{main}, queues: make(map[string]int)}
	for name, other := range elsewhere {
		if err := engine.CheckQueue(name); err != nil {
			return nil, err
		}
		if other == nil {
			return nil, forebay.Errorf(forebay.CodeInvalid, "route: new", "no engine was given for queue %q", name)
		}
		at := slices.Index(e.all, other)
		if at < 0 {
			at = len(e.all)
			e.all = append(e.all, other)
		}
		e.queues[name] = at
	}
	return e, nil
}

// Unwrap gives the main engine, whose abilities are found through it.
func (e *Engine) Unwrap() engine.Engine { return e.all[0] }

// Send stores each message where its queue is kept.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	return spread(e, msgs,
		func(m *forebay.Message) int { return e.queues[m.Queue] },
		func(to int, part []forebay.Message) ([]forebay.SendResult, error) { return e.all[to].Send(ctx, part) },
		func(err error) forebay.SendResult { return forebay.SendResult{Err: err} })
}

// Receive asks the engine that keeps the queue.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	at := e.queues[r.Queue]
	ds, err := e.all[at].Receive(ctx, r)
	if at > 0 {
		for i := range ds {
			ds[i].Receipt = marked(at, ds[i].Receipt)
		}
	}
	return ds, err
}

// Extend goes by the receipts.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	return spread(e, receipts,
		func(r *forebay.Receipt) int { return e.origin(*r) },
		func(to int, part []forebay.Receipt) ([]error, error) {
			for i := range part {
				part[i] = bare(part[i])
			}
			return e.all[to].Extend(ctx, part, lease)
		}, asIs)
}

// Settle goes by the receipts. What follows into another engine goes ahead.
func (e *Engine) Settle(ctx context.Context, s []forebay.Settlement) ([]error, error) {
	s, refused := e.sendAhead(ctx, s)
	errs, err := spread(e, s,
		func(s *forebay.Settlement) int { return e.origin(s.Receipt) },
		func(to int, part []forebay.Settlement) ([]error, error) {
			for i := range part {
				part[i].Receipt = bare(part[i].Receipt)
			}
			return e.all[to].Settle(ctx, part)
		}, asIs)
	if err != nil || refused == nil {
		return errs, err
	}
	for i := range refused { // the gaps, filled from the left
		if refused[i] == nil {
			refused[i], errs = errs[0], errs[1:]
		}
	}
	return refused, nil
}

// sendAhead sends what settlements want sent into another engine than their own, and
// gives back the settlements that may go on, without it. refused has the errors of
// the others by index; nil: there are none.
func (e *Engine) sendAhead(ctx context.Context, s []forebay.Settlement) (rest []forebay.Settlement, refused []error) {
	if !slices.ContainsFunc(s, e.leaves) {
		return s, nil
	}
	failed := false
	refused = make([]error, len(s))
	for i, one := range s {
		if e.leaves(one) {
			one.Next, refused[i] = e.ahead(ctx, one)
			failed = failed || refused[i] != nil
		}
		if refused[i] == nil {
			rest = append(rest, one)
		}
	}
	if !failed {
		return rest, nil
	}
	return rest, refused
}

// leaves tells whether something that follows goes to another engine.
func (e *Engine) leaves(s forebay.Settlement) bool {
	own := -1
	for i := range s.Next {
		if own < 0 {
			own = e.origin(s.Receipt)
		}
		if e.queues[s.Next[i].Queue] != own {
			return true
		}
	}
	return false
}

// ahead sends what leaves and gives back what stays.
func (e *Engine) ahead(ctx context.Context, s forebay.Settlement) (stays []forebay.Message, err error) {
	own := e.origin(s.Receipt)
	var leaves []forebay.Message
	for _, m := range s.Next {
		if e.queues[m.Queue] == own {
			stays = append(stays, m)
		} else {
			leaves = append(leaves, m)
		}
	}
	results, err := e.Send(ctx, leaves)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return stays, err
}

// Stats asks each engine for its own queues.
func (e *Engine) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	if len(queues) > 0 {
		return spread(e, queues,
			func(q *string) int { return e.queues[*q] },
			func(to int, part []string) ([]forebay.QueueStats, error) { return e.all[to].Stats(ctx, part...) },
			nil)
	}
	all, err := e.all[0].Stats(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s forebay.QueueStats) bool { return e.queues[s.Queue] > 0 })
	var elsewhere []string
	for name := range e.queues {
		elsewhere = append(elsewhere, name)
	}
	slices.Sort(elsewhere)
	if len(elsewhere) == 0 {
		return all, nil
	}
	others, err := e.Stats(ctx, elsewhere...)
	return append(all, others...), err
}

// Close closes the others, then the main one.
func (e *Engine) Close() error {
	var errs []error
	for _, one := range slices.Backward(e.all) {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// origin is the place of the engine that gave a receipt.
func (e *Engine) origin(r forebay.Receipt) int {
	number, _, ok := strings.Cut(strings.TrimPrefix(string(r), mark), ":")
	at, err := strconv.Atoi(number)
	if !strings.HasPrefix(string(r), mark) || !ok || err != nil || at < 1 || at >= len(e.all) {
		return 0 // which refuses what is none of its own
	}
	return at
}

func marked(at int, r forebay.Receipt) forebay.Receipt {
	return forebay.Receipt(mark + strconv.Itoa(at) + ":" + string(r))
}

func bare(r forebay.Receipt) forebay.Receipt {
	if rest, ok := strings.CutPrefix(string(r), mark); ok {
		if _, own, ok := strings.Cut(rest, ":"); ok {
			return forebay.Receipt(own)
		}
	}
	return r
}

func asIs(err error) error { return err }

// spread calls do once for each engine that items belong to, with a copy of them, and
// puts the answers in the order of the items. failed makes the answer of an item whose
// engine's call failed; without it, and where all calls failed, that is the error of
// the whole.
func spread[T, R any](e *Engine, items []T, to func(*T) int, do func(to int, part []T) ([]R, error), failed func(error) R) ([]R, error) {
	parts := make([][]T, len(e.all))
	places := make([][]int, len(e.all))
	for i := range items {
		at := to(&items[i])
		parts[at] = append(parts[at], items[i])
		places[at] = append(places[at], i)
	}
	all := make([]R, len(items))
	done := false
	var errs []error
	for at, part := range parts {
		if len(part) == 0 {
			continue
		}
		results, err := do(at, part)
		if err == nil {
			done = true
			for i, place := range places[at] {
				all[place] = results[i]
			}
			continue
		}
		errs = append(errs, err)
		for _, place := range places[at] {
			if failed != nil {
				all[place] = failed(err)
			}
		}
	}
	if len(errs) > 0 && (!done || failed == nil) {
		return nil, errors.Join(errs...)
	}
	return all, nil
}
