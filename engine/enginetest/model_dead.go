package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

var _ engine.DeadGroups = (*Model)(nil)

func (e *Model) DeadGroups(ctx context.Context, q engine.DeadGroupQuery) (engine.DeadGroupPage, error) {
	if q.Limit < 0 || q.Limit > 1000 || q.Order != "" && q.Order != engine.DeadNewest && q.Order != engine.DeadLargest {
		return engine.DeadGroupPage{}, fail(forebay.CodeInvalid, "%+v is out of bounds", q)
	}
	if _, err := e.enter(ctx); err != nil {
		return engine.DeadGroupPage{}, err
	}
	defer e.mu.Unlock()
	var all []engine.DeadGroup
	for _, l := range e.o.letters {
		_, text := engine.DeadFingerprint(l.Message.Queue, l.Message.Kind, l.Cause)
		g := engine.DeadGroup{Fingerprint: l.Fingerprint, Queue: l.Message.Queue, Kind: l.Message.Kind, Code: l.Cause.Code, Text: text, First: l.DiedAt}
		same := func(want, have string) bool { return want == "" || want == have }
		if !same(q.Queue, g.Queue) || !same(q.Kind, g.Kind) || !same(q.Code, g.Code) || q.Fingerprint != 0 && q.Fingerprint != g.Fingerprint {
			continue
		}
		i := slices.IndexFunc(all, func(o engine.DeadGroup) bool { return o.Fingerprint == g.Fingerprint })
		if i < 0 {
			i, all = len(all), append(all, g)
		}
		all[i].Count++
		all[i].Last, all[i].Sample = l.DiedAt, l.Seq
	}
	slices.SortFunc(all, func(a, b engine.DeadGroup) int {
		if q.Order == engine.DeadLargest && a.Count != b.Count {
			return cmp.Compare(b.Count, a.Count)
		}
		return cmp.Compare(b.Sample, a.Sample)
	})
	return pageOfGroups(all, q.After, cmp.Or(q.Limit, 100))
}

func pageOfGroups(all []engine.DeadGroup, after string, limit int) (page engine.DeadGroupPage, err error) {
	at := 0
	if after != "" {
		if _, err := fmt.Sscanf(after, "%d", &at); err != nil || at < 0 {
			return page, fail(forebay.CodeInvalid, "%q is not the next of a page", after)
		}
	}
	all = all[min(at, len(all)):]
	if len(all) > limit {
		all, page.Next = all[:limit], fmt.Sprint(at+limit)
	}
	page.Groups = all
	return page, nil
}

func (e *Model) DeadSeqs(ctx context.Context, q engine.DeadQuery, after int64) ([]int64, error) {
	limit := cmp.Or(q.Limit, 100)
	q.Limit = 1000
	var all []int64
	for {
		page, err := e.Dead(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			q.Before = l.Seq
			if l.Seq > after {
				all = append(all, l.Seq)
			}
		}
		if len(page) < q.Limit {
			slices.Sort(all)
			return all[:min(limit, len(all))], nil
		}
	}
}

func (e *Model) EndDead(ctx context.Context, ends []engine.DeadEnd) ([]error, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	errs, order := make([]error, len(ends)), make([]int, len(ends))
	for i := range ends {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ends[a].Seq, ends[b].Seq) })
	for _, i := range order {
		d := ends[i]
		if d.Next != nil {
			errs[i] = engine.CheckMessage(d.Next, now)
		}
		switch {
		case errs[i] != nil:
		case !e.o.endDead(d.Seq, d.Reason, d.Next, now):
			errs[i] = fail(forebay.CodeNotFound, "no dead letter %d", d.Seq)
		case d.Next != nil:
			e.o.send(*d.Next, now)
		}
	}
	e.wake()
	return errs, nil
}
