package redis

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

var _ engine.JobLister = (*Engine)(nil)

// Bounds of the work for one page. Where they end it, the page is short.
const (
	pageJobs   = 2000
	pageBytes  = 16 << 20
	jobsAtOnce = 100
)

// A page is gathered section by section. In each, the queues have one or two sets that
// are in the right order by themselves; they are merged here, and only then the jobs
// are read and matched. Places are scores and ids, so what comes and goes meanwhile
// shifts nothing.
const (
	sectionActive = iota
	sectionWaiting
	sectionDead
	sectionFinished
	sections
)

// entry is one job in a set.
type entry struct {
	score     float64
	queue, id string
}

// compare orders entries as they are listed: by score down, then by queue, then by id
// down, as Redis has equal scores.
func (a entry) compare(b entry) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.queue, b.queue), cmp.Compare(b.id, a.id))
}

// place is where a page ended: after this one. Without one: at the start of the section.
type listPlace struct {
	Section int     `json:"s"`
	Score   float64 `json:"n,omitempty"`
	Queue   string  `json:"q,omitempty"`
	ID      string  `json:"i,omitempty"`
}

func startOf(section int) listPlace { return listPlace{Section: section} }

func (p listPlace) String() string { return base64.RawURLEncoding.EncodeToString([]byte(encode(p))) }

func parsePlace(s string) (p listPlace, err error) {
	if s == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || p.Section < 0 || p.Section >= sections {
		e := fail(forebay.CodeInvalid, "%q is not the next of a page", cut(s, 80))
		e.Field = "after"
		return p, e
	}
	return p, nil
}

// Jobs lists jobs; see engine.JobLister. Of jobs that Node clients added and that have
// not finished, it knows the newest 5,000 of each kind.
func (e *Engine) Jobs(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	q.Limit = cmp.Or(q.Limit, engine.DefaultJobs)
	if q.Limit < 1 || q.Limit > engine.MaxJobs {
		err := fail(forebay.CodeInvalid, "must be 1 to %d", engine.MaxJobs)
		err.Field = "limit"
		return engine.JobPage{}, err
	}
	at, err := parsePlace(q.After)
	if err != nil {
		return engine.JobPage{}, err
	}
	if err := e.enter(); err != nil {
		return engine.JobPage{}, err
	}
	defer e.leave()
	w := &walk{ctx: ctx, e: e, filter: &q.Filter, limit: q.Limit, at: at, left: pageJobs}
	if q.Filter.ID != "" {
		err = w.byID()
	} else {
		err = w.all()
	}
	if err != nil {
		return engine.JobPage{}, err
	}
	page := engine.JobPage{Jobs: w.jobs}
	if w.at.Section < sections {
		page.Next = w.at.String()
	}
	return page, nil
}

// Finished counts; see engine.JobLister.
func (e *Engine) Finished(ctx context.Context) (map[string]map[forebay.State]int64, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	v, err := e.run(ctx, "index", 0)
	if err != nil {
		return nil, err
	}
	out := make(map[string]map[forebay.State]int64)
	for _, one := range v.out {
		f, counts := list(one), make(map[forebay.State]int64)
		for i, state := range []forebay.State{forebay.StateCompleted, forebay.StateCancelled, forebay.StateExpired} {
			if n := number(f[i+1]); n > 0 {
				counts[state] = n
			}
		}
		if len(counts) > 0 {
			out[text(f[0])] = counts
		}
	}
	return out, nil
}

// walk gathers a page.
type walk struct {
	ctx    context.Context
	e      *Engine
	filter *engine.JobFilter
	limit  int
	at     listPlace // what is left lies after it
	queues []string
	jobs   []forebay.Job
	left   int // jobs that may be read
	bytes  int
}

func (w *walk) spent() bool { return len(w.jobs) >= w.limit || w.left <= 0 || w.bytes >= pageBytes }

func (w *walk) byID() error {
	w.at = listPlace{Section: sections}
	h, known, err := w.e.find(w.ctx, w.filter.ID)
	if err != nil || !known || !h.isJob() {
		return err
	}
	if j := h.job(); w.filter.Match(&j) {
		w.jobs = append(w.jobs, j)
	}
	return nil
}

func (w *walk) all() error {
	args := []any{0}
	if w.filter.Queue != "" {
		args = []any{1, w.filter.Queue}
	}
	v, err := w.e.run(w.ctx, "index", args...)
	if err != nil {
		return err
	}
	for _, one := range v.out {
		w.queues = append(w.queues, text(list(one)[0]))
	}
	slices.Sort(w.queues)
	for ; !w.spent() && w.at.Section < sections; w.at = startOf(w.at.Section + 1) {
		if !w.wants(w.at.Section) {
			continue
		}
		if end, err := w.section(); err != nil || !end {
			return err
		}
	}
	return nil
}

// wants tells whether the filter means jobs of a section.
func (w *walk) wants(section int) bool {
	return len(w.filter.States) == 0 || slices.ContainsFunc(w.filter.States, func(s forebay.State) bool { return sectionOf(s) == section })
}

func sectionOf(s forebay.State) int {
	switch s {
	case forebay.StateActive:
		return sectionActive
	case forebay.StateDead:
		return sectionDead
	case forebay.StateCompleted, forebay.StateCancelled, forebay.StateExpired:
		return sectionFinished
	}
	return sectionWaiting
}

// section lists what is left of one. end: nothing is left of it.
func (w *walk) section() (end bool, err error) {
	m, err := w.merge()
	if err != nil {
		return false, err
	}
	for !w.spent() {
		some, err := m.next(min(jobsAtOnce, w.left))
		if err != nil {
			return false, err
		}
		if len(some) == 0 {
			return true, nil
		}
		if err := w.read(some); err != nil {
			return false, err
		}
	}
	return false, nil
}

// read reads jobs and keeps those that are meant, up to the limit.
func (w *walk) read(some []entry) error {
	args := []any{len(some)}
	for _, one := range some {
		args = append(args, one.queue, one.id)
	}
	v, err := w.e.run(w.ctx, "jobs", args...)
	if err != nil {
		return err
	}
	for i, one := range some {
		w.left--
		w.at.Score, w.at.Queue, w.at.ID = one.score, one.queue, one.id
		f := list(v.out[i])
		if len(f) == 0 || strings.HasSuffix(one.id, "%~") { // the latter: another of its id has followed
			continue
		}
		h := readHash(one.queue, one.id, list(f[2]))
		h.state, h.due = forebay.State(text(f[0])), w.e.byHere(number(f[1]))
		w.bytes += len(h.f["data"]) + 512
		if sectionOf(h.state) != w.at.Section {
			continue
		}
		if j := h.job(); w.filter.Match(&j) {
			w.jobs = append(w.jobs, j)
		}
		if w.spent() {
			return nil
		}
	}
	return nil
}

// merge makes the sets of the section one.
func (w *walk) merge() (*merged, error) {
	m := &merged{walk: w, after: entry{math.Inf(1), "", ""}}
	if w.at.ID != "" {
		m.after = entry{w.at.Score, w.at.Queue, w.at.ID}
	}
	if w.at.Section == sectionActive {
		return m, m.active()
	}
	top := m.after.score
	if w.at.Section == sectionWaiting && !w.filter.Until.IsZero() {
		top = min(top, float64(w.filter.Until.UnixMilli()))
	}
	if w.at.Section == sectionDead {
		name := w.e.global("dead")
		if w.filter.Queue != "" {
			name = w.e.key(w.filter.Queue, "fb:dead")
		}
		m.sets = []*set{{key: name, queue: w.filter.Queue, top: top}}
		return m, nil
	}
	for _, q := range w.queues {
		names := []string{"fb:j"}
		if w.at.Section == sectionFinished {
			names = []string{"completed", "failed"}
		}
		for _, name := range names {
			m.sets = append(m.sets, &set{key: w.e.key(q, name), queue: q, top: top})
		}
	}
	return m, nil
}

// before tells whether all of a score and below was sent before what the filter means.
func (w *walk) before(score float64) bool {
	return w.at.Section == sectionWaiting && !w.filter.Since.IsZero() && score < float64(w.filter.Since.Add(-time.Millisecond).UnixMilli())
}
