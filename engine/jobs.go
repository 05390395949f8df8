package engine

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// Jobs is the ability to keep a ledger: to tell what is known of each job now, and
// to act on jobs by id. A job is a message whose Job is set. The ledger changes in
// the same commit as what it tells of.
//
// Beyond the invariants of messages, these hold for jobs:
//
//   - A verdict's Result, Cause and time are in the ledger when Settle returns.
//   - Expires: a job that was never handed out by then is finished as expired, on
//     time, also while no consumer asks. Deadline: a job that is not active then is
//     dead with the cause "deadline"; one that is, is ended by its consumer, and at
//     the latest when its lease ends.
//   - Tenants of a queue take turns: however much one of them has waiting, the next
//     job of another is handed out within as many hand-outs as there are tenants
//     with something waiting. Priority and age decide within a tenant.
//   - Finished jobs leave by their Keep, in bounded slices.
type Jobs interface {
	// Job tells what is known of one; CodeNotFound: nothing (any more).
	Job(ctx context.Context, id string) (forebay.Job, error)

	// Cancel ends jobs that have not finished. One that is not active is cancelled
	// when it returns. An active one is asked to stop: the history says so, Extend
	// answers CodeCancelled for its receipt (and extends), and if its lease ends
	// without a verdict, or with Retry or Release, it is cancelled and not handed out
	// again. CodeNotFound: no such job; CodeConflict: it has finished.
	Cancel(ctx context.Context, ids []string, reason string) ([]CancelResult, error)

	// Change changes jobs that wait. CodeNotFound as above; CodeConflict: it is
	// active or finished.
	Change(ctx context.Context, changes []JobChange) ([]error, error)

	// Progress notes what running jobs tell. It is seen at once, and need not survive
	// a crash. Entries are errors as of Extend: lease_lost, CodeCancelled (and noted).
	Progress(ctx context.Context, updates []forebay.ProgressUpdate) ([]error, error)

	// Remove drops finished jobs from the ledger (dead ones too: that is a discard).
	// CodeConflict: it has not finished.
	Remove(ctx context.Context, ids []string) ([]error, error)
}

// JobLister is the ability to find jobs without knowing their ids.
type JobLister interface {
	// Jobs lists. The order is: active, then waiting and delayed, newest first, then
	// dead, newest first, then finished, last finished first.
	Jobs(ctx context.Context, q JobQuery) (JobPage, error)

	// Finished counts what the ledger keeps of finished jobs, by queue and state.
	Finished(ctx context.Context) (map[string]map[forebay.State]int64, error)
}

// CancelResult is what became of one Cancel.
type CancelResult struct {
	State forebay.State // cancelled, or active: it was asked to stop
	Err   error
}

// JobChange changes a job that waits. Nil fields stay.
type JobChange struct {
	ID       string
	Priority *forebay.Priority // CodeInvalid for a job of a group, whose order goes before it
	Due      *time.Time        // past: now (promote)
	Payload  []byte
}

// Bounds of Jobs.
const (
	MaxJobs      = 1000 // of one page
	MaxCancel    = 1000
	MaxProgress  = 1000
	DefaultJobs  = 50
	MaxTerms     = 64 // of a payload that can be searched; what comes later is still found, by reading
	MaxHistory   = 1000
	MaxDocuments = 1000
)

// JobQuery asks for a page of jobs.
type JobQuery struct {
	Filter JobFilter
	After  string // Next of the page before; empty: from the start
	Limit  int    // 1 to MaxJobs; 0: DefaultJobs
}

// JobPage is a page of jobs. Next is empty at the end. A page may be short, even
// empty, with a Next: it is where the work for one page ended.
type JobPage struct {
	Jobs []forebay.Job
	Next string
}

// History is the append-only log of what happened to jobs.
type History interface {
	// History reads events after a place, oldest first. With none there yet it waits
	// up to q.Wait for one, without polling.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)
}

// HistoryQuery asks for events.
type HistoryQuery struct {
	After int64 // only with a larger Seq; negative: only what comes from now on
	Job   string
	Queue string
	Types []forebay.HistoryType // none: all
	Since time.Time
	Until time.Time
	Limit int // 1 to MaxHistory; 0: MaxHistory
	Wait  time.Duration
}

// HistoryPage is a part of the history.
type HistoryPage struct {
	Epoch  string // of the store: places of another one mean nothing
	Events []forebay.HistoryEvent
	Next   int64 // to go on after
	Oldest int64 // what lies before has left by retention: an After below is too old
	More   bool  // there is more at once
}

// Documents is the ability to keep small named values durably: schedules, the
// answers behind idempotency keys, finished effects.
type Documents interface {
	// PutDocument stores d and gives its revision. d.Rev must be that of the stored
	// one, 0 where there must be none; else CodeConflict, and the stored one is
	// returned with the error. AnyRev stores whatever there is.
	PutDocument(ctx context.Context, d Document) (Document, error)
	// Document gets one; CodeNotFound: there is none, or it has expired.
	Document(ctx context.Context, collection, key string) (Document, error)
	// Documents lists a collection by key, those after a key, 1 to MaxDocuments. Fewer
	// come also where the values are large; the end is where none comes.
	Documents(ctx context.Context, collection, after string, limit int) ([]Document, error)
	// DeleteDocument drops one; rev as for PutDocument. CodeNotFound: there is none.
	DeleteDocument(ctx context.Context, collection, key string, rev int64) error
}

// AnyRev stands for whatever revision is stored.
const AnyRev = -1

// Bounds of documents.
const (
	MaxCollectionBytes = 64
	MaxDocumentKey     = 512
	MaxDocumentBytes   = 1 << 20
)

// Document is a small named value.
type Document struct {
	Collection string
	Key        string
	Rev        int64 // grows with every change
	Value      []byte
	Expires    time.Time // it is gone after; zero: never
}
