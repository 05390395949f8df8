package route

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Apart is a route over engines of which each keeps its own dead letters. All of them
// are listed and acted on as if they were in one store: the numbers of the others come
// after all of the main engine's. What is known by id is asked of each in turn.
type Apart struct{ *Engine }

var (
	_ engine.DeadLetters = (*Apart)(nil)
	_ engine.Locator     = (*Apart)(nil)
	_ engine.Sizer       = (*Apart)(nil)
)

// apartBy is between the numbers of dead letters of two engines: no store buries as many.
const apartBy = int64(1) << 40

// NewApart is New over engines with dead letters of their own.
func NewApart(main engine.Engine, elsewhere map[string]engine.Engine) (*Apart, error) {
	e, err := New(main, elsewhere)
	if err != nil {
		return nil, err
	}
	return &Apart{e}, nil
}

// Dead lists dead letters: those of the last engine first, each newest first. Those of
// one queue are newest first.
func (a *Apart) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	const usual = 100
	limit := q.Limit
	if limit == 0 {
		limit = usual
	}
	var out []forebay.DeadLetter
	for at := len(a.all) - 1; at >= 0; at-- {
		from := int64(at) * apartBy
		if q.Queue != "" && a.queues[q.Queue] != at || q.Before != 0 && q.Before <= from+1 {
			continue
		}
		able, ok := engine.As[engine.DeadLetters](a.all[at])
		if !ok {
			continue
		}
		own := q
		own.Before, own.Limit = 0, limit-len(out)
		if q.Before != 0 && q.Before < from+apartBy {
			own.Before = q.Before - from
		}
		page, err := able.Dead(ctx, own)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			d.Seq += from
			out = append(out, d)
		}
		if len(out) == limit {
			break
		}
	}
	return out, nil
}

// Replay sends dead letters again, each in its own engine.
func (a *Apart) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	return a.bySeq(ctx, seqs, engine.DeadLetters.Replay)
}

// Discard removes dead letters for good.
func (a *Apart) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	return a.bySeq(ctx, seqs, engine.DeadLetters.Discard)
}

func (a *Apart) bySeq(ctx context.Context, seqs []int64, act func(engine.DeadLetters, context.Context, []int64) ([]error, error)) ([]error, error) {
	return spread(a.Engine, seqs,
		func(seq *int64) int {
			if at := *seq / apartBy; at > 0 && at < int64(len(a.all)) {
				return int(at)
			}
			return 0 // which knows no such number, if it is wrong
		},
		func(to int, part []int64) ([]error, error) {
			able, ok := engine.As[engine.DeadLetters](a.all[to])
			if !ok {
				return nil, forebay.Errorf(forebay.CodeUnsupported, "route", "the engine of these dead letters keeps none")
			}
			for i := range part {
				part[i] -= int64(to) * apartBy
			}
			return act(able, ctx, part)
		}, asIs)
}

// Locate asks one engine after the other, until one has seen the message.
func (a *Apart) Locate(ctx context.Context, id string) (engine.Location, error) {
	for at, one := range a.all {
		able, ok := engine.As[engine.Locator](one)
		if !ok {
			continue
		}
		l, err := able.Locate(ctx, id)
		if err != nil {
			return l, err
		}
		if l.DeadSeq != 0 {
			l.DeadSeq += int64(at) * apartBy
		}
		if l.Where != engine.WhereUnknown {
			return l, nil
		}
	}
	return engine.Location{Where: engine.WhereUnknown}, nil
}

// Size tells of the disk of the first engine that can, the main one last: where that is
// a server elsewhere, its room is not this machine's.
func (a *Apart) Size(ctx context.Context) (used, free int64, err error) {
	for at := range a.all {
		if able, ok := engine.As[engine.Sizer](a.all[(at+1)%len(a.all)]); ok {
			return able.Size(ctx)
		}
	}
	return 0, 0, forebay.Errorf(forebay.CodeUnsupported, "route", "no engine can tell its size on disk")
}
