package sealed

import (
	"context"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// deadLetters opens dead letters. They are replayed as they are.
type deadLetters struct {
	e  *Engine
	in engine.DeadLetters
}

func (d *deadLetters) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	all, err := d.in.Dead(ctx, q)
	for i := range all {
		l := &all[i]
		if err == nil {
			err = unless(d.e.openMessage(ctx, &l.Message))
		}
		p := place{queue: l.Message.Queue, id: l.Message.ID}
		d.e.sealer.openCause(ctx, p, &l.Cause)
		l.Failures = d.e.sealer.openCauses(ctx, p, l.Failures)
	}
	return all, err
}

func (d *deadLetters) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	return d.in.Replay(ctx, seqs)
}

func (d *deadLetters) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	return d.in.Discard(ctx, seqs)
}

// deadGroups opens what dead letters have in common, and seals what takes their place.
type deadGroups struct {
	e  *Engine
	in engine.DeadGroups
}

func (d *deadGroups) DeadSeqs(ctx context.Context, q engine.DeadQuery, after int64) ([]int64, error) {
	return d.in.DeadSeqs(ctx, q, after)
}

// DeadGroups takes the text of a group from one of its dead letters.
func (d *deadGroups) DeadGroups(ctx context.Context, q engine.DeadGroupQuery) (engine.DeadGroupPage, error) {
	page, err := d.in.DeadGroups(ctx, q)
	if err != nil {
		return page, err
	}
	letters, ok := engine.As[engine.DeadLetters](d.e)
	for i := range page.Groups {
		g := &page.Groups[i]
		if !strings.HasPrefix(g.Text, causeMark) || !ok {
			continue
		}
		one, err := letters.Dead(ctx, engine.DeadQuery{Before: g.Sample + 1, Limit: 1})
		if err != nil {
			return engine.DeadGroupPage{}, err
		}
		if len(one) == 1 && one[0].Seq == g.Sample {
			g.Text = engine.CauseText(one[0].Cause.Message)
		}
	}
	return page, nil
}

func (d *deadGroups) EndDead(ctx context.Context, ends []engine.DeadEnd) ([]error, error) {
	out := make([]engine.DeadEnd, 0, len(ends))
	errs := make([]error, len(ends))
	for i := range ends {
		one := ends[i]
		if one.Next != nil {
			next, refused := d.e.sealAll([]forebay.Message{*one.Next})
			if refused != nil {
				errs[i] = refused[0]
				continue
			}
			one.Next = &next[0]
		}
		out = append(out, one)
	}
	told, err := d.in.EndDead(ctx, out)
	if err != nil {
		return nil, err
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i], told = told[0], told[1:]
		}
	}
	return errs, nil
}

// locator opens the last cause.
type locator struct {
	e  *Engine
	in engine.Locator
}

func (l *locator) Locate(ctx context.Context, id string) (engine.Location, error) {
	at, err := l.in.Locate(ctx, id)
	if at.Last != nil {
		c := *at.Last
		l.e.sealer.openCause(ctx, place{queue: at.Queue, id: id}, &c)
		at.Last = &c
	}
	return at, err
}

// late goes by the receipts of the engine behind.
type late struct {
	s  *sealer
	in engine.Late
}

func (l *late) Late(ctx context.Context, receipts []forebay.Receipt) ([]engine.LateState, error) {
	return l.in.Late(ctx, l.s.bareAll(receipts))
}

func (l *late) AckLate(ctx context.Context, receipts []forebay.Receipt) ([]error, error) {
	return l.in.AckLate(ctx, l.s.bareAll(receipts))
}

func (l *late) ExtendLate(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	return l.in.ExtendLate(ctx, l.s.bareAll(receipts), lease)
}

func (l *late) EndActive(ctx context.Context, queue string) (int64, error) {
	return l.in.EndActive(ctx, queue)
}
