package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Store is what both sides must be able to do.
type Store interface {
	engine.Engine
	engine.Jobs
	engine.JobLister
	engine.DeadLetters
	engine.Documents
	engine.Limiter
}

// Source also tells which collections of documents it has.
type Source interface {
	Store
	Collections(ctx context.Context) ([]string, error)
}

// Config says what to move.
type Config struct {
	From Source
	To   Store
	Name string // of the target, for the source's history
	// Stays tells what is kept where it is: queues that are not worked from the target.
	Stays func(queue string) bool
	// StaysDocument is the same for collections of documents.
	StaysDocument func(collection string) bool

	DryRun bool            // only count
	Told   func(step Step) // after each batch; nil: nobody
	Lease  time.Duration   // of what is taken to be settled; 0: 10 seconds
}

func (c *Config) setDefaults() {
	if c.Lease == 0 {
		c.Lease = 10 * time.Second
	}
}

// Step is how far a move is.
type Step struct {
	What string
	Done int
	Of   int
}

// Result counts what was moved, or would be.
type Result struct {
	Jobs      map[forebay.State]int `json:"jobs"`
	Moved     int                   `json:"moved"` // jobs that a move before this one has brought there; not among Jobs
	Documents int                   `json:"documents"`
	Queues    int                   `json:"queues"`   // whose limits were set
	Attempts  int                   `json:"attempts"` // jobs that wait and have failed before: they have all their attempts again
	Checked   int                   `json:"checked"`  // jobs and documents that were compared
}

// batch is how many jobs are sent, taken and settled at a time.
const batch = 500

// entry is a job of the source, so far as it is remembered.
type entry struct {
	id, queue string
	state     forebay.State
	finished  time.Time
	movedTo   string // the target for which it was cancelled here
	moved     bool   // it is in this target since a move before this one
}

// mover is one move.
type mover struct {
	Config
	all           []entry   // oldest first; those that have ended before those that wait
	elsewhere     time.Time // when the last move to another target came to that end, and its name
	elsewhereName string
	again         bool // a move before this one has come to its end, or to cancelling
	done          Result
}

// Move moves, checks, and then cancels what waits in the source.
func Move(ctx context.Context, c Config) (Result, error) {
	c.setDefaults()
	m := &mover{Config: c, done: Result{Jobs: map[forebay.State]int{}}}
	err := m.list(ctx)
	if err != nil || c.DryRun {
		return m.done, err
	}
	for _, step := range []func(context.Context) error{m.lookAtTarget, m.lookAtMoved, m.documents, m.ended, m.waiting, m.limits, m.check, m.close} {
		if err := step(ctx); err != nil {
			return m.done, err
		}
	}
	return m.done, nil
}

// list reads what there is. An engine that nobody else has open has nothing active.
func (m *mover) list(ctx context.Context) error {
	for after := ""; ; {
		page, err := m.From.Jobs(ctx, engine.JobQuery{After: after, Limit: engine.MaxJobs})
		if err != nil {
			return err
		}
		for i := range page.Jobs {
			m.add(&page.Jobs[i])
		}
		if after = page.Next; after == "" {
			break
		}
	}
	// The list begins with the newest that waits, and ends with the first that has ended.
	slices.Reverse(m.all)
	return m.markMoved(ctx)
}

func (m *mover) add(j *forebay.Job) {
	if m.Stays(j.Queue) {
		return
	}
	m.all = append(m.all, entry{id: j.ID, queue: j.Queue, state: j.State, finished: j.FinishedAt, movedTo: movedAs(j)})
	if !j.State.Final() && j.Attempts > 0 {
		m.done.Attempts++
	}
}

// lookAtTarget refuses a target that has something to do which is not of the source.
func (m *mover) lookAtTarget(ctx context.Context) error {
	known := make(map[string]bool, len(m.all))
	for _, e := range m.all {
		known[e.id] = true
	}
	for after := ""; ; {
		page, err := m.To.Jobs(ctx, engine.JobQuery{After: after, Limit: engine.MaxJobs, Filter: engine.JobFilter{
			States: []forebay.State{forebay.StateWaiting, forebay.StateDelayed, forebay.StateActive},
		}})
		if err != nil {
			return err
		}
		for i := range page.Jobs {
			if j := &page.Jobs[i]; !known[j.ID] {
				e := forebay.Errorf(forebay.CodeConflict, "move", "the target has a job of its own that is %s: %s in the queue %s", j.State, j.ID, j.Queue)
				e.Hint = "stop what works there, and move into a target with nothing to do (another prefix, say)"
				return e
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// documents copies schedules, inboxes, flows and what else is kept in small values. After a
// move that began to cancel all are there: one that is not was taken away there.
func (m *mover) documents(ctx context.Context) error {
	if m.again {
		return m.checkDocuments(ctx)
	}
	return m.eachDocument(ctx, func(d engine.Document) error {
		m.done.Documents++
		d.Rev = 0
		had, err := m.To.PutDocument(ctx, d)
		if forebay.CodeOf(err) == forebay.CodeConflict && string(had.Value) == string(d.Value) {
			return nil // of a move before this one
		}
		if err != nil {
			return fmt.Errorf("document %s of %s: %w", d.Key, d.Collection, err)
		}
		return nil
	})
}

func (m *mover) eachDocument(ctx context.Context, do func(engine.Document) error) error {
	names, err := m.From.Collections(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == marks || m.StaysDocument(name) {
			continue
		}
		for after := ""; ; {
			page, err := m.From.Documents(ctx, name, after, engine.MaxDocuments)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, d := range page {
				if err := do(d); err != nil {
					return err
				}
			}
			after = page[len(page)-1].Key
		}
	}
	return nil
}

// limits sets pauses and limits last: a queue that is paused hands nothing out. After a move
// that began to cancel they are set, and may have been changed there.
func (m *mover) limits(ctx context.Context) error {
	if m.again {
		return nil
	}
	stats, err := m.From.Stats(ctx)
	if err != nil {
		return err
	}
	for _, q := range stats {
		l, err := m.From.QueueLimits(ctx, q.Queue)
		if err == nil && l != (engine.QueueLimits{}) && !m.Stays(q.Queue) {
			m.done.Queues++
			err = m.To.SetLimits(ctx, q.Queue, l)
		}
		if err != nil {
			return fmt.Errorf("limits of the queue %s: %w", q.Queue, err)
		}
	}
	return nil
}

// close cancels what waits in the source.
func (m *mover) close(ctx context.Context) error {
	if err := m.note(ctx); err != nil {
		return err
	}
	var ids []string
	for _, e := range m.all {
		if !e.state.Final() {
			ids = append(ids, e.id)
		}
	}
	for some := range slices.Chunk(ids, engine.MaxCancel) {
		results, err := m.From.Cancel(ctx, some, movedTo+m.Name)
		if err != nil {
			return err
		}
		for i, r := range results {
			if r.Err != nil && forebay.CodeOf(r.Err) != forebay.CodeConflict {
				return fmt.Errorf("cancelling %s: %w", some[i], r.Err)
			}
		}
	}
	return nil
}

func (m *mover) tell(what string, done, of int) {
	if m.Told != nil {
		m.Told(Step{what, done, of})
	}
}
