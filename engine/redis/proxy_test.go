package redis_test

import (
	"net"
	"sync"
	"testing"
)

// proxy stands between an engine and a server, and does to the connections what a network
// does.
type proxy struct {
	l net.Listener

	mu      sync.Mutex // guards all below
	target  string
	swallow bool // what is sent either way is lost, and nobody is told
	conns   map[*net.TCPConn]bool
	closed  bool
	running sync.WaitGroup
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, conns: make(map[*net.TCPConn]bool)}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.reset()
		p.running.Wait()
	})
	return p
}

func (p *proxy) url() string { return "redis://" + p.l.Addr().String() }

// add keeps a connection, to be reset; false: it is too late.
func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c.(*net.TCPConn)] = true
	}
	return !p.closed
}

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		out, err := net.Dial("tcp", target)
		if err != nil {
			_ = in.Close()
			continue
		}
		if !p.add(in) || !p.add(out) {
			_ = in.Close()
			_ = out.Close()
			return
		}
		p.running.Go(func() { p.pass(in, out) })
		p.running.Go(func() { p.pass(out, in) })
	}
}

// pass hands on what comes, until one of both ends.
func (p *proxy) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		lost := p.swallow
		p.mu.Unlock()
		if lost {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// reset ends all connections at once, with what is on its way.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) lose(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = on
}

// leadTo lets new connections lead to another server, and resets those that there are.
func (p *proxy) leadTo(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.reset()
}
