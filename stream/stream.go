// Package stream shows jobs as they go, by server-sent events.
//
// A stream of one job begins with a snapshot (or, where the client says what it saw
// last, with what it missed), goes on with what happens, and ends with done:
//
//	retry: 1873
//
//	event: snapshot
//	id: 5f3a-120
//	data: {"v":1,"jobId":"…","state":"active","progress":{…}}
//
//	event: progress | state | log        each with an id
//	event: ping                          every 15 s, without one
//	event: reset                         what was missed is not to be had; a snapshot follows
//	event: done                          the job as it ended, without an id; then the server closes
//
// Several go over one connection, each event of theirs as one called topic (ServeTopics).
//
// It promises that a client which resumes with the last id it saw (Last-Event-ID,
// or ?last_event_id=) gets what came after it, once each and in order, or a reset;
// that of a job's progress the latest counts, four times a second at most, and the
// first of each stage; that a client which reads slowly, or not at all, slows nobody
// and is gone after one write deadline; that one who comes again to a job whose end
// he saw gets 204, which tells browsers to stop; and that Close ends all streams at
// once.
//
// It refuses to poll, and to keep what happened: the broker's watcher pushes, and
// the engine's history is what is resumed from.
package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
)

const (
	pingEvery    = 15 * time.Second
	writeTime    = 10 * time.Second // of one write
	hurryTime    = 100 * time.Millisecond
	recheckEvery = time.Minute     // whether the caller may still look
	reconnect    = 2 * time.Second // jittered by half of it, so that a restart is no stampede
)

// Config of Streams. Broker and Watcher are needed.
type Config struct {
	Broker  *broker.Broker
	Watcher *broker.Watcher

	Most      int // streams in all; 0: 5,000
	PerCaller int // streams of one caller; 0: 1,000

	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: nothing is logged
}

// Streams serves streams and knows those that are open. It is safe for concurrent
// use.
type Streams struct {
	cfg Config

	closing chan struct{} // closed by Close

	mu      sync.Mutex
	closed  bool
	open    map[*client]struct{}
	callers map[string]int
}

// New makes Streams.
func New(cfg Config) (*Streams, error) {
	if cfg.Broker == nil || cfg.Watcher == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "stream: new", "broker and watcher are needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Most, cfg.PerCaller = cmp.Or(cfg.Most, 5000), cmp.Or(cfg.PerCaller, 1000)
	return &Streams{cfg: cfg, closing: make(chan struct{}), open: map[*client]struct{}{}, callers: map[string]int{}}, nil
}

// Access is what whoever let a request in knows of it. All fields may be nil.
type Access struct {
	Caller string                                  // whose streams are counted together; empty: those of one address
	Check  func() error                            // asked each minute; an error ends the stream
	Fail   func(w http.ResponseWriter, fail error) // answers instead of a stream; nil: as a problem
}

type accessKey struct{}

// WithAccess gives a request's context what is known of its caller.
func WithAccess(ctx context.Context, a Access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// AccessOf gives it back. Its Check is never nil.
func AccessOf(ctx context.Context) Access {
	a, _ := ctx.Value(accessKey{}).(Access)
	if a.Check == nil {
		a.Check = func() error { return nil }
	}
	return a
}

func accessOf(r *http.Request) Access {
	a := AccessOf(r.Context())
	if a.Caller == "" {
		a.Caller, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	if a.Fail == nil {
		a.Fail = fail
	}
	return a
}

// fail answers with a problem, as RFC 9457 says.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch forebay.CodeOf(err) {
	case forebay.CodeInvalid:
		status = http.StatusBadRequest
	case forebay.CodeNotFound:
		status = http.StatusNotFound
	case forebay.CodeLimited:
		status = http.StatusTooManyRequests
	case forebay.CodeClosed, forebay.CodeFull, forebay.CodeUnavailable:
		status = http.StatusServiceUnavailable
	case forebay.CodeUnsupported:
		status = http.StatusNotImplemented
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{ // a client that has gone needs no answer
		"type": "about:blank", "title": http.StatusText(status), "status": status, "code": forebay.CodeOf(err), "detail": forebay.TextOf(err),
	})
}

// enter takes a place for a client.
func (s *Streams) enter(c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return forebay.Errorf(forebay.CodeClosed, "", "the server is shutting down; come again to the next instance, or once this one is back")
	case len(s.open) >= s.cfg.Most:
		return forebay.Errorf(forebay.CodeFull, "", "there are %d streams open, the most that this server takes; try later", len(s.open))
	case s.callers[c.access.Caller] >= s.cfg.PerCaller:
		return forebay.Errorf(forebay.CodeLimited, "", "this caller has %d streams open, the most that one may have; close some", s.callers[c.access.Caller])
	}
	s.open[c] = struct{}{}
	s.callers[c.access.Caller]++
	return nil
}

func (s *Streams) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if s.callers[c.access.Caller]--; s.callers[c.access.Caller] == 0 {
		delete(s.callers, c.access.Caller)
	}
}

// Open tells how many streams are open.
func (s *Streams) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Close ends all streams at once, also those that stand in a write, and takes no
// more. Their clients come again, and resume. It is for
// http.Server.RegisterOnShutdown; calling it again does nothing.
func (s *Streams) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.closing)
	for c := range s.open {
		c.cut()
	}
}
