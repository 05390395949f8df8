package postgres_test

import (
	"net"
	"sync"
	"testing"
)

// proxy stands between an engine and a server. After a word has gone to the server it can
// keep the answer to itself and end the connection: the commit is done, and nobody is told.
type proxy struct {
	l      net.Listener
	target string

	mu      sync.Mutex // guards all below
	word    string     // after it has gone by, answers are lost; empty: none are
	lost    map[net.Conn]bool
	closed  bool
	conns   []net.Conn
	running sync.WaitGroup
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, lost: make(map[net.Conn]bool)}
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

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		if p.closed {
			_, _ = in.Close(), out.Close()
		}
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		p.running.Go(func() { p.pass(in, out, in, true) })
		p.running.Go(func() { p.pass(out, in, in, false) })
	}
}

// pass hands on what comes, until one of both ends.
func (p *proxy) pass(from, to, client net.Conn, asks bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if p.loses(buf[:n], client, asks) {
			return // the answer is here, so what was asked for is done
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// loses tells whether what goes by is an answer that is to be lost.
func (p *proxy) loses(data []byte, client net.Conn, asks bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if asks {
		if p.word != "" && contains(data, p.word) {
			p.lost[client], p.word = true, ""
		}
		return false
	}
	return p.lost[client]
}

func contains(data []byte, word string) bool {
	for i := 0; i+len(word) <= len(data); i++ {
		if string(data[i:i+len(word)]) == word {
			return true
		}
	}
	return false
}

// lose makes the answer to the next request with a word in it be lost.
func (p *proxy) lose(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word = word
}

// reset ends all connections at once.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
