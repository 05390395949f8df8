package queue

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// fenced stands in for engine.Late until engines have it.
type fenced struct{ e engine.Engine }

func (f fenced) Late(_ context.Context, rs []forebay.Receipt) ([]engine.LateState, error) {
	out := make([]engine.LateState, len(rs))
	for i := range out {
		out[i].Where = engine.WhereGone
	}
	return out, nil
}

func (f fenced) AckLate(ctx context.Context, rs []forebay.Receipt) ([]error, error) {
	acks := make([]forebay.Settlement, len(rs))
	for i, r := range rs {
		acks[i] = forebay.Settlement{Receipt: r, Verdict: forebay.Ack}
	}
	errs, err := f.e.Settle(ctx, acks)
	for i, e := range errs {
		if forebay.CodeOf(e) == forebay.CodeLeaseLost {
			errs[i] = nil
		}
	}
	return errs, err
}

func (f fenced) ExtendLate(ctx context.Context, rs []forebay.Receipt, d time.Duration) ([]error, error) {
	errs, err := f.e.Extend(ctx, rs, max(d, engine.MinLease))
	for i, e := range errs {
		if forebay.CodeOf(e) == forebay.CodeLeaseLost {
			errs[i] = forebay.Errorf(forebay.CodeNotFound, "", "gone")
		}
	}
	return errs, err
}
