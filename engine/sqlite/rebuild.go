package sqlite

import (
	"context"
	"encoding/json"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// LedgerRebuild tells what a rebuilding of the ledger has found.
type LedgerRebuild struct {
	Jobs    int64 // finished ones that are in the ledger again
	Missing int64 // that finished too, but whose messages or beginnings are no longer kept
}

const (
	rebuildJobs = 512 // of one transaction
	rebuildRows = 64  // that one transaction drops
)

// RebuildLedger drops what the ledger says of jobs that are completed, cancelled or
// expired, and makes it anew from the history and the logs of messages: states,
// attempts, times, causes, progress and results. With jobs that it would lose it does
// nothing but count them (CodeConflict), unless it is forced. What it cannot know are
// results of more than 16 KiB, a priority that was changed while the job waited, and that
// a finished job was removed by hand. Nothing else may use the engine meanwhile; when it
// is cut off it is done again. Memory is bounded by the jobs that live at one time.
func (e *Engine) RebuildLedger(ctx context.Context, force bool) (found LedgerRebuild, err error) {
	found, err = e.retell(ctx, func([]retold) error { return nil })
	if err != nil {
		return found, err
	}
	if found.Missing > 0 && !force {
		err := forebay.Errorf(forebay.CodeConflict, "sqlite: rebuild", "%d finished jobs cannot be made anew: their messages, or their beginnings, are no longer kept", found.Missing)
		err.Hint = "with force, what is known of them is lost"
		return found, err
	}
	for more := true; more; {
		drop := &dropFinished{}
		if err := e.submit(ctx, drop); err != nil {
			return found, err
		}
		more = drop.rows > 0
	}
	return e.retell(ctx, func(jobs []retold) error { return e.submit(ctx, &keepRetold{jobs: jobs}) })
}

// retold is what the history tells of one job.
type retold struct {
	outcome
	body  []byte
	queue string
	at    int64 // when it finished
	fails []forebay.Cause
}

// retelling goes through the history, with the messages beside it.
type retelling struct {
	e     *Engine
	jobs  map[string]*retold
	logs  map[string]*logCursor
	found LedgerRebuild
	ready []retold
	give  func([]retold) error
}

// retell gives all finished jobs of the history, in the order in which they finished.
func (e *Engine) retell(ctx context.Context, give func([]retold) error) (LedgerRebuild, error) {
	r := &retelling{e: e, jobs: map[string]*retold{}, logs: map[string]*logCursor{}, give: give}
	for q := (engine.HistoryQuery{}); ; {
		page, err := e.History(ctx, q)
		if err != nil {
			return r.found, err
		}
		for i := range page.Events {
			if err := r.event(ctx, &page.Events[i]); err != nil {
				return r.found, err
			}
		}
		if q.After = page.Next; !page.More {
			return r.found, r.flush()
		}
	}
}

func (r *retelling) event(ctx context.Context, e *forebay.HistoryEvent) error {
	if e.Type == forebay.HistoryAdded {
		return r.added(ctx, e)
	}
	j := r.jobs[e.Job]
	if j == nil {
		if e.State == forebay.StateCompleted || e.State == forebay.StateCancelled || e.State == forebay.StateExpired {
			r.found.Missing++
		}
		return nil
	}
	switch e.Type {
	case forebay.HistoryStarted:
		j.deliveries, j.started = j.deliveries+1, e.At.UnixNano()
	case forebay.HistoryReleased:
		j.deliveries--
	case forebay.HistoryRetry:
		j.attempts++
		if j.fails = append(j.fails, *e.Cause); len(j.fails) > forebay.MaxFailures {
			j.fails = j.fails[1:]
		}
	case forebay.HistoryProgress:
		var err error
		if j.progress, err = encodeProgress(e.Progress); err != nil {
			return err
		}
	case forebay.HistoryReplayed: // from the beginning
		*j = retold{body: j.body, queue: j.queue, outcome: outcome{sentAt: e.At.UnixNano()}}
	case forebay.HistoryDiscarded:
		delete(r.jobs, e.Job)
	case forebay.HistoryCompleted, forebay.HistoryCancelled, forebay.HistoryExpired:
		return r.finished(e, j)
	}
	return nil
}

// added takes up a job. The log has its message.
func (r *retelling) added(ctx context.Context, e *forebay.HistoryEvent) error {
	delete(r.jobs, e.Job) // an earlier one of the same id has finished
	c := r.logs[e.Queue]
	if c == nil {
		c = &logCursor{queue: e.Queue, seen: map[string]engine.LogEntry{}}
		r.logs[e.Queue] = c
	}
	entry, ok, err := c.find(ctx, r.e, e)
	if !ok || err != nil {
		return err // it is missing when it finishes
	}
	m := encode(&entry.Message, entry.SentAt, nil)
	r.jobs[e.Job] = &retold{body: m.body, queue: e.Queue, outcome: outcome{sentAt: entry.SentAt.UnixNano()}}
	return nil
}

func (r *retelling) finished(e *forebay.HistoryEvent, j *retold) (err error) {
	delete(r.jobs, e.Job)
	j.at, j.result = e.At.UnixNano(), e.Result
	switch e.Type {
	case forebay.HistoryCompleted:
		j.state = stCompleted
	case forebay.HistoryCancelled:
		j.state = stCancelled
	case forebay.HistoryExpired:
		j.state = stExpired
	}
	if e.Cause != nil {
		if j.cause, err = json.Marshal(e.Cause); err != nil {
			return err
		}
	}
	if len(j.fails) > 0 {
		if j.failures, err = json.Marshal(j.fails); err != nil {
			return err
		}
	}
	r.found.Jobs++
	if n := len(r.ready); n >= rebuildJobs && r.ready[n-1].at != j.at { // jobs of one commit share a row
		err = r.flush()
	}
	r.ready = append(r.ready, *j)
	return err
}

func (r *retelling) flush() error {
	if len(r.ready) == 0 {
		return nil
	}
	jobs := r.ready
	r.ready = nil
	return r.give(jobs)
}

// logCursor goes through the log of one queue beside the history, which tells of jobs
// in the same order, but for those of one commit.
type logCursor struct {
	queue string
	after int64
	ended bool
	seen  map[string]engine.LogEntry // that the history has not come to yet
}

// find gives the message of a job that was added just then. What was sent later is for
// later; what is too old for the history, and was passed, is let go.
func (c *logCursor) find(ctx context.Context, e *Engine, added *forebay.HistoryEvent) (entry engine.LogEntry, ok bool, err error) {
	for {
		if entry, ok = c.seen[added.Job]; ok && !entry.SentAt.After(added.At) {
			delete(c.seen, added.Job)
			return entry, true, nil
		}
		if ok || c.ended {
			return entry, false, nil
		}
		page, err := e.ReadLog(ctx, engine.LogQuery{Queue: c.queue, After: c.after, Limit: rebuildJobs})
		if forebay.CodeOf(err) == forebay.CodeUnsupported {
			c.ended = true
			return entry, false, nil
		}
		if err != nil {
			return entry, false, err
		}
		beyond := false
		for _, one := range page.Entries {
			if one.Message.Job != nil && !one.SentAt.Before(added.At) {
				c.seen[one.Message.ID] = one
			}
			beyond = beyond || one.SentAt.After(added.At)
		}
		c.after, c.ended = page.Next, !page.More
		if _, ok := c.seen[added.Job]; beyond && !ok {
			return entry, false, nil
		}
	}
}
