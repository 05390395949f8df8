package sqs_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// proxy stands between an engine and a real endpoint on real sockets, and does to
// connections what networks do: what a client sees as a reset is one, and what is
// half-open is held open until the client gives up.
type proxy struct {
	listener net.Listener
	to       string // address of the endpoint
	lies     *tamper
	client   *http.Transport
	ctx      context.Context // ends in close, and with it what waits
	cancel   context.CancelFunc
	conns    sync.WaitGroup

	mu   sync.Mutex
	rng  *rand.Rand
	deck []fault // those of this round: each comes once, so that none is missed
	seen int     // requests that were answered
	wait []waiting
}

// waiting is a slow answer: it comes after others did.
type waiting struct {
	after int
	come  chan struct{}
}

// wireFaults are those of a proxy. Half-open ones are fewer: each costs a deadline.
func wireFaults() []fault {
	return []fault{resets, loses, hangs, stalls, throttle, over, denied, breaks, partial, slow, cut}
}

func newProxy(t *testing.T, to string, seed uint64) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, client: &http.Transport{MaxIdleConnsPerHost: 64}, rng: rand.New(rand.NewPCG(seed, 5))}
	p.ctx, p.cancel = context.WithCancel(t.Context())
	p.lies = &tamper{rng: rand.New(rand.NewPCG(seed, 6)), did: make(map[fault]int)}
	p.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.conns.Go(func() { p.serve(c.(*net.TCPConn)) })
		}
	})
	return p
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cancel()
	p.conns.Wait()
	p.client.CloseIdleConnections()
}

// deal gives the next fault: of a quarter of the requests.
func (p *proxy) deal(action string) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if action == "CreateQueue" || p.rng.IntN(4) != 0 {
		return none
	}
	if len(p.deck) == 0 {
		p.deck = wireFaults()
		p.rng.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
	}
	f := p.deck[0]
	if f == partial && !strings.HasSuffix(action, "Batch") {
		return none // the next batch has it
	}
	p.deck = p.deck[1:]
	p.lies.did[f]++
	return f
}

func (p *proxy) serve(c *net.TCPConn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		_, action, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
		if !p.exchange(c, r, req, body, p.deal(action)) {
			return
		}
	}
}

// exchange answers one request; false: the connection is done.
func (p *proxy) exchange(c *net.TCPConn, r io.Reader, req *http.Request, body []byte, f fault) bool {
	switch f {
	case resets:
		_ = c.SetLinger(0)
		return false
	case hangs:
		_, _ = io.Copy(io.Discard, r) // ends when the client gives up
		return false
	case throttle:
		return answer(403, "RequestThrottled").Write(c) == nil
	case over:
		return answer(403, "OverLimit").Write(c) == nil
	case denied:
		return answer(403, "AccessDeniedException").Write(c) == nil
	case breaks:
		return answer(500, "InternalFailure").Write(c) == nil
	}
	reply, err := p.forward(req, body, f == partial)
	if err != nil {
		return false
	}
	switch f {
	case loses:
		_ = c.SetLinger(0)
		return false
	case stalls:
		_, _ = io.Copy(io.Discard, r)
		return false
	case cut:
		_, _ = c.Write(reply[:len(reply)/2])
		return false
	case slow:
		p.hold()
	}
	_, err = c.Write(reply)
	p.answered()
	return err == nil
}

// forward asks the endpoint, and gives its answer as bytes.
func (p *proxy) forward(req *http.Request, body []byte, lie bool) ([]byte, error) {
	again, err := http.NewRequestWithContext(p.ctx, req.Method, "http://"+p.to+req.URL.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	again.Header = req.Header
	res, err := p.client.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if lie {
		if res, err = p.lies.lie(res, false); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	err = res.Write(&out)
	return out.Bytes(), err
}

// hold waits until three more requests were answered, or the proxy closes.
func (p *proxy) hold() {
	p.mu.Lock()
	w := waiting{p.seen + 3, make(chan struct{})}
	p.wait = append(p.wait, w)
	p.mu.Unlock()
	select {
	case <-w.come:
	case <-p.ctx.Done():
	}
}

func (p *proxy) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	left := p.wait[:0]
	for _, w := range p.wait {
		if w.after <= p.seen {
			close(w.come)
		} else {
			left = append(left, w)
		}
	}
	p.wait = left
}
