package redis

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Dead lists dead letters; see engine.DeadLetters.
func (e *Engine) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	if q.Limit < 0 || q.Limit > 1000 {
		return nil, fail(forebay.CodeInvalid, "a limit of %d; 1 to 1000 are allowed", q.Limit)
	}
	q.Limit = cmp.Or(q.Limit, 100)
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if q.ID != "" {
		return e.deadOf(ctx, q)
	}
	var out []forebay.DeadLetter
	for len(out) < q.Limit {
		v, err := e.run(ctx, "dead", q.Queue, q.Before, min(q.Limit, 200))
		if err != nil {
			return nil, err
		}
		if len(v.out) == 0 {
			break
		}
		for _, one := range v.out {
			f := list(one)
			q.Before = number(f[0])
			if len(f) < 4 {
				continue
			}
			h := readHash(text(f[1]), text(f[2]), list(f[3]))
			l := h.letter()
			l.Seq = q.Before
			if (q.Code == "" || l.Cause.Code == q.Code) && len(out) < q.Limit {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// deadOf finds the dead letter of one id.
func (e *Engine) deadOf(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	h, known, err := e.find(ctx, q.ID)
	if err != nil || !known || h.state != forebay.StateDead {
		return nil, err
	}
	l := h.letter()
	if q.Queue != "" && q.Queue != l.Message.Queue || q.Code != "" && q.Code != l.Cause.Code || q.Before != 0 && l.Seq >= q.Before {
		return nil, nil
	}
	return []forebay.DeadLetter{l}, nil
}

// Replay sends dead letters again; see engine.DeadLetters.
func (e *Engine) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	return e.redrive(ctx, "replay", seqs)
}

// Discard removes dead letters; see engine.DeadLetters.
func (e *Engine) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	return e.redrive(ctx, "discard", seqs)
}

func (e *Engine) redrive(ctx context.Context, what string, seqs []int64) ([]error, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	order := make([]int, len(seqs)) // that of dying, whatever the order of asking
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(seqs[a], seqs[b]) })
	errs := make([]error, len(seqs))
	for part := range slices.Chunk(order, settlesAtOnce) {
		args := []any{what, len(part)}
		for _, i := range part {
			args = append(args, strconv.FormatInt(seqs[i], 10))
		}
		v, err := e.run(ctx, "redrive", args...)
		if err != nil {
			return nil, err
		}
		for n, i := range part {
			if number(v.out[n]) == 0 {
				errs[i] = fail(forebay.CodeNotFound, "there is no dead letter %d", seqs[i])
			}
		}
	}
	return errs, nil
}
