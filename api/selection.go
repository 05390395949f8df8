package api

import (
	"cmp"
	"context"
	"slices"

	"github.com/forebayhq/forebay"
)

const (
	defaultSelected = 10_000
	part            = 200  // items of one step, so that each is short
	maxFailures     = 1000 // listed in an answer
)

// Selection says which dead letters or bad rows an action is for: either some by
// their seq, or all that a filter matches.
type Selection struct {
	Seqs   []int64 `json:"seqs,omitempty" maxItems:"10000" doc:"These."`
	All    bool    `json:"all,omitempty" doc:"All that the filter matches, the newest first to count for the limit."`
	Limit  int     `json:"limit,omitempty" minimum:"0" maximum:"100000" doc:"Of all: at most so many; 0 is 10,000."`
	DryRun bool    `json:"dryRun,omitempty" doc:"Only count."`
}

// Outcome is what an action did.
type Outcome struct {
	Matched     int       `json:"matched" doc:"Selected and there."`
	Done        int       `json:"done"`
	FailedCount int       `json:"failedCount"`
	Failed      []Failure `json:"failed,omitempty" doc:"The first 1,000."`
	More        bool      `json:"more" doc:"There is more: call again."`
	DryRun      bool      `json:"dryRun,omitempty"`
}

// Failure is why one item was not done.
type Failure struct {
	Seq     int64        `json:"seq"`
	Code    forebay.Code `json:"code" doc:"One of ours, or of the edge for a bad row that is still bad."`
	Message string       `json:"message"`
}

// action is a list to select from and what is done to parts of it.
type action struct {
	list func(ctx context.Context, before int64, limit int) ([]int64, error) // seqs, newest first
	do   func(ctx context.Context, seqs []int64) ([]error, error)            // oldest first
}

// run does an action for a selection, the oldest first, so that order is kept.
// What fails for one item is told; the others are done.
func (act action) run(ctx context.Context, s Selection, filtered bool) (Outcome, error) {
	out := Outcome{DryRun: s.DryRun}
	seqs, err := act.selected(ctx, s, filtered, &out)
	if err != nil {
		return out, err
	}
	out.Matched = len(seqs)
	if s.DryRun {
		return out, nil
	}
	for chunk := range slices.Chunk(seqs, part) {
		errs, err := act.do(ctx, chunk)
		if err != nil && out.Done == 0 && out.FailedCount == 0 {
			return out, err
		}
		if err != nil { // some are done: say so, and let the caller come again
			out.More = true
			out.fail(chunk[0], err)
			return out, nil
		}
		for i, err := range errs {
			if err == nil {
				out.Done++
				continue
			}
			out.fail(chunk[i], err)
		}
	}
	return out, nil
}

func (o *Outcome) fail(seq int64, err error) {
	o.FailedCount++
	if len(o.Failed) < maxFailures {
		o.Failed = append(o.Failed, Failure{Seq: seq, Code: forebay.CodeOf(err), Message: forebay.TextOf(err)})
	}
}

func (act action) selected(ctx context.Context, s Selection, filtered bool, out *Outcome) ([]int64, error) {
	switch {
	case s.All == (len(s.Seqs) > 0):
		return nil, forebay.Errorf(forebay.CodeInvalid, "", "either seqs, or all: true with an optional filter, says what is meant")
	case !s.All && (filtered || s.Limit > 0):
		return nil, forebay.Errorf(forebay.CodeInvalid, "", "a filter and a limit go with all: true, not with seqs")
	case !s.All:
		seqs := slices.Clone(s.Seqs)
		slices.Sort(seqs)
		return act.existing(ctx, slices.Compact(seqs), out)
	}
	limit := cmp.Or(s.Limit, defaultSelected)
	var seqs []int64
	before := int64(0)
	for {
		page, err := act.list(ctx, before, part)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		seqs, before = append(seqs, page...), page[len(page)-1]
		if len(seqs) > limit {
			seqs, out.More = seqs[:limit], true
			break
		}
	}
	slices.Sort(seqs)
	return seqs, nil
}

// existing drops the seqs that are not there, and tells them.
func (act action) existing(ctx context.Context, seqs []int64, out *Outcome) ([]int64, error) {
	var there []int64
	for _, seq := range seqs {
		page, err := act.list(ctx, seq+1, 1)
		if err != nil {
			return nil, err
		}
		if len(page) == 1 && page[0] == seq {
			there = append(there, seq)
			continue
		}
		out.fail(seq, forebay.Errorf(forebay.CodeNotFound, "", "there is no %d", seq))
	}
	return there, nil
}
