package stream

import (
	"context"
	"net/http"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

// ServeEvents streams what happens to all jobs that a filter means, for as long as
// the client stays. It begins with reset, which says: read anew what you show; what
// happens from there on follows, as JobEvent. A client that resumes gets what it
// missed instead, or another reset.
func (s *Streams) ServeEvents(w http.ResponseWriter, r *http.Request, f broker.WatchFilter) {
	c := &client{access: accessOf(r), w: w, rc: http.NewResponseController(w)}
	if err := s.enter(c); err != nil {
		w.Header().Set("Retry-After", "5")
		c.access.Fail(w, err)
		return
	}
	defer s.leave(c)
	m := &many{s: s, client: c, filter: f}
	defer func() {
		if m.sub != nil {
			m.sub.Close()
		}
	}()
	ctx := r.Context()
	missed, resumed, err := m.prepare(ctx, lastSeen(r))
	if err == nil {
		err = c.deadline(false, 0)
	}
	if err != nil {
		c.access.Fail(w, err)
		return
	}
	defer c.finish()
	if err := m.begin(missed, resumed); err == nil {
		err = s.follow(ctx, c, func() <-chan forebay.HistoryEvent { return m.sub.C }, func(e forebay.HistoryEvent, ok bool) (bool, error) {
			return false, m.next(ctx, e, ok)
		})
		s.cfg.Logger.Debug("stream: ended", "queue", f.Queue, "reason", err)
	}
}

// many is the course of one stream of many jobs.
type many struct {
	s      *Streams
	client *client
	filter broker.WatchFilter

	sub   *broker.Subscription
	epoch string
	seq   int64 // of what was sent or skipped last
}

func (m *many) prepare(ctx context.Context, from *place) (missed []forebay.HistoryEvent, resumed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := m.s.ready(ctx); err != nil {
		return nil, false, err
	}
	if err := m.look(ctx); err != nil || from == nil || from.epoch != m.epoch || from.seq > m.seq {
		return nil, false, err
	}
	missed, resumed, err = m.since(ctx, from.seq)
	if resumed {
		m.seq = from.seq
	}
	return missed, resumed, err
}

// look subscribes, and finds the place from which on nothing is missed.
func (m *many) look(ctx context.Context) error {
	if m.sub != nil {
		m.sub.Close()
	}
	m.sub = m.s.cfg.Watcher.Subscribe(m.filter)
	page, err := m.s.cfg.Broker.History(ctx, engine.HistoryQuery{After: -1, Limit: 1})
	m.epoch, m.seq = page.Epoch, page.Next
	return err
}

func (m *many) since(ctx context.Context, after int64) (events []forebay.HistoryEvent, ok bool, err error) {
	q := engine.HistoryQuery{After: after, Job: m.filter.Job, Queue: m.filter.Queue, Types: m.filter.Types}
	for {
		page, err := m.s.cfg.Broker.History(ctx, q)
		if err != nil {
			return nil, false, err
		}
		if q.After < page.Oldest || page.Epoch != m.epoch || len(events)+len(page.Events) > maxMissed {
			return nil, false, nil
		}
		for i := range page.Events {
			if held := m.filter.Held; held == nil || held(page.Events[i].Queue) {
				events = append(events, page.Events[i])
			}
		}
		q.After = page.Next
		if !page.More {
			return events, true, nil
		}
	}
}

func (m *many) begin(missed []forebay.HistoryEvent, resumed bool) error {
	if err := m.client.begin(); err != nil {
		return err
	}
	if !resumed {
		return m.reset("read anew what you show")
	}
	for i := range missed {
		if err := m.take(&missed[i]); err != nil {
			return err
		}
	}
	return m.client.flush()
}

func (m *many) reset(reason string) error {
	if err := m.client.event("reset", place{m.epoch, m.seq}.String(), map[string]string{"reason": reason}); err != nil {
		return err
	}
	return m.client.flush()
}

func (m *many) next(ctx context.Context, e forebay.HistoryEvent, ok bool) error {
	switch {
	case ok:
		if err := m.take(&e); err != nil {
			return err
		}
		return m.client.flush()
	case !m.sub.Lagged():
		return errWatcher
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := m.look(ctx); err != nil {
		return err
	}
	return m.reset("this client reads too slowly; read anew what you show")
}

func (m *many) take(e *forebay.HistoryEvent) error {
	if e.Seq <= m.seq {
		return nil // at the seam of history and subscription
	}
	m.seq = e.Seq
	return m.client.event(nameOf(e), place{m.epoch, e.Seq}.String(), EventOf(m.epoch, e))
}

// nameOf is what a stream calls an event.
func nameOf(e *forebay.HistoryEvent) string {
	switch e.Type {
	case forebay.HistoryProgress:
		return "progress"
	case forebay.HistoryLog:
		return "log"
	}
	return "state"
}
