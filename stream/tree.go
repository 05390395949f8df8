package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

// Tree is a job and those below it, whose ids begin with its own and a slash, which
// together are one thing to whoever looks: a run of a flow.
type Tree struct {
	ID   string
	Name string // of the events that show it anew, such as run

	// Look reads the whole; over: it has ended, and this is how.
	Look func(ctx context.Context) (whole any, over bool, err error)
	// Tell shows what happened to a job; an empty name: it is not told, but looked at.
	Tell func(epoch string, e *forebay.HistoryEvent) (name string, data any)
}

// How soon a tree is looked at after something happened to it, and again after it was
// found changed, for not all that changes has an event.
const (
	lookSoon  = 100 * time.Millisecond
	lookRest  = 500 * time.Millisecond // at least, between two looks of one stream
	lookAgain = time.Second
)

// ServeTree streams a tree until its end: snapshot, what happens to its jobs, the
// whole again where it has changed, and done. A client that resumes gets what it
// missed, as far as the watcher has it at hand, or a reset.
func (s *Streams) ServeTree(w http.ResponseWriter, r *http.Request, t Tree) {
	c := &client{access: accessOf(r), w: w, rc: http.NewResponseController(w)}
	if err := s.enter(c); err != nil {
		w.Header().Set("Retry-After", "5")
		c.access.Fail(w, err)
		return
	}
	defer s.leave(c)
	one := &tree{s: s, client: c, Tree: t, due: time.NewTimer(lookAgain), at: time.Now().Add(lookAgain)}
	defer one.due.Stop()
	defer func() {
		if one.sub != nil {
			one.sub.Close()
		}
	}()
	ctx := r.Context()
	how, missed, err := one.prepare(ctx, lastSeen(r))
	if err == nil {
		err = c.deadline(false, 0)
	}
	switch {
	case err != nil:
		c.access.Fail(w, err)
		return
	case how == startOver:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	defer c.finish()
	if err := one.begin(how, missed); err != nil || one.over {
		return
	}
	if err := one.follow(ctx); err != nil {
		s.cfg.Logger.Debug("stream: ended", "job", t.ID, "reason", err)
	}
}

// tree is the course of one stream.
type tree struct {
	s      *Streams
	client *client
	Tree

	sub   *broker.Subscription
	epoch string
	seq   int64  // of what was sent or skipped last
	shown []byte // the whole, as it was sent last
	over  bool
	due   *time.Timer // of the next look
	at    time.Time   // when that is; zero: none is planned
	rest  time.Time   // before it no look is planned, but the last one
}

// prepare subscribes first and reads then, so that nothing falls between.
func (t *tree) prepare(ctx context.Context, from *place) (beginning, []forebay.HistoryEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := t.s.ready(ctx); err != nil {
		return 0, nil, err
	}
	if err := t.look(ctx); err != nil || from == nil {
		return startFresh, nil, err
	}
	all, ok := t.s.cfg.Watcher.Since(from.seq, "")
	if from.epoch != t.epoch || from.seq > t.seq || !ok {
		return startReset, nil, nil
	}
	var missed []forebay.HistoryEvent
	for _, e := range all {
		if e.Job == t.ID || strings.HasPrefix(e.Job, t.ID+"/") {
			missed = append(missed, e)
		}
	}
	if len(missed) == 0 && t.over {
		return startOver, nil, nil
	}
	t.seq = from.seq
	return startResume, latest(missed), nil
}

// look subscribes anew, and reads the whole.
func (t *tree) look(ctx context.Context) error {
	if t.sub != nil {
		t.sub.Close()
	}
	t.sub = t.s.cfg.Watcher.Subscribe(broker.WatchFilter{Tree: t.ID})
	page, err := t.s.cfg.Broker.History(ctx, engine.HistoryQuery{After: -1, Limit: 1})
	if err != nil {
		return err
	}
	t.epoch, t.seq = page.Epoch, page.Next
	_, err = t.read(ctx)
	return err
}

// read reads the whole, and tells whether it is another than was shown.
func (t *tree) read(ctx context.Context) (changed bool, err error) {
	whole, over, err := t.Look(ctx)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(whole)
	if err != nil {
		return false, forebay.Errorf(forebay.CodeInternal, "stream: "+t.Name, "%w", err)
	}
	changed = !bytes.Equal(b, t.shown)
	t.shown, t.over = b, over
	return changed, nil
}

// begin sends the first bytes.
func (t *tree) begin(how beginning, missed []forebay.HistoryEvent) error {
	if err := t.client.begin(); err != nil {
		return err
	}
	if how == startReset {
		if err := t.client.event("reset", "", map[string]string{"reason": "what was missed is not to be had"}); err != nil {
			return err
		}
	}
	for i := range missed {
		if err := t.take(&missed[i]); err != nil {
			return err
		}
	}
	return t.show("snapshot")
}

// show sends the whole as it was read last.
func (t *tree) show(name string) error {
	if err := t.client.event(name, place{t.epoch, t.seq}.String(), json.RawMessage(t.shown)); err != nil {
		return err
	}
	if t.over {
		if err := t.client.event("done", "", json.RawMessage(t.shown)); err != nil {
			return err
		}
	}
	return t.client.flush()
}

func (t *tree) follow(ctx context.Context) error {
	ping, recheck := time.NewTicker(pingEvery), time.NewTicker(recheckEvery)
	defer ping.Stop()
	defer recheck.Stop()
	for !t.over {
		var err error
		select {
		case e, ok := <-t.sub.C:
			err = t.next(ctx, &e, ok)
		case <-t.due.C:
			err = t.again(ctx)
		case <-ping.C:
			if err = t.client.event("ping", "", map[string]time.Time{"at": t.s.cfg.Now().UTC()}); err == nil {
				err = t.again(ctx)
			}
		case <-recheck.C:
			err = t.client.access.Check()
		case <-ctx.Done():
			err = ctx.Err()
		case <-t.s.closing:
			err = errClosing
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) next(ctx context.Context, e *forebay.HistoryEvent, ok bool) error {
	switch {
	case ok:
		if err := t.take(e); err != nil {
			return err
		}
		return t.client.flush()
	case !t.sub.Lagged():
		return errWatcher
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := t.look(ctx); err != nil {
		return err
	}
	return t.show(t.Name) // it says what the events that were missed led to
}

// take adds what happened to a job to what is flushed next.
func (t *tree) take(e *forebay.HistoryEvent) error {
	if e.Seq <= t.seq {
		return nil // at the seam of history and subscription
	}
	t.seq = e.Seq
	if e.Job == t.ID && e.State.Final() {
		t.plan(0)
	} else {
		t.plan(lookSoon)
	}
	name, data := t.Tell(t.epoch, e)
	if name == "" {
		return nil
	}
	return t.client.event(name, place{t.epoch, e.Seq}.String(), data)
}

// plan sees to a look after d, unless there is one before.
func (t *tree) plan(d time.Duration) {
	at := time.Now().Add(d)
	if d > 0 && at.Before(t.rest) {
		at = t.rest
	}
	if t.at.IsZero() || at.Before(t.at) {
		t.at = at
		t.due.Reset(time.Until(at))
	}
}

// again looks whether the whole has changed.
func (t *tree) again(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	t.at, t.rest = time.Time{}, time.Now().Add(lookRest)
	changed, err := t.read(ctx)
	if err != nil || !changed {
		if err == nil {
			err = t.client.flush()
		}
		return err
	}
	t.plan(lookAgain)
	return t.show(t.Name)
}
