package ingest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/ingest"
)

// during is a queue that does something while it is sent to.
type during func(ctx context.Context)

func (f during) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	f(ctx)
	return make([]forebay.SendResult, len(msgs)), ctx.Err()
}

// accepted is a connection of Listen and the client's end of it.
func accepted(t *testing.T) (server, client net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ingest.Listen(l).Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

func TestAConnectionIsUnwatchedWhileTheEdgeHandlesARequest(t *testing.T) {
	server, client := accepted(t)
	b := make([]byte, 1)
	n, err := -1, error(nil)
	r := newRig(t, func(c *ingest.Config) {
		c.Sender = during(func(context.Context) { n, err = server.Read(b) })
	})
	req := httptest.NewRequestWithContext(ingest.ConnContext(t.Context(), server), "POST", "/ingest/event", strings.NewReader(anEvent))
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, req)
	if n != 0 || err != nil || w.Code != 202 {
		t.Fatalf("while it was handled: read %d, %v; answer %d", n, err, w.Code)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err = server.Read(b); n != 1 || err != nil || b[0] != 'x' {
		t.Fatalf("afterwards: read %d %q, %v", n, b, err)
	}
}

// A client that sends the next request before it has the answer gets both, and
// routes that are not the edge's are told when their client goes.
func TestConnectionsOfTheEdgeWorkAsOthersDo(t *testing.T) {
	r := newRig(t, nil)
	waiting, gone := make(chan struct{}), make(chan struct{})
	r.mux.HandleFunc("GET /wait", func(_ http.ResponseWriter, r *http.Request) {
		close(waiting)
		<-r.Context().Done()
		close(gone)
	})
	s := r.serve()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	post := fmt.Sprintf("POST /ingest/event HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(anEvent), anEvent)
	if _, err := io.WriteString(c, post+post+"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(c)
	for range 2 {
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != 202 {
			t.Fatal(res, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
	}
	<-waiting
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-gone
}

func TestAClientThatGoesAwayStopsNothing(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var after error
	r := newRig(t, func(c *ingest.Config) {
		c.Sender = during(func(ctx context.Context) {
			leave()
			after = ctx.Err()
		})
	})
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/ingest/event", strings.NewReader(anEvent)))
	if after != nil || w.Code != 202 {
		t.Fatalf("got %v and %d", after, w.Code)
	}
}
