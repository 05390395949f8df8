package front

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	firstBuffer = 4 << 10                // of a connection; it grows for as long as a request needs it
	patience    = 100 * time.Millisecond // for the rest of a request
	coarse      = time.Second            // how exact the deadlines of a connection are
)

// conn is a connection that has sent plain requests only. It belongs to one goroutine,
// but for its deadlines and Close.
type conn struct {
	front *Front
	net.Conn
	remote string
	ctx    context.Context
	served bool // a request already

	buf      []byte // what was read and is not used yet is buf[from:to]
	from, to int
	heads    heads
	request  http.Request // as the handler sees it
	body     body
	answer   answer
	renewed  time.Time // the deadlines were; zero: they are others
	second   int64     // that date tells
	date     []byte    // as it stands in answers
}

func newConn(f *Front, raw net.Conn) *conn {
	ctx := context.WithValue(context.Background(), http.ServerContextKey, f.server)
	c := &conn{front: f, Conn: raw, ctx: context.WithValue(ctx, http.LocalAddrContextKey, raw.LocalAddr())}
	c.heads.routes = f.routes
	c.answer = answer{conn: c, header: http.Header{}}
	if addr := raw.RemoteAddr(); addr != nil {
		c.remote = addr.String()
	}
	return c
}

// serve answers plain requests. It tells whether the connection is to go to net/http;
// if not, it has come to its end.
func (c *conn) serve() (pass bool) {
	c.limit(c.SetReadDeadline, c.front.server.ReadHeaderTimeout)
	for ; !c.front.stopping.Load(); c.served = true {
		what, head := c.await()
		switch {
		case what == odd || what == some:
			return !c.front.stopping.Load()
		case what == nothing || !c.handle(head):
			return false
		}
	}
	return false
}

// limit sets a deadline after so long; 0 means none, as in an http.Server. One that
// cannot be set is that of a connection that is closed, which the next read tells.
func (c *conn) limit(set func(time.Time) error, after time.Duration) {
	var at time.Time
	if after > 0 {
		at = time.Now().Add(after)
	}
	_ = set(at)
}

// await reads until there is a whole request, or one that is for net/http, or none.
func (c *conn) await() (what found, head int) {
	if c.served && !c.next() {
		return nothing, 0
	}
	for waited := false; ; {
		if c.served || c.from < c.to {
			if what, head = c.heads.find(c.buf[c.from:c.to]); what != some {
				return what, head
			}
			if !waited { // the rest of it is on its way
				waited, c.renewed = true, time.Time{}
				c.limit(c.SetReadDeadline, patience)
			}
		}
		if waited && c.front.stopping.Load() {
			return nothing, 0
		}
		if !c.read() {
			return what, 0
		}
	}
}

// next waits until there are four bytes after a request, as net/http does, and skips
// ends of lines in them, which some clients send after a POST.
func (c *conn) next() bool {
	for c.to-c.from < 4 {
		if !c.read() {
			return false
		}
	}
	for range 4 {
		if b := c.buf[c.from]; b != '\r' && b != '\n' {
			break
		}
		c.from++
	}
	return true
}

// read reads more. It tells whether there is any.
func (c *conn) read() bool {
	if !c.room() {
		return false
	}
	n, err := c.Read(c.buf[c.to:])
	c.to += n
	return n > 0 || err == nil
}

// room makes room to read more.
func (c *conn) room() bool {
	switch {
	case c.from == c.to:
		c.from, c.to = 0, 0
		if len(c.buf) != firstBuffer {
			c.buf = make([]byte, firstBuffer)
		}
	case c.to < len(c.buf):
	case c.from > 0:
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.from = 0
	case len(c.buf) < maxRequest:
		c.buf = append(c.buf, make([]byte, maxRequest-len(c.buf))...)
	default:
		return false
	}
	return true
}

// handle answers the request at the beginning of the buffer. It tells whether another
// one may follow.
func (c *conn) handle(head int) bool {
	h := &c.heads
	if h.request.Context() != c.ctx {
		h.request = h.request.WithContext(c.ctx)
		h.request.RemoteAddr = c.remote
	}
	c.request = *h.request
	c.request.Body = http.NoBody
	if h.length > 0 {
		c.body.Reset(c.buf[c.from+head : c.from+head+h.length])
		c.request.Body = &c.body
	}
	c.answer.begin()
	h.handler.ServeHTTP(&c.answer, &c.request)
	c.from += head + h.length
	return c.answer.finish()
}

// dateAt is the date as answers tell it, which has no fractions.
func (c *conn) dateAt(now time.Time) []byte {
	if s := now.Unix(); s != c.second || c.date == nil {
		c.second, c.date = s, now.UTC().AppendFormat(c.date[:0], http.TimeFormat)
	}
	return c.date
}

// renew sets the deadlines for this answer and for the next request, unless it did so
// just now.
func (c *conn) renew(now time.Time) {
	if now.Sub(c.renewed) < coarse {
		return
	}
	c.renewed = now
	s := c.front.server
	for _, d := range []struct {
		set   func(time.Time) error
		after time.Duration
	}{{c.SetWriteDeadline, s.WriteTimeout}, {c.SetReadDeadline, cmp.Or(s.IdleTimeout, s.ReadTimeout)}} {
		if d.after > 0 {
			d.after += coarse
		}
		c.limit(d.set, d.after)
	}
}

// rest is the connection for net/http, which reads first what was read already.
func (c *conn) rest() net.Conn {
	_ = c.SetDeadline(time.Time{})
	return &rest{c.Conn, c.buf[c.from:c.to]}
}

type rest struct {
	net.Conn
	unread []byte
}

func (r *rest) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.unread)
	if r.unread = r.unread[n:]; len(r.unread) == 0 {
		r.unread = nil
	}
	return n, nil
}

// ReadFrom lets net/http send files without copying them.
func (r *rest) ReadFrom(src io.Reader) (int64, error) {
	if to, ok := r.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(src)
	}
	return io.Copy(struct{ io.Writer }{r.Conn}, src)
}

// body is what a handler reads of a request.
type body struct{ bytes.Reader }

func (*body) Close() error { return nil }
