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
	if err := checkDeadLimit(q.Limit); err != nil {
		return nil, err
	}
	q.Limit = cmp.Or(q.Limit, 100)
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if q.ID != "" {
		return e.deadOf(ctx, q)
	}
	if q.Group != 0 {
		if err := e.groupDead(ctx, groupTurns); err != nil {
			return nil, err
		}
	}
	var out []forebay.DeadLetter
	for len(out) < q.Limit {
		v, err := e.run(ctx, "dead", q.Queue, groupName(q.Group), q.Before, min(q.Limit, 200))
		if err != nil {
			return nil, err
		}
		if len(v.out) == 0 {
			break
		}
		for _, one := range v.out {
			f := list(one)
			q.Before = number(f[0])
			if len(f) < 5 {
				continue
			}
			l := readHash(text(f[1]), text(f[2]), list(f[3])).letter()
			l.Seq = q.Before
			l.Fingerprint = cmp.Or(readGroup(text(f[4])), l.Fingerprint)
			if (q.Code == "" || l.Cause.Code == q.Code) && (q.Queue == "" || l.Message.Queue == q.Queue) && len(out) < q.Limit {
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
	if q.Queue != "" && q.Queue != l.Message.Queue || q.Code != "" && q.Code != l.Cause.Code || q.Group != 0 && q.Group != l.Fingerprint ||
		q.Before != 0 && l.Seq >= q.Before {
		return nil, nil
	}
	return []forebay.DeadLetter{l}, nil
}

// Replay sends dead letters again; see engine.DeadLetters.
func (e *Engine) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	return e.redrive(ctx, "replay", seqs, func(int) []any { return nil })
}

// Discard removes dead letters; see engine.DeadLetters.
func (e *Engine) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	return e.redrive(ctx, "discard", seqs, func(int) []any { return []any{"", 0} })
}

// redrive ends dead letters in the order of dying, whatever the order of asking. tell gives
// what the script is to know beside the number of one.
func (e *Engine) redrive(ctx context.Context, what string, seqs []int64, tell func(i int) []any) ([]error, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	order := make([]int, len(seqs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(seqs[a], seqs[b]) })
	errs := make([]error, len(seqs))
	for part := range slices.Chunk(order, settlesAtOnce) {
		args := []any{what, len(part)}
		for _, i := range part {
			args = append(append(args, strconv.FormatInt(seqs[i], 10)), tell(i)...)
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
		for i := 0; i+1 < len(v.extra); i += 2 { // queue and answer of what took the place of one
			e.tally.sent(text(v.extra[i]), sendAnswer(text(v.extra[i+1])))
		}
	}
	return errs, nil
}
