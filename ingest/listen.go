package ingest

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// Listen and ConnContext are for an http.Server that carries the edge; they make a
// request cheaper. While a handler runs, net/http reads from its connection, to
// learn whether the client has gone. The edge does not ask: what has arrived is
// stored. So it answers that read with nothing, which saves a system call, timers
// and two switches between goroutines for each request.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

type conn struct {
	net.Conn
	unwatched atomic.Bool // the edge handles a request of it
}

// ReadFrom lets net/http send files without copying them.
func (c *conn) ReadFrom(src io.Reader) (int64, error) {
	if to, ok := c.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(src)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, src)
}

// Read tells the look-out of net/http by its single byte; it has nothing to do
// then, and ends. Bodies are read into larger buffers.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.unwatched.Load() {
		return 0, nil
	}
	return c.Conn.Read(p)
}

// ConnContext lets handlers know their connection; see Listen.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

type connKey struct{}

// Unwatch ends the look-out for as long as a request is handled. It is for handlers
// that come to their end whether the client waits or not.
func Unwatch(r *http.Request) (watch func()) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return func() {}
	}
	c.unwatched.Store(true)
	return func() { c.unwatched.Store(false) }
}
