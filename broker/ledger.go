package broker

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Job tells what is known of a job, as engine.Jobs says.
func (b *Broker) Job(ctx context.Context, id string) (forebay.Job, error) {
	if b.able.jobs == nil {
		return forebay.Job{}, noLedger()
	}
	return b.able.jobs.Job(ctx, id)
}

// Jobs lists jobs, as engine.JobLister says.
func (b *Broker) Jobs(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	if b.able.lister == nil {
		return engine.JobPage{}, unsupported("list jobs")
	}
	if q.Limit < 0 || q.Limit > engine.MaxJobs {
		return engine.JobPage{}, invalid("limit", "limit is %d; 1 to %d are allowed, or 0 for %d", q.Limit, engine.MaxJobs, engine.DefaultJobs)
	}
	return b.able.lister.Jobs(ctx, q)
}

// Cancel ends jobs that have not finished, as engine.Jobs says.
func (b *Broker) Cancel(ctx context.Context, ids []string, reason string) ([]engine.CancelResult, error) {
	if b.able.jobs == nil {
		return nil, noLedger()
	}
	if err := engine.CheckText("reason", reason); err != nil {
		return nil, err
	}
	return inParts(ids, engine.MaxCancel, func(part []string) ([]engine.CancelResult, error) {
		return b.able.jobs.Cancel(ctx, part, reason)
	}, func(err error) engine.CancelResult { return engine.CancelResult{Err: err} })
}

// Change changes jobs that wait, as engine.Jobs says.
func (b *Broker) Change(ctx context.Context, changes []engine.JobChange) ([]error, error) {
	if b.able.jobs == nil {
		return nil, noLedger()
	}
	now := b.now()
	return each(changes, engine.MaxCancel, func(c *engine.JobChange) error { return engine.CheckChange(c, now) },
		func(part []engine.JobChange) ([]error, error) { return b.able.jobs.Change(ctx, part) })
}

// Progress notes what running jobs tell, as engine.Jobs says.
func (b *Broker) Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error) {
	if b.able.jobs == nil {
		return nil, noLedger()
	}
	return each(updates, engine.MaxProgress, engine.CheckProgress,
		func(part []forebay.ProgressUpdate) ([]error, error) { return b.able.jobs.Progress(ctx, part) })
}

// Remove drops finished jobs, as engine.Jobs says.
func (b *Broker) Remove(ctx context.Context, ids []string) ([]error, error) {
	if b.able.jobs == nil {
		return nil, noLedger()
	}
	return inParts(ids, engine.MaxJobs, func(part []string) ([]error, error) { return b.able.jobs.Remove(ctx, part) }, asIs)
}

// Finished counts finished jobs by queue and state, as engine.JobLister says.
func (b *Broker) Finished(ctx context.Context) (map[string]map[forebay.State]int64, error) {
	if b.able.lister == nil {
		return nil, unsupported("count finished jobs")
	}
	return b.able.lister.Finished(ctx)
}

// History reads what happened to jobs, as engine.History says. Who wants to be
// told subscribes to the Watcher instead, which reads once for all.
func (b *Broker) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	if b.able.history == nil {
		return engine.HistoryPage{}, unsupported("tell the history of jobs")
	}
	if q.Limit < 0 || q.Limit > engine.MaxHistory {
		return engine.HistoryPage{}, invalid("limit", "limit is %d; 1 to %d are allowed, or 0 for %d", q.Limit, engine.MaxHistory, engine.MaxHistory)
	}
	if q.Wait < 0 || q.Wait > engine.MaxWait {
		return engine.HistoryPage{}, invalid("wait", "wait is %s; 0 to %s are allowed", q.Wait, engine.MaxWait)
	}
	return b.able.history.History(ctx, q)
}

// PutDocument stores a document, as engine.Documents says.
func (b *Broker) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if b.able.docs == nil {
		return engine.Document{}, noDocuments()
	}
	return b.able.docs.PutDocument(ctx, d)
}

// Document gets a document, as engine.Documents says.
func (b *Broker) Document(ctx context.Context, collection, key string) (engine.Document, error) {
	if b.able.docs == nil {
		return engine.Document{}, noDocuments()
	}
	return b.able.docs.Document(ctx, collection, key)
}

// Documents lists documents, as engine.Documents says.
func (b *Broker) Documents(ctx context.Context, collection, after string, limit int) ([]engine.Document, error) {
	if b.able.docs == nil {
		return nil, noDocuments()
	}
	return b.able.docs.Documents(ctx, collection, after, limit)
}

// DeleteDocument drops a document, as engine.Documents says.
func (b *Broker) DeleteDocument(ctx context.Context, collection, key string, rev int64) error {
	if b.able.docs == nil {
		return noDocuments()
	}
	return b.able.docs.DeleteDocument(ctx, collection, key, rev)
}

func noLedger() error    { return unsupported("keep a ledger of jobs") }
func noDocuments() error { return unsupported("keep documents") }

// each checks items one by one and gives the good ones to do.
func each[T any](items []T, size int, check func(*T) error, do func([]T) ([]error, error)) ([]error, error) {
	good := items
	var refused map[int]error
	for i := range items {
		bad := check(&items[i])
		switch {
		case bad != nil && refused == nil:
			refused = map[int]error{i: bad}
			good = append(make([]T, 0, len(items)), items[:i]...)
		case bad != nil:
			refused[i] = bad
		case refused != nil:
			good = append(good, items[i])
		}
	}
	errs, err := inParts(good, size, do, asIs)
	if err != nil {
		return nil, err
	}
	return weave(errs, refused, asIs), nil
}
