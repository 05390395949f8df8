package front

import (
	"net/http"

	"golang.org/x/sys/unix"
)

// mostOfTurn is how many connections a worker takes at a time.
const mostOfTurn = 64

// turn is what a worker does for some connections at a time.
type turn struct {
	crowd  *crowd
	events [mostOfTurn]unix.EpollEvent
	ready  int     // of the events
	mine   []*conn // that may have something to read
	next   []*conn // after those
	asked  []*conn // that have a request
	these  []*conn // of those, the ones with the same handler
	ws     []http.ResponseWriter
	rs     []*http.Request
}

// await waits until some connections can be read, and takes them. False: the crowd is
// closed.
func (t *turn) await() bool {
	err := t.crowd.poll.Read(func(epoll uintptr) bool {
		n, err := unix.EpollWait(int(epoll), t.events[:], 0)
		t.ready = max(n, 0)
		return n != 0 && err != unix.EINTR
	})
	c := t.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun()
	t.mine = t.mine[:0]
	if err != nil {
		return false
	}
	for _, ev := range t.events[:t.ready] {
		s := &c.seats[ev.Fd]
		if s.conn == nil || s.turn != ev.Pad {
			continue
		}
		if ev.Events != unix.EPOLLIN {
			s.conn.place.ending.Store(true)
		}
		if s.conn.place.claim() {
			t.mine = append(t.mine, s.conn)
		}
	}
	return true
}

// serve answers until there is nothing more to read.
func (t *turn) serve() {
	for ; len(t.mine) > 0; t.mine, t.next = t.next, t.mine[:0] {
		t.asked = t.asked[:0]
		for _, one := range t.mine {
			t.pick(one)
		}
		for len(t.asked) > 0 {
			t.handle(t.asked[0].heads.handler.(Together))
		}
	}
}

// pick looks for a request of a connection.
func (t *turn) pick(one *conn) {
	what, head := one.look()
	if what == whole && one.fits() {
		one.begin(head)
		t.asked = append(t.asked, one)
		return
	}
	switch {
	case what == nothing:
		t.crowd.front.end(one)
	case what == some && one.from == one.to:
		t.yield(one)
	default:
		t.crowd.front.release(one)
	}
}

// yield gives a connection back, unless it has more to read. The end comes behind all
// that is read first, and is not told again.
func (t *turn) yield(one *conn) {
	if one.place.ending.Load() || !one.place.yield() {
		t.next = append(t.next, one)
	}
}

// look finds what is at the beginning of the bytes that came, and reads if that is not
// all.
func (c *conn) look() (what found, head int) {
	if c.front.stopping.Load() {
		return nothing, 0
	}
	if what, head = c.peek(); what != some {
		return what, head
	}
	switch n, open := c.get(); {
	case !open && c.from == c.to:
		return nothing, 0
	case n == 0: // or the end, which whoever waits for the rest will find
		return some, 0
	case c.to == len(c.buf): // there may be more
		c.place.state.Store(again)
	}
	return c.peek()
}

// peek finds what was read already.
func (c *conn) peek() (what found, head int) {
	if c.to-c.from < 4 {
		return some, 0
	}
	c.skip()
	return c.heads.find(c.buf[c.from:c.to])
}

// get reads what there is. Not open: nothing will come any more.
func (c *conn) get() (n int, open bool) {
	if !c.room() {
		return 0, true
	}
	err := error(unix.EINTR)
	gone := c.place.raw.Read(func(fd uintptr) bool {
		for err == unix.EINTR {
			n, err = unix.Read(int(fd), c.buf[c.to:])
		}
		return true
	})
	if gone != nil || n == 0 || n < 0 && err != unix.EAGAIN {
		return 0, false
	}
	n = max(n, 0)
	c.to += n
	return n, true
}

// handle has the requests to one handler handled, and answers them.
func (t *turn) handle(h Together) {
	rest := t.asked[:0]
	t.these, t.ws, t.rs = t.these[:0], t.ws[:0], t.rs[:0]
	for _, one := range t.asked {
		if one.heads.handler != h {
			rest = append(rest, one)
			continue
		}
		t.these, t.ws, t.rs = append(t.these, one), append(t.ws, &one.answer), append(t.rs, &one.request)
	}
	t.asked = rest
	if !t.call(h) {
		for _, one := range t.these {
			t.crowd.front.end(one)
		}
		return
	}
	for _, one := range t.these {
		switch {
		case !one.answer.finish():
			t.crowd.front.end(one)
		case len(one.answer.unsent) > 0:
			t.crowd.front.release(one)
		default:
			one.place.active.Store(one.answer.at.UnixNano())
			if one.from < one.to {
				t.next = append(t.next, one)
			} else {
				t.yield(one)
			}
		}
	}
}

// call calls a handler. One that panics loses the connections whose requests it had.
func (t *turn) call(h Together) (whole bool) {
	defer func() {
		if err := recover(); err != nil {
			t.crowd.front.panicked(t.these[0], err)
		}
	}()
	h.ServeTogether(t.ws, t.rs)
	return true
}

// put sends what can be sent without waiting.
func (c *conn) put(b []byte) (rest []byte, err error) {
	gone := c.place.raw.Write(func(fd uintptr) bool {
		for len(b) > 0 && err == nil {
			var n int
			if n, err = unix.Write(int(fd), b); n > 0 {
				b = b[n:]
			}
			if err == unix.EINTR {
				err = nil
			}
		}
		return true
	})
	if err == unix.EAGAIN {
		err = nil
	}
	if gone != nil {
		err = gone
	}
	return b, err
}
