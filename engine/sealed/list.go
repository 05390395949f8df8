package sealed

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// lister finds jobs. What is sealed the engine behind cannot search: rows that may be meant
// are opened here, and looked at.
type lister struct {
	e  *Engine
	in engine.JobLister
}

func (l *lister) Finished(ctx context.Context) (map[string]map[forebay.State]int64, error) {
	return l.in.Finished(ctx)
}

// The work for one page of a search: calls, and rows that are opened.
const (
	maxLooks = 16
	maxOpens = 4000
)

func (l *lister) Jobs(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	whole := q.Filter
	q.Filter.Payload, q.Filter.Error = nil, ""
	if len(whole.Payload) == 0 && whole.Error == "" {
		return l.page(ctx, q)
	}
	limit := q.Limit
	if limit == 0 {
		limit = engine.DefaultJobs
	}
	var out engine.JobPage
	for looks, opened := 0, 0; looks < maxLooks && opened < maxOpens; looks++ {
		q.Limit = limit - len(out.Jobs)
		page, err := l.page(ctx, q)
		if err != nil {
			return engine.JobPage{}, err
		}
		for i := range page.Jobs {
			if opened++; whole.Match(&page.Jobs[i]) {
				out.Jobs = append(out.Jobs, page.Jobs[i])
			}
		}
		out.Next, q.After = page.Next, page.Next
		if out.Next == "" || 2*len(out.Jobs) >= limit {
			break // the rest would come in ever smaller portions
		}
	}
	return out, nil
}

func (l *lister) page(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	page, err := l.in.Jobs(ctx, q)
	if err != nil {
		return page, err
	}
	out := append([]forebay.Job(nil), page.Jobs...)
	for i := range out {
		if err := l.e.openJob(ctx, &out[i]); err != nil {
			return engine.JobPage{}, err
		}
	}
	page.Jobs = out
	return page, nil
}

// peeker opens what is looked at.
type peeker struct {
	e  *Engine
	in engine.Peeker
}

func (k *peeker) Peek(ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
	page, err := k.in.Peek(ctx, q)
	for i := range page.Messages {
		if err == nil {
			err = unless(k.e.openMessage(ctx, &page.Messages[i].Message))
		}
	}
	return page, err
}

// sentLog opens what was sent.
type sentLog struct {
	e  *Engine
	in engine.Log
}

func (l *sentLog) Logs(ctx context.Context) ([]engine.LogInfo, error) { return l.in.Logs(ctx) }

func (l *sentLog) ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error) {
	page, err := l.in.ReadLog(ctx, q)
	for i := range page.Entries {
		if err == nil {
			err = unless(l.e.openMessage(ctx, &page.Entries[i].Message))
		}
	}
	return page, err
}
