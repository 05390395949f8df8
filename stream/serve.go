package stream

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

// Shape makes the data of snapshot, progress, state and done events. What it gives is
// written as JSON, with a "v" before its other fields.
type Shape func(job forebay.Job) any

// ServeJob streams one job until its end. shape nil: Job, without the job's data.
func (s *Streams) ServeJob(w http.ResponseWriter, r *http.Request, id string, shape Shape) {
	if shape == nil {
		shape = func(j forebay.Job) any { return JobOf(&j) }
	}
	c := &client{access: accessOf(r), w: w, rc: http.NewResponseController(w)}
	if err := s.enter(c); err != nil {
		w.Header().Set("Retry-After", "5")
		c.access.Fail(w, err)
		return
	}
	defer s.leave(c)
	run := &run{s: s, client: c, id: id, shape: shape, from: lastSeen(r)}
	defer func() {
		if run.sub != nil {
			run.sub.Close()
		}
	}()
	ctx := r.Context()
	start, err := run.prepare(ctx)
	if err == nil {
		err = c.deadline(false, 0) // also proves that no wrapper hides the connection
	}
	switch {
	case err != nil:
		c.access.Fail(w, err)
		return
	case start == startOver:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	defer c.finish()
	if err := run.begin(start); err == nil && !run.done {
		err = s.follow(ctx, c, func() <-chan forebay.HistoryEvent { return run.sub.C }, func(e forebay.HistoryEvent, ok bool) (bool, error) {
			err := run.next(ctx, e, ok)
			return run.done, err
		})
		if err != nil {
			s.cfg.Logger.Debug("stream: ended", "job", id, "reason", err)
		}
	}
}

// lastSeen is the place that a client names; nil: none.
func lastSeen(r *http.Request) *place {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("last_event_id")
	}
	if text == "" {
		return nil
	}
	cut := strings.LastIndexByte(text, '-')
	if cut < 0 {
		return &place{} // of no epoch of ours
	}
	seq, err := strconv.ParseInt(text[cut+1:], 10, 64)
	if err != nil || seq < 0 {
		return &place{}
	}
	return &place{text[:cut], seq}
}

// run is the course of one stream.
type run struct {
	s      *Streams
	client *client
	id     string
	shape  Shape
	from   *place // that the client named; nil: none

	sub    *broker.Subscription
	epoch  string
	seq    int64 // of what was sent or skipped last
	unsure int64 // events up to here may be in the snapshot already
	fold   *fold
	missed []forebay.HistoryEvent
	final  bool // the job had finished when it was read
	done   bool
}

// How a stream begins.
type beginning int

const (
	startFresh  beginning = iota // with a snapshot
	startReset                   // with a reset and a snapshot
	startResume                  // with what was missed
	startOver                    // not at all: the client has seen the end
)

const callTime = 10 * time.Second

// prepare subscribes first and reads then, so that nothing falls between.
func (r *run) prepare(ctx context.Context) (beginning, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := r.s.ready(ctx); err != nil {
		return 0, err
	}
	if err := r.look(ctx); err != nil {
		return 0, err
	}
	switch {
	case r.from == nil:
		return startFresh, nil
	case r.from.epoch != r.epoch || r.from.seq > r.unsure:
		return startReset, nil
	}
	missed, ok, err := r.since(ctx, r.from.seq)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return startReset, nil
	case len(missed) == 0 && r.final:
		return startOver, nil
	}
	r.missed, r.seq, r.unsure = missed, r.from.seq, 0
	r.fold.rewind()
	return startResume, nil
}

// ready waits until whoever subscribes misses nothing.
func (s *Streams) ready(ctx context.Context) error {
	select {
	case <-s.cfg.Watcher.Ready():
		return nil
	case <-ctx.Done():
		return forebay.Errorf(forebay.CodeUnavailable, "", "nobody reads the history yet; try again soon")
	}
}

// look subscribes and reads the job, and between which places of the history.
func (r *run) look(ctx context.Context) error {
	if r.sub != nil {
		r.sub.Close()
	}
	r.sub = r.s.cfg.Watcher.Subscribe(broker.WatchFilter{Job: r.id})
	b := r.s.cfg.Broker
	before, err := b.History(ctx, engine.HistoryQuery{After: -1, Job: r.id, Limit: 1})
	if err != nil {
		return err
	}
	job, err := b.Job(ctx, r.id)
	if err != nil {
		return err
	}
	after, err := b.History(ctx, engine.HistoryQuery{After: -1, Job: r.id, Limit: 1})
	if err != nil {
		return err
	}
	r.epoch, r.seq, r.unsure, r.fold, r.final = before.Epoch, before.Next, after.Next, newFold(job), job.State.Final()
	return nil
}

// maxMissed bounds what is replayed; a client that has missed more gets a reset.
const maxMissed = 10_000

// since gives the job's events after a place, and of its progress the latest; not
// ok: they are not to be had. The watcher may not know of a job's end yet, so of a
// finished job the store is asked.
func (r *run) since(ctx context.Context, after int64) (events []forebay.HistoryEvent, ok bool, err error) {
	if events, ok := r.s.cfg.Watcher.Since(after, r.id); ok && !r.final {
		return latest(events), true, nil
	}
	for {
		page, err := r.s.cfg.Broker.History(ctx, engine.HistoryQuery{After: after, Job: r.id})
		if err != nil {
			return nil, false, err
		}
		if after < page.Oldest || page.Epoch != r.epoch || len(events)+len(page.Events) > maxMissed {
			return nil, false, nil
		}
		events, after = append(events, page.Events...), page.Next
		if !page.More {
			return latest(events), true, nil
		}
	}
}

// latest leaves out all progress but the last.
func latest(events []forebay.HistoryEvent) []forebay.HistoryEvent {
	last := len(events) - 1
	for last >= 0 && events[last].Type != forebay.HistoryProgress {
		last--
	}
	var kept []forebay.HistoryEvent
	for i, e := range events {
		if e.Type != forebay.HistoryProgress || i == last {
			kept = append(kept, e)
		}
	}
	return kept
}

// begin sends the first bytes.
func (r *run) begin(how beginning) error {
	if err := r.client.begin(); err != nil {
		return err
	}
	if how == startResume {
		missed := r.missed
		r.missed = nil
		for i := range missed {
			if err := r.take(missed[i], i == len(missed)-1); err != nil {
				return err
			}
		}
		if r.final && !r.done {
			if err := r.end(); err != nil {
				return err
			}
		}
		return r.client.flush()
	}
	if how == startReset {
		if err := r.client.event("reset", "", map[string]string{"reason": "what was missed is not to be had"}); err != nil {
			return err
		}
	}
	return r.snapshot()
}

// snapshot sends the job as it was read; one that has finished, and done.
func (r *run) snapshot() error {
	r.done = r.fold.job.State.Final()
	if r.done { // whoever sees this needs nothing that was there when the job was read
		r.seq = max(r.seq, r.unsure)
	}
	err := r.client.event("snapshot", place{r.epoch, r.seq}.String(), r.shape(r.fold.job))
	if err == nil && r.done {
		err = r.client.event("done", "", r.shape(r.fold.job))
	}
	if err != nil {
		return err
	}
	return r.client.flush()
}
