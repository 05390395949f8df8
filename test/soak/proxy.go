//go:build linux

package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// network stands between a server and what it needs, and does to connections what a
// network does.
type network struct {
	target string
	l      net.Listener

	mu      sync.Mutex // guards all below
	conns   map[*net.TCPConn]bool
	swallow bool          // what is sent either way is lost, and nobody is told
	refuse  bool          // new connections are closed at once
	delay   time.Duration // of each piece that passes
	closed  bool
	running sync.WaitGroup
}

func startNetwork(target string) (*network, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &network{target: target, l: l, conns: map[*net.TCPConn]bool{}}
	n.running.Go(n.accept)
	return n, nil
}

func (n *network) addr() string { return n.l.Addr().String() }

func (n *network) accept() {
	for {
		in, err := n.l.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		refuse := n.refuse
		n.mu.Unlock()
		out, err := net.DialTimeout("tcp", n.target, 5*time.Second)
		if err != nil || refuse || !n.keep(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		n.running.Go(func() { n.pass(in, out) })
		n.running.Go(func() { n.pass(out, in) })
	}
}

func (n *network) keep(conns ...net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range conns {
		if !n.closed {
			n.conns[c.(*net.TCPConn)] = true
		}
	}
	return !n.closed
}

// pass hands on what comes, until one of both ends.
func (n *network) pass(from, to net.Conn) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
		n.mu.Lock()
		delete(n.conns, from.(*net.TCPConn))
		n.mu.Unlock()
	}()
	buf := make([]byte, 32<<10)
	for {
		got, err := from.Read(buf)
		if err != nil {
			return
		}
		n.mu.Lock()
		lost, late := n.swallow, n.delay
		n.mu.Unlock()
		if lost {
			continue
		}
		if late > 0 {
			time.Sleep(late)
		}
		if _, err := to.Write(buf[:got]); err != nil && err != io.ErrShortWrite {
			return
		}
	}
}

// reset ends all connections at once, with what is on its way.
func (n *network) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// set makes the network bad, or well again.
func (n *network) set(change func(*network)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// heal makes it well. What was swallowed stays lost, so connections that it is missing from end.
func (n *network) heal() {
	was := false
	n.set(func(n *network) {
		was = n.swallow
		n.swallow, n.refuse, n.delay = false, false, 0
	})
	if was {
		n.reset()
	}
}

func (n *network) close() {
	_ = n.l.Close()
	n.set(func(n *network) { n.closed = true })
	n.reset()
	n.running.Wait()
}
