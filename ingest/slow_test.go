package ingest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/keyring"
)

// A thousand clients announce large bodies and send next to nothing. They take no
// memory from the others, whose requests are answered meanwhile.
func TestSlowClientsCostOthersNothing(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) { c.Limits.InFlightBytes = 16 << 20 })
	s := r.serve()
	const slow = 1000
	conns := make([]net.Conn, 0, slow)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range slow {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if _, err := io.WriteString(c, "POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 450000\r\n\r\n["); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		res, err := http.Post(s.URL+"/ingest/batch", "", strings.NewReader(events(4, 100_000)))
		if err != nil || res.StatusCode != 202 {
			t.Fatalf("request %d beside slow clients: %v %v", i, res, err)
		}
		res.Body.Close()
	}
	if n := len(r.queue.msgs); n != 200 {
		t.Errorf("%d events queued, want 200", n)
	}
}

// Whatever a client announces and does not send, its connection ends: also where the
// answer needs no body and net/http waits for the rest of it before it answers.
func TestABodyThatNeverComesEndsTheConnection(t *testing.T) {
	for _, head := range []string{
		"POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n{",
		"POST /ingest/event HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\nX-Write-Key: wrong\r\n\r\n",
		"OPTIONS /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n",
		"GET /v1/projects/k/settings HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n",
		"GET /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n",
		"POST /ingest/event HTTP/1.1\r\nHost: x\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.key(keyring.Spec{})
			l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
			s := newServer(r.mux)
			defer s.Close()
			go s.Serve(l)
			near := l.dial()
			if _, err := io.WriteString(near, head); err != nil {
				t.Fatal(err)
			}
			near.SetReadDeadline(time.Now().Add(5 * time.Minute))
			if _, err := io.ReadAll(near); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q holds its connection for more than five minutes", head)
			}
			near.Close()
		})
	}
}

// A client that sends and sends and reads no answer keeps neither its connection
// nor its part of the memory budget.
func TestWhoReadsNoAnswerHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *ingest.Config) { c.Limits.InFlightBytes = 1 << 20 })
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		s := newServer(r.mux)
		defer s.Close()
		go s.Serve(l)
		body := `[{"eventType":"a","payload":{"pad":"` + strings.Repeat("x", 200_000) + `"}}` + strings.Repeat(`,{"eventType":7}`, 50) + `]`
		for range 3 {
			c := l.dial()
			defer c.Close()
			if _, err := fmt.Fprintf(c, "POST /ingest/batch HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if status, answer := r.post("/ingest/batch", body); status != 503 {
			t.Fatalf("the budget is not used up: got %d %s", status, answer)
		}
		time.Sleep(time.Minute)
		if status, answer := r.post("/ingest/batch", body); status != 202 {
			t.Errorf("a minute later: got %d %s", status, answer)
		}
		small := l.dial() // an answer that is written when the handler has returned
		defer small.Close()
		if _, err := fmt.Fprintf(small, "POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(anEvent), anEvent); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if b, err := io.ReadAll(small); len(b) > 0 || err != nil {
			t.Errorf("its connection is still there: %q %v", b, err)
		}
	})
}

// pipes is a listener within the process, so that a test can wind the clock.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipes) dial() net.Conn {
	near, far := net.Pipe()
	l.conns <- far
	return near
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }
