// Package front serves short plain POSTs to a few paths by itself, and leaves every
// other request to net/http, which takes longer to read and answer such a request than
// its handler does.
//
//	connection ─▶ a plain request, whole? ── yes ─▶ its handler ─▶ answer ─┐
//	               ▲      │ no                                             │
//	               │      └─▶ net/http, with all bytes that were read      │
//	               └───────────────────────────────────────────────────────┘
//
// A connection whose requests go on and on is served without a goroutine of its own, if
// their handler can take several requests together (crowd_linux.go).
//
// A request is plain by a list of what is allowed (see head.go); its head is then
// parsed by net/http's own parser. At the first one that is not plain, or does not
// arrive at once, the connection goes to net/http for the rest of its life. So
// nothing odd is judged here, and clients that drip are net/http's to stop.
//
// It promises the answers that net/http would give, byte for byte up to 2 KiB: longer
// ones are not chunked. A fuzz test compares the two. A client that is idle or reads no
// answer loses its connection as it does there, up to a second later; a handler that
// panics loses its own; Shutdown lets handlers finish.
//
// It refuses handlers that keep a request or its header or body after they return, that
// change its header, that wait for the client to go away, that hijack, or that stream:
// an answer is sent when its handler has returned, or at Flush if it has stated its
// Content-Length.
package front

import (
	"cmp"
	"context"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Together is a handler that may get several requests at a time, of as many
// connections, and can do with one piece of work what they have in common. They are
// answered when it has returned. Alone tells by its head of a request that would keep
// others waiting; its connection has a goroutine.
type Together interface {
	http.Handler
	Alone(r *http.Request) bool
	ServeTogether(ws []http.ResponseWriter, rs []*http.Request)
}

// Front carries an http.Server; Serve, Shutdown and Close are as that server's.
type Front struct {
	server *http.Server
	routes map[string]http.Handler
	wrap   func(net.Listener) net.Listener

	passed   chan net.Conn // to net/http; never closed
	closed   chan struct{} // nothing is passed any more
	once     sync.Once     // closes closed
	stopping atomic.Bool

	crowd *crowd // nil: there is none on this system

	mu    sync.Mutex
	conns map[*conn]struct{}
	empty chan struct{} // closed when stopping and the last of conns has gone
	ended func()        // closes it
}

// New makes a front of a server. Routes are the handlers of POSTs to exactly these
// paths; the server's own Handler must do the same with them. wrap puts something
// around the listener of what is left to net/http; nil: nothing.
func New(server *http.Server, routes map[string]http.Handler, wrap func(net.Listener) net.Listener) *Front {
	if wrap == nil {
		wrap = func(l net.Listener) net.Listener { return l }
	}
	f := &Front{
		server: server, routes: routes, wrap: wrap,
		passed: make(chan net.Conn),
		closed: make(chan struct{}),
		conns:  map[*conn]struct{}{},
		empty:  make(chan struct{}),
	}
	f.crowd = newCrowd(f)
	f.ended = sync.OnceFunc(func() { close(f.empty) })
	return f
}

// Serve serves until Shutdown or Close is called, or the listener fails. As with
// http.Server, connections may live on after it has returned; Shutdown waits for them.
func (f *Front) Serve(l net.Listener) error {
	left, rest := make(chan error, 1), passing{f, l.Addr()}
	go func() { left <- f.server.Serve(f.wrap(rest)) }()
	err := f.server.Serve(acceptor{f, l})
	_ = rest.Close() // never fails
	<-left           // it ends for the same reason, or by this
	return err
}

// acceptor takes connections of the real listener into the front. net/http calls it
// since it knows what to do when a process has no file descriptors left.
type acceptor struct {
	front *Front
	net.Listener
}

// Accept returns only to tell of an error.
func (a acceptor) Accept() (net.Conn, error) {
	for {
		c, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		a.front.take(c)
	}
}

// passing is the listener of those that are left to net/http.
type passing struct {
	front *Front
	addr  net.Addr
}

func (p passing) Accept() (net.Conn, error) {
	select {
	case c := <-p.front.passed:
		return c, nil
	case <-p.front.closed:
		return nil, net.ErrClosed
	}
}

func (p passing) Close() error {
	p.front.once.Do(func() { close(p.front.closed) })
	return nil
}

func (p passing) Addr() net.Addr { return p.addr }

// take serves a new connection.
func (f *Front) take(raw net.Conn) {
	c := newConn(f, raw)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping.Load() {
		_ = raw.Close() // nobody can be told
		return
	}
	f.conns[c] = struct{}{}
	go f.run(c)
}

// run serves a connection until it ends or goes to net/http.
func (f *Front) run(c *conn) {
	what := ends
	defer func() {
		if err := recover(); err != nil {
			f.panicked(c, err)
		}
		switch what {
		case ends:
			f.end(c)
		case passes:
			f.leave(c)
		}
	}()
	if what = c.serve(); what != passes {
		return
	}
	select {
	case f.passed <- c.passed():
	case <-f.closed:
		what = ends
	}
}

// panicked tells of a handler that has, as net/http does.
func (f *Front) panicked(c *conn, err any) {
	if err == http.ErrAbortHandler {
		return
	}
	stack := make([]byte, 64<<10)
	f.logf("http: panic serving %v: %v\n%s", c.RemoteAddr(), err, stack[:runtime.Stack(stack, false)])
}

// end ends a connection that the caller has.
func (f *Front) end(c *conn) {
	if c.place != nil {
		f.crowd.leave(c)
	}
	f.leave(c)
	_ = c.Close() // it may be closed already
}

// release gives a connection in the crowd a goroutine again.
func (f *Front) release(c *conn) {
	f.crowd.leave(c)
	go f.run(c)
}

// idleTime is for how long a connection may send nothing.
func (f *Front) idleTime() time.Duration { return cmp.Or(f.server.IdleTimeout, f.server.ReadTimeout) }

// leave takes a connection off the list; the last one ends Shutdown.
func (f *Front) leave(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
	if f.stopping.Load() && len(f.conns) == 0 {
		f.ended()
	}
}

// Shutdown closes the port and all connections that no handler runs for, then waits
// for the handlers, until ctx ends.
func (f *Front) Shutdown(ctx context.Context) error {
	f.stop(func(c *conn) { _ = c.SetReadDeadline(past()) }) // one that fails is closed already
	err := f.server.Shutdown(ctx)
	if err != nil {
		return err
	}
	select {
	case <-f.empty:
		f.crowd.close()
		f.crowd.wait()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the port and all connections. It does not wait for handlers.
func (f *Front) Close() error {
	f.stop(func(c *conn) { _ = c.Close() }) // it may be closed already
	f.crowd.close()
	return f.server.Close()
}

// stop ends each connection; those of the server are its own business.
func (f *Front) stop(end func(*conn)) {
	f.mu.Lock()
	f.stopping.Store(true)
	for c := range f.conns {
		end(c)
	}
	if len(f.conns) == 0 {
		f.ended()
	}
	f.mu.Unlock()
	f.crowd.stop()
}

// past is a deadline that ends a read at once.
func past() time.Time { return time.Unix(1, 0) }

func (f *Front) logf(format string, args ...any) {
	if f.server.ErrorLog != nil {
		f.server.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
