package postgres_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// lender keeps sessions of a server for those who come next. To begin one costs the server
// more than most cases do: a process, and all that it reads of the catalog. Whoever dials
// gets one that has begun, as DISCARD ALL leaves it: without statements, locks, settings or a transaction.
type lender struct {
	url    string
	back   chan *session
	served sync.WaitGroup

	mu   sync.Mutex // guards free
	free []*session
}

// session is a connection, and what the server said when it began.
type session struct {
	conn  net.Conn
	hello []byte
}

func newLender(t testing.TB, url string) *lender {
	l := &lender{url: url, back: make(chan *session, 64)}
	l.served.Go(l.tidy)
	t.Cleanup(func() {
		close(l.back) // all tests have ended
		l.served.Wait()
		for _, s := range l.free {
			_ = s.conn.Close()
		}
	})
	return l
}

// dial stands where net.Dialer.DialContext would.
func (l *lender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	var s *session
	if n := len(l.free); n > 0 {
		s, l.free = l.free[n-1], l.free[:n-1]
	}
	l.mu.Unlock()
	if s == nil {
		var err error
		if s, err = l.begin(ctx); err != nil {
			return nil, err
		}
	}
	again := func() (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, network, address) }
	return &lent{Conn: s.conn, l: l, s: s, hello: s.hello, again: again}, nil
}

func (l *lender) begin(ctx context.Context) (*session, error) {
	c, err := pgconn.Connect(ctx, l.url)
	if err != nil {
		return nil, err
	}
	h, err := c.Hijack()
	if err != nil {
		return nil, err
	}
	said := []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}, &pgproto3.BackendKeyData{ProcessID: h.PID, SecretKey: h.SecretKey}}
	for name, value := range h.ParameterStatuses {
		said = append(said, &pgproto3.ParameterStatus{Name: name, Value: value})
	}
	s := &session{conn: h.Conn}
	for _, m := range append(said, &pgproto3.ReadyForQuery{TxStatus: 'I'}) {
		if s.hello, err = m.Encode(s.hello); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// tidy makes what comes back fit to be lent again, outside of all bubbles. What does not
// answer as it should is ended.
func (l *lender) tidy() {
	for s := range l.back {
		if !s.discard() {
			_ = s.conn.Close()
			continue
		}
		l.mu.Lock()
		l.free = append(l.free, s)
		l.mu.Unlock()
	}
}

func (s *session) discard() bool {
	_ = s.conn.SetDeadline(time.Now().Add(30 * time.Second)) // a connection that fails says so below
	f := pgproto3.NewFrontend(s.conn, s.conn)
	f.Send(&pgproto3.Query{String: "DISCARD ALL"})
	if f.Flush() != nil {
		return false
	}
	for done := false; ; {
		m, err := f.Receive()
		if err != nil {
			return false
		}
		switch m := m.(type) {
		case *pgproto3.ParameterStatus:
		case *pgproto3.CommandComplete:
			done = string(m.CommandTag) == "DISCARD ALL"
		case *pgproto3.ReadyForQuery:
			return done && m.TxStatus == 'I' && s.conn.SetDeadline(time.Time{}) == nil
		default: // an answer that somebody else did not wait for
			return false
		}
	}
}

// lent is a session as its borrower sees it: one that begins with it, and ends with it.
type lent struct {
	net.Conn
	l     *lender
	s     *session
	again func() (net.Conn, error)

	begun           bool
	hello           []byte      // what is left of it to be read
	ended           atomic.Bool // with the word that ends a session
	spoiled, closed atomic.Bool // spoiled: something was given up, so it is not lent again
}

var terminate = []byte{'X', 0, 0, 0, 4}

func (c *lent) Write(b []byte) (int, error) {
	switch {
	case !c.begun:
		c.begun = true
		const cancel = 80877102
		if len(b) >= 8 && binary.BigEndian.Uint32(b[4:]) == cancel {
			return c.cancel(b)
		}
		return len(b), nil
	case slices.Equal(b, terminate) && !c.spoiled.Load():
		c.ended.Store(true)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// cancel gives the session back, and asks for the end of what another one does.
func (c *lent) cancel(b []byte) (int, error) {
	conn, err := c.again()
	if err != nil {
		return 0, err
	}
	c.l.back <- c.s
	c.Conn, c.hello = conn, nil
	c.spoiled.Store(true)
	return conn.Write(b)
}

func (c *lent) Read(b []byte) (int, error) {
	if c.ended.Load() {
		return 0, io.EOF
	}
	if len(c.hello) > 0 {
		n := copy(b, c.hello)
		c.hello = c.hello[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// SetDeadline is how a context ends what is under way.
func (c *lent) SetDeadline(t time.Time) error {
	if !t.IsZero() {
		c.spoiled.Store(true)
	}
	return c.Conn.SetDeadline(t)
}

func (c *lent) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	if c.ended.Load() && !c.spoiled.Load() {
		c.l.back <- c.s
		return nil
	}
	return c.Conn.Close()
}
