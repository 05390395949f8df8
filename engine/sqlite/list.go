package sqlite

import (
	"context"
	"fmt"
	"math"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// A page of jobs is gathered by its caller's goroutine: it asks the loop for small
// pieces, each a few milliseconds at most, and looks at them by itself. Signatures
// say what need not be read (sign.go); engine.JobFilter.Match says what is meant.
// The pages show what is there when they are read: a job that goes from one section
// to the next meanwhile may be met twice, or not.

var _ engine.JobLister = (*Engine)(nil)

// The sections of a listing, in their order.
const (
	sectionActive = iota
	sectionWaiting
	sectionDead
	sectionFinished
	sections
)

// place is one in a listing: what is left lies before it, by seq and then by index.
type place struct {
	section  int
	seq, idx int64
}

func (p place) before(seq, idx int64) bool { return seq < p.seq || seq == p.seq && idx < p.idx }

func (p place) String() string { return fmt.Sprintf("%d.%x.%x", p.section, p.seq, p.idx) }

func startOf(section int) place { return place{section: section, seq: math.MaxInt64} }

func parsePlace(s string) (p place, err error) {
	if s == "" {
		return startOf(0), nil
	}
	_, err = fmt.Sscanf(s, "%d.%x.%x", &p.section, &p.seq, &p.idx)
	if err != nil || p.String() != s || p.section < 0 || p.section >= sections || p.seq < 0 || p.idx < 0 {
		e := forebay.Errorf(forebay.CodeInvalid, "sqlite: jobs", "%q is not the next of a page", s)
		e.Field = "after"
		return p, e
	}
	return p, nil
}

// Bounds of the work for one page. Where they end it, the page is short.
const (
	pageReads   = 32 << 20 // bytes of jobs
	pageSigns   = 8192     // signatures
	sliceReads  = 256 << 10
	sliceRows   = 64
	sliceBlocks = 128
	blockReads  = 4 << 10 // what looking at a block costs at least, as bytes
)

// Jobs lists jobs; see engine.Jobs.
func (e *Engine) Jobs(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	if q.Limit == 0 {
		q.Limit = engine.DefaultJobs
	}
	if q.Limit < 1 || q.Limit > engine.MaxJobs {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: jobs", "must be 1 to %d", engine.MaxJobs)
		err.Field = "limit"
		return engine.JobPage{}, err
	}
	at, err := parsePlace(q.After)
	if err != nil {
		return engine.JobPage{}, err
	}
	w := newWalk(ctx, e, &q, at)
	if q.Filter.ID != "" {
		err = w.byID()
	} else {
		err = w.all()
	}
	if err != nil {
		return engine.JobPage{}, err
	}
	page := engine.JobPage{Jobs: w.jobs}
	if w.at.section < sections {
		page.Next = w.at.String()
	}
	return page, nil
}

// walk gathers a page.
type walk struct {
	ctx    context.Context
	e      *Engine
	filter *engine.JobFilter
	limit  int
	sieve  sieve
	at     place // what is left
	jobs   []forebay.Job
	reads  int // bytes
	signs  int
}

func newWalk(ctx context.Context, e *Engine, q *engine.JobQuery, at place) *walk {
	return &walk{ctx: ctx, e: e, filter: &q.Filter, limit: q.Limit, sieve: newSieve(&q.Filter), at: at}
}

// spent tells whether the page ends here.
func (w *walk) spent() bool {
	return len(w.jobs) >= w.limit || w.reads >= pageReads || w.signs >= pageSigns
}

func (w *walk) all() error {
	for !w.spent() && w.at.section < sections {
		var end bool
		var err error
		switch {
		case !w.wants(w.at.section):
			end = true
		case w.at.section == sectionActive:
			end, err = w.active()
		case w.at.section == sectionWaiting:
			end, err = w.waiting()
		default:
			end, err = w.kept()
		}
		if err != nil {
			return err
		}
		if end {
			w.at = startOf(w.at.section + 1)
		}
	}
	return nil
}

// wants tells whether the filter means jobs of a section.
func (w *walk) wants(section int) bool {
	of := [sections][]forebay.State{
		{forebay.StateActive},
		{forebay.StateWaiting, forebay.StateDelayed},
		{forebay.StateDead},
		{forebay.StateCompleted, forebay.StateCancelled, forebay.StateExpired},
	}
	if len(w.filter.States) == 0 {
		return true
	}
	for _, s := range w.filter.States {
		for _, have := range of[section] {
			if s == have {
				return true
			}
		}
	}
	return false
}

// see takes a job into the page, if it is meant. It tells whether there is room for another.
func (w *walk) see(job *forebay.Job, seq, idx int64) bool {
	w.at.seq, w.at.idx = seq, idx
	if w.filter.Match(job) {
		w.jobs = append(w.jobs, *job)
	}
	return len(w.jobs) < w.limit
}

// pass notes that nothing is left down to a seq, itself included.
func (w *walk) pass(seq int64) {
	if seq < w.at.seq || seq == w.at.seq && w.at.idx > 0 {
		w.at.seq, w.at.idx = seq, 0
	}
}

// Finished counts what the ledger keeps; see engine.Jobs.
func (e *Engine) Finished(ctx context.Context) (map[string]map[forebay.State]int64, error) {
	return ask(ctx, e, func(t *tx) (map[string]map[forebay.State]int64, error) {
		all := map[string]map[forebay.State]int64{}
		for _, q := range t.l.byID {
			of := map[forebay.State]int64{}
			for state, n := range map[forebay.State]int64{
				forebay.StateCompleted: q.tally.completed, forebay.StateCancelled: q.tally.cancelled,
				forebay.StateExpired: q.tally.expired, forebay.StateDead: q.dead,
			} {
				if n > 0 {
					of[state] = n
				}
			}
			if len(of) > 0 {
				all[q.name] = of
			}
		}
		return all, nil
	})
}
