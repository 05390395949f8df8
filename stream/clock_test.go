package stream_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/stream"
)

// pipes is a listener within the process, so that a bubble's clock holds for the
// deadlines of its connections too.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipes) dial() (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	return here, nil
}

// A stream lives for as long as it is wanted, whatever WriteTimeout the server has,
// and says so each 15 s.
func TestPingsAndNoWriteTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startPiped(t, func(s *stand, _ *stream.Config) { s.http.WriteTimeout = time.Second })
		s.add("j1")
		r := s.get("j1", "")
		r.want("snapshot")
		began := time.Now()
		for range 8 {
			r.want("ping")
		}
		if d := time.Since(began); d != 2*time.Minute {
			t.Errorf("eight pings took %s", d)
		}
		s.settle(s.begin(), forebay.Ack)
		r.want("state:active", "state:completed", "done")
		r.end()
	})
}

// A client that does not read is gone after one write deadline, and has slowed
// nobody.
func TestAClientThatDoesNotReadIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startPiped(t, nil)
		s.add("j1")
		stuck := s.get("j1", "")
		stuck.want("snapshot")
		good := s.get("j1", "")
		good.want("snapshot")
		d := s.begin()
		good.want("state:active")
		for range 200 { // more than a subscription holds
			s.log(d, strings.Repeat("x", 1000))
			good.want("log")
		}
		time.Sleep(11 * time.Second)
		if n := s.streams.Open(); n != 1 {
			t.Errorf("%d streams are open", n)
		}
		if _, err := io.Copy(io.Discard, stuck.conn); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("the cut connection: %v", err)
		}
	})
}

// Close also ends a stream that stands in a write.
func TestCloseCutsAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startPiped(t, nil)
		s.add("j1")
		r := s.get("j1", "")
		r.want("snapshot")
		s.begin() // a pipe holds nothing: the write stands until somebody reads
		synctest.Wait()
		s.streams.Close()
		time.Sleep(time.Second)
		if n := s.streams.Open(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

// Whoever may no longer look is looking for a minute at most.
func TestAccessIsCheckedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var revoked atomic.Bool
		s := startPiped(t, func(s *stand, _ *stream.Config) {
			s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx := stream.WithAccess(r.Context(), stream.Access{Check: func() error {
					if revoked.Load() {
						return forebay.Errorf(forebay.CodeUnauthorized, "", "revoked")
					}
					return nil
				}})
				s.streams.ServeJob(w, r.WithContext(ctx), strings.TrimPrefix(r.URL.Path, "/"), nil)
			})
		})
		s.add("j1")
		r := s.get("j1", "")
		r.want("snapshot", "ping", "ping", "ping", "ping", "ping")
		revoked.Store(true)
		n := 0
		for {
			if e, ok := r.next(); !ok {
				break
			} else if n++; e.name != "ping" || n > 4 {
				t.Fatalf("still %+v", e)
			}
		}
	})
}

func startPiped(t *testing.T, change func(*stand, *stream.Config)) *stand {
	t.Helper()
	p := pipes{make(chan net.Conn), make(chan struct{})}
	return startOn(t, open(t, ""), p, func(s *stand, c *stream.Config) {
		s.dial = p.dial
		if change != nil {
			change(s, c)
		}
	})
}
