package broker

import (
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// WatchFilter says which events a subscriber gets. All of it must hold; zero
// fields hold for all.
type WatchFilter struct {
	Job   string
	Queue string
	Types []forebay.HistoryType   // any of them
	Held  func(queue string) bool // nil: events of all queues
	Tree  string                  // the job of this id, and those whose ids begin with it and a slash
}

func (f *WatchFilter) holds(e *forebay.HistoryEvent) bool {
	return (f.Job == "" || f.Job == e.Job) && (f.Queue == "" || f.Queue == e.Queue) && (f.Held == nil || f.Held(e.Queue)) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, e.Type)) && (f.Tree == "" || f.below(e.Job))
}

func (f *WatchFilter) below(job string) bool {
	rest, ok := strings.CutPrefix(job, f.Tree)
	return ok && (rest == "" || rest[0] == '/')
}

const (
	subscriptionRoom = 64 // events that a subscriber may be behind
	pacedJobs        = 1000

	// In no second does a subscriber get more progress of one job than this; the
	// first ones at once, then the latest as soon as it may. A stage that begins is
	// told at once all the same, since people follow stages; but a handler may make a
	// stage of each of its items, so these have a bound too.
	progressRate = 4
	stageRate    = 20
	progressPer  = time.Second
)

// Subscription is one subscriber's end.
type Subscription struct {
	// C has the events, those of each job in order. Seq never goes back: progress that
	// had to wait while other jobs' events went out has the Seq of the last of these,
	// so that every Seq is a place to go on from. It is closed by Close, when the
	// watcher ends, or when the subscriber fell behind.
	C <-chan forebay.HistoryEvent

	w      *Watcher
	filter WatchFilter

	// Guarded by w.mu.
	c      chan forebay.HistoryEvent
	paced  map[string]*pace // by job, of those whose progress was sent lately
	last   int64            // Seq of what was sent last
	closed bool
	lagged bool
}

// pace of one job's progress.
type pace struct {
	sent [progressRate]time.Time // the last ones, in a ring
	next int                     // place of the oldest
	held *forebay.HistoryEvent   // the latest that had to wait
	logs []*forebay.HistoryEvent // what must not overtake it

	stage string    // of the latest
	begun int       // stages since from
	from  time.Time // begins anew after progressPer
}

// due is when the next may be sent.
func (p *pace) due() time.Time { return p.sent[p.next].Add(progressPer) }

// begins tells whether a stage begins that does not wait.
func (p *pace) begins(stage string, now time.Time) bool {
	if stage == p.stage {
		return false
	}
	p.stage = stage
	if now.Sub(p.from) >= progressPer {
		p.begun, p.from = 0, now
	}
	p.begun++
	return p.begun <= stageRate
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.end()
}

// Lagged tells, once C is closed, that events were missed: read the state anew
// and subscribe again.
func (s *Subscription) Lagged() bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.lagged
}

// end needs w.mu.
func (s *Subscription) end() {
	if s.closed {
		return
	}
	s.closed = true
	s.w.remove(s)
	s.paced = nil
	close(s.c)
}

func (s *Subscription) lag() {
	s.lagged = !s.closed || s.lagged
	s.end()
}

// offer hands an event over, or ends the subscription. It never waits. All below
// need w.mu.
func (s *Subscription) offer(e *forebay.HistoryEvent, now time.Time) {
	p := s.paced[e.Job]
	switch {
	case e.Type == forebay.HistoryProgress:
		s.offerProgress(e, p, now)
	case p == nil || p.held == nil:
		s.send(e)
	case e.Type == forebay.HistoryLog && len(p.logs) < subscriptionRoom:
		p.logs = append(p.logs, e)
	default:
		s.flush(p, now, true)
		s.send(e)
	}
	if e.State.Final() {
		delete(s.paced, e.Job)
	}
}

func (s *Subscription) offerProgress(e *forebay.HistoryEvent, p *pace, now time.Time) {
	if p == nil {
		if len(s.paced) >= pacedJobs {
			s.sweep(now)
		}
		if len(s.paced) >= pacedJobs {
			return // somebody who follows that many jobs sees what becomes of them
		}
		p = new(pace)
		s.paced[e.Job] = p
	}
	switch {
	case e.Progress != nil && p.begins(e.Progress.Stage, now):
		s.flush(p, now, true)
		s.sendProgress(p, e, now)
		return
	case p.held == nil && !now.Before(p.due()):
		s.sendProgress(p, e, now)
		return
	}
	if len(p.logs) > 0 { // they come after the one that is held, and before this one
		s.flush(p, now, true)
	}
	p.held = e
	s.w.held[s] = struct{}{}
}

// flush sends what is held of a job. Where something else must follow at once,
// progress that may not be sent yet is left out: the state that follows says more.
func (s *Subscription) flush(p *pace, now time.Time, atOnce bool) {
	due := !now.Before(p.due())
	if !due && !atOnce || p.held == nil {
		return
	}
	held, logs := p.held, p.logs
	p.held, p.logs = nil, nil
	if due {
		s.sendProgress(p, held, now)
	}
	for _, e := range logs {
		s.send(e)
	}
}

// release sends what may be sent by now, and tells when to look again.
func (s *Subscription) release(now time.Time) (next time.Time) {
	for _, p := range s.paced {
		s.flush(p, now, false)
		if s.closed {
			return time.Time{}
		}
		if p.held != nil && (next.IsZero() || p.due().Before(next)) {
			next = p.due()
		}
	}
	return next
}

// sweep forgets jobs whose last progress is too old to matter.
func (s *Subscription) sweep(now time.Time) {
	for job, p := range s.paced {
		if p.held == nil && !now.Before(p.sent[(p.next+progressRate-1)%progressRate].Add(progressPer)) {
			delete(s.paced, job)
		}
	}
}

// sendProgress leaves progress waiting where there is no room: a newer one will
// take its place.
func (s *Subscription) sendProgress(p *pace, e *forebay.HistoryEvent, now time.Time) {
	if s.closed {
		return
	}
	if len(s.c) == cap(s.c) {
		p.sent[p.next] = now.Add(progressPer/progressRate - progressPer) // look again a little later
		p.held = e
		s.w.held[s] = struct{}{}
		return
	}
	p.sent[p.next] = now
	p.next = (p.next + 1) % progressRate
	s.send(e) // there is room, and nobody else sends
}

func (s *Subscription) send(shared *forebay.HistoryEvent) {
	if s.closed {
		return
	}
	e := *shared
	e.Seq = max(e.Seq, s.last)
	s.last = e.Seq
	select {
	case s.c <- e:
		s.w.woken++
	default:
		s.lag()
	}
}
