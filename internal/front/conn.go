package front

import (
	"bytes"
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
	place    *place    // in the crowd; nil: it has a goroutine
	row      int       // requests to a Together, one after the other
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

// fate is what becomes of a connection.
type fate int

const (
	ends   fate = iota
	passes      // to net/http
	joins       // the crowd, which has it now
)

// rowToJoin is how many requests to a Together a connection sends before it joins the
// crowd. Those of clients that send a few and go are not worth it.
const rowToJoin = 16

// serve answers plain requests, until it is told what becomes of the connection.
func (c *conn) serve() fate {
	if !c.rest() {
		return ends
	}
	c.limit(c.SetReadDeadline, c.front.server.ReadHeaderTimeout)
	for ; !c.front.stopping.Load(); c.served = true {
		what, head := c.await()
		switch {
		case (what == odd || what == some) && !c.front.stopping.Load():
			return passes
		case what != whole || !c.handle(head):
			return ends
		case c.joined():
			return joins
		}
	}
	return ends
}

// rest sends what could not be sent at once when the connection was in the crowd.
func (c *conn) rest() bool {
	if len(c.answer.unsent) == 0 {
		return true
	}
	c.renew(time.Now())
	_, err := c.Write(c.answer.unsent)
	c.answer.unsent = nil
	return err == nil
}

// fits tells whether the request that was found is one for the crowd.
func (c *conn) fits() bool {
	h, ok := c.heads.handler.(Together)
	return ok && !h.Alone(c.heads.request)
}

// joined tells whether the connection has joined the crowd.
func (c *conn) joined() bool {
	if !c.fits() || c.from < c.to {
		c.row = 0
		return false
	}
	if c.row++; c.row < rowToJoin || c.front.crowd == nil {
		return false
	}
	c.row = 0
	c.served = true
	return c.front.crowd.join(c)
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
	c.skip()
	return true
}

// skip skips ends of lines before a request.
func (c *conn) skip() {
	for range 4 {
		if b := c.buf[c.from]; b != '\r' && b != '\n' {
			break
		}
		c.from++
	}
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
	c.begin(head)
	c.heads.handler.ServeHTTP(&c.answer, &c.request)
	return c.answer.finish()
}

// begin makes the request at the beginning of the buffer ready for its handler. The
// buffer is not to change until that has ended.
func (c *conn) begin(head int) {
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
	c.from += head + h.length
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
	}{{c.SetWriteDeadline, s.WriteTimeout}, {c.SetReadDeadline, c.front.idleTime()}} {
		if d.after > 0 {
			d.after += coarse
		}
		c.limit(d.set, d.after)
	}
}

// passed is the connection for net/http, which reads first what was read already.
func (c *conn) passed() net.Conn {
	_ = c.SetDeadline(time.Time{})
	return &passed{c.Conn, c.buf[c.from:c.to]}
}

type passed struct {
	net.Conn
	unread []byte
}

func (r *passed) Read(p []byte) (int, error) {
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
func (r *passed) ReadFrom(src io.Reader) (int64, error) {
	if to, ok := r.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(src)
	}
	return io.Copy(struct{ io.Writer }{r.Conn}, src)
}

// body is what a handler reads of a request.
type body struct{ bytes.Reader }

func (*body) Close() error { return nil }
