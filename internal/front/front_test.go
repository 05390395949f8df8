package front_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/internal/front"
)

// running is a front in a bubble, and what its handler does.
type running struct {
	t *testing.T
	*front.Front
	server *http.Server
	l      *pipes
	log    bytes.Buffer
	served chan error
}

func start(t *testing.T, h http.HandlerFunc, change ...func(*http.Server)) *running {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /a", h)
	r := &running{t: t, server: settings(mux), l: newPipes(), served: make(chan error, 1)}
	r.server.ErrorLog = log.New(&r.log, "", 0)
	for _, f := range change {
		f(r.server)
	}
	r.Front = front.New(r.server, map[string]http.Handler{"/a": h}, nil)
	go func() { r.served <- r.Serve(r.l) }()
	return r
}

// client is a connection; answers are read in the background.
type client struct {
	net.Conn
	answers *bufio.Reader
}

func (r *running) dial() *client {
	toServer, answers := r.l.dial()
	return &client{toServer, bufio.NewReader(answers)}
}

func (c *client) ask(t *testing.T, request string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}

// gone fails unless the connection ends within d, without another answer.
func (c *client) gone(t *testing.T, least, most time.Duration) {
	t.Helper()
	begun := time.Now()
	if b, err := io.ReadAll(c.answers); len(b) > 0 || err != nil {
		t.Fatalf("got %q, %v", b, err)
	}
	if took := time.Since(begun); took < least || took > most {
		t.Errorf("it ended after %v; want %v to %v", took, least, most)
	}
}

func TestShutdownEndsIdleConnectionsAndLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(w http.ResponseWriter, req *http.Request) {
			if req.ContentLength == 4 {
				time.Sleep(5 * time.Second)
			}
		})
		fresh, idle, busy, half, passed := r.dial(), r.dial(), r.dial(), r.dial(), r.dial()
		idle.ask(t, post("x"))
		half.ask(t, post("x"))
		passed.ask(t, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
		io.WriteString(half, "POST /")
		var answered sync.WaitGroup
		answered.Go(func() {
			if res := busy.ask(t, post("slow")); res.StatusCode != 200 || !res.Close {
				t.Errorf("the running one was answered %v", res)
			}
			busy.gone(t, 0, 0)
		})
		synctest.Wait()
		begun := time.Now()
		if err := r.Shutdown(t.Context()); err != nil || time.Since(begun) != 5*time.Second {
			t.Errorf("shutdown: %v after %v", err, time.Since(begun))
		}
		answered.Wait()
		for _, c := range []*client{fresh, idle, half, passed} {
			c.gone(t, 0, 0)
		}
		if err := <-r.served; err != http.ErrServerClosed {
			t.Errorf("serve: %v", err)
		}
	})
}

func TestShutdownThatTakesTooLongIsFollowedByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		r := start(t, func(http.ResponseWriter, *http.Request) { <-free })
		c := r.dial()
		io.WriteString(c, post("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("shutdown: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		c.gone(t, 0, 0)
		close(free)
		<-r.served
	})
}

func TestAConnectionThatIsIdleOrReadsNothingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(http.ResponseWriter, *http.Request) {})
		r.dial().gone(t, r.server.ReadHeaderTimeout, r.server.ReadHeaderTimeout)
		c := r.dial()
		for range 100 { // deadlines move on with requests
			c.ask(t, post("x"))
			time.Sleep(30 * time.Second)
		}
		c.gone(t, 45*time.Second, 46*time.Second)
		c = r.dial()
		io.WriteString(c, post("x"))
		time.Sleep(r.server.WriteTimeout + 2*time.Second)
		c.gone(t, 0, 0)
		r.Close()
	})
}

func TestAHandlerThatPanicsEndsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(_ http.ResponseWriter, req *http.Request) {
			if req.ContentLength == 4 {
				panic("of a handler")
			}
		})
		bad, good := r.dial(), r.dial()
		io.WriteString(bad, post("evil"))
		bad.gone(t, 0, 0)
		good.ask(t, post("x"))
		r.Close()
		if !strings.Contains(r.log.String(), "http: panic serving pipe: of a handler\ngoroutine") {
			t.Errorf("logged: %q", r.log.String())
		}
	})
}

// The same head again is not parsed again, but another Content-Length is seen.
func TestLengthsChangeFromRequestToRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		r := start(t, func(_ http.ResponseWriter, req *http.Request) {
			b, _ := io.ReadAll(req.Body)
			seen = append(seen, string(b)+" "+req.Header.Get("Content-Length"))
		})
		c := r.dial()
		for _, body := range []string{"one", "three", "", strings.Repeat("x", 7000), "one"} {
			c.ask(t, post(body))
		}
		want := []string{"one 3", "three 5", " 0", strings.Repeat("x", 7000) + " 7000", "one 3"}
		if strings.Join(seen, ",") != strings.Join(want, ",") {
			t.Errorf("seen %q", seen)
		}
		r.Close()
	})
}

// A deadline of the front is none of net/http's.
func TestNetHTTPGetsAConnectionWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(http.ResponseWriter, *http.Request) {}, func(s *http.Server) {
			s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = 0, 0, 0, 0
		})
		c := r.dial()
		whole := post("x")
		io.WriteString(c, whole[:9])
		time.Sleep(time.Hour)
		c.ask(t, whole[9:])
		r.Close()
	})
}

// The port of a front that fails tells so, and takes net/http's part with it.
func TestServeTellsThatTheListenerFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(http.ResponseWriter, *http.Request) {})
		r.l.Close()
		if err := <-r.served; err != net.ErrClosed {
			t.Errorf("got %v", err)
		}
		r.Close()
	})
}
