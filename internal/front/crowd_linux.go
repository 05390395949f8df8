package front

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const slowTurn = 5 * time.Millisecond // after which others do not wait for it to end

// crowd serves connections that have sent some requests to a Together one after the
// other. They have no goroutine each, which would have to be woken twice for each
// request:
//
//	some can be read ─▶ a worker reads a request of each ─▶ handled together ─▶ answers
//	      ▲                                                                       │
//	      └── the next worker waits, or comes when a turn is slow ◀───────────────┘
//
// A connection on which anything else comes than a whole plain request to a Together
// goes back to a goroutine, with what was read. So does one that takes no answer.
type crowd struct {
	front *Front
	file  *os.File // an epoll instance, watched by Go's own poller
	poll  syscall.RawConn

	mu      sync.Mutex
	seats   []seat
	free    []int32 // places in seats
	closed  bool
	workers int
	waiting int         // of the workers
	late    *time.Timer // runs while none waits
	sweeps  *time.Timer // nil: there is nobody
	running sync.WaitGroup
}

// seat is a place that events of the kernel refer to; turn tells whose they are of
// those who had it.
type seat struct {
	conn *conn
	turn int32
}

// newCrowd makes a crowd; nil where the system has none to give.
func newCrowd(f *Front) *crowd {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or Go would not watch it
		_ = unix.Close(fd)
		return nil
	}
	c := &crowd{front: f, file: os.NewFile(uintptr(fd), "epoll")}
	if c.poll, err = c.file.SyscallConn(); err != nil {
		_ = c.file.Close()
		return nil
	}
	c.late = time.AfterFunc(slowTurn, c.relieve)
	c.late.Stop()
	return c
}

// usual is how many workers there are when no turn is slow: one that reads for each
// processor, and some whose requests wait for the disk.
func usual() int { return runtime.GOMAXPROCS(0) + 3 }

// join takes a connection of which nothing is left to do, if it can be watched. The
// caller has it no more then.
func (c *crowd) join(one *conn) bool {
	sys, ok := one.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sys.SyscallConn()
	if err != nil || one.SetDeadline(time.Time{}) != nil {
		return false
	}
	one.renewed = time.Time{}
	p := &place{raw: raw}
	p.active.Store(time.Now().UnixNano())
	if !c.sit(one, p) {
		return false
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: p.seat, Pad: p.turn}
	if err := c.control(p, unix.EPOLL_CTL_ADD, &ev); err != nil {
		c.rise(one)
		return false
	}
	if !p.yield() { // it has sent more, or all is to end
		c.leave(one)
		return false
	}
	return true
}

// sit gives a connection a seat.
func (c *crowd) sit(one *conn, p *place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if n := len(c.free); n > 0 {
		p.seat, c.free = c.free[n-1], c.free[:n-1]
	} else {
		p.seat = int32(len(c.seats))
		c.seats = append(c.seats, seat{})
	}
	s := &c.seats[p.seat]
	s.conn, p.turn, one.place = one, s.turn, p
	p.state.Store(busy)
	for c.workers < usual() {
		c.hire()
	}
	if c.sweeps == nil {
		c.sweeps = time.AfterFunc(coarse, c.sweep)
	}
	return true
}

// rise gives the seat of a connection that the caller has to others.
func (c *crowd) rise(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.seats[one.place.seat]
	s.conn = nil
	s.turn++
	c.free = append(c.free, one.place.seat)
	one.place = nil
}

// leave takes a connection that the caller has out of the crowd.
func (c *crowd) leave(one *conn) {
	_ = c.control(one.place, unix.EPOLL_CTL_DEL, nil) // one that is closed is not watched any more
	c.rise(one)
}

func (c *crowd) control(p *place, what int, ev *unix.EpollEvent) (err error) {
	gone := p.raw.Control(func(fd uintptr) {
		shut := c.poll.Control(func(epoll uintptr) { err = unix.EpollCtl(int(epoll), what, int(fd), ev) })
		if shut != nil {
			err = shut
		}
	})
	if gone != nil {
		return gone
	}
	return err
}

// hire starts a worker; mu is held.
func (c *crowd) hire() {
	c.workers++
	c.waiting++
	c.running.Go(c.work)
}

// relieve starts a worker when all others are busy for long, so that no request waits
// for those of others. Each of them has a connection at least, which bounds them.
func (c *crowd) relieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == 0 && !c.closed {
		c.hire()
	}
}

// work is a worker.
func (c *crowd) work() {
	t := &turn{crowd: c}
	for t.await() {
		t.serve()
		if !c.stay() {
			return
		}
	}
}

// begun takes note that a worker has something to do; mu is held.
func (c *crowd) begun() {
	if c.waiting--; c.waiting == 0 {
		c.late.Reset(slowTurn)
	}
}

// stay tells a worker whether to wait for more.
func (c *crowd) stay() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers > usual() && c.waiting > 0 {
		c.workers--
		return false
	}
	if c.waiting++; c.waiting == 1 {
		c.late.Stop()
	}
	return true
}

// sweep ends connections that were idle for too long.
func (c *crowd) sweep() {
	most := c.front.idleTime()
	since := time.Now().Add(-most - coarse).UnixNano()
	c.mu.Lock()
	quiet := c.claim(func(p *place) bool { return most > 0 && p.active.Load() < since })
	c.sweeps = nil
	if len(c.free) < len(c.seats) && !c.closed {
		c.sweeps = time.AfterFunc(coarse, c.sweep)
	}
	c.mu.Unlock()
	for _, one := range quiet {
		c.front.end(one)
	}
}

// claim takes those connections that nobody has; mu is held.
func (c *crowd) claim(which func(*place) bool) (taken []*conn) {
	for _, s := range c.seats {
		if s.conn != nil && which(s.conn.place) && s.conn.place.claim() {
			taken = append(taken, s.conn)
		}
	}
	return taken
}

// stop ends what is idle, and lets the rest come to its end.
func (c *crowd) stop() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	quiet := c.claim(func(*place) bool { return true })
	c.mu.Unlock()
	for _, one := range quiet {
		c.front.end(one)
	}
}

// close ends the workers, and those that are busy when they have done.
func (c *crowd) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.late.Stop()
	if c.sweeps != nil {
		c.sweeps.Stop()
	}
	c.mu.Unlock()
	_ = c.file.Close() // nothing is written to it
}

// wait waits for the workers to end after close.
func (c *crowd) wait() {
	if c != nil {
		c.running.Wait()
	}
}

// place is that of a connection in a crowd.
type place struct {
	raw        syscall.RawConn
	seat, turn int32
	state      atomic.Int32
	ending     atomic.Bool  // the client sends no more, or the connection failed
	active     atomic.Int64 // when it was answered last
}

// What a place says of its connection.
const (
	idle  int32 = iota // whoever claims it has it
	busy               // somebody has it
	again              // and must look for more to read before he gives it back
)

// claim takes the connection, or tells whoever has it that there is more to read.
func (p *place) claim() bool {
	for {
		if p.state.CompareAndSwap(idle, busy) {
			return true
		}
		if p.state.CompareAndSwap(busy, again) || p.state.Load() == again {
			return false
		}
	}
}

// yield gives the connection back, unless there is more to read.
func (p *place) yield() bool {
	if p.state.CompareAndSwap(busy, idle) {
		return true
	}
	p.state.Store(busy)
	return false
}
