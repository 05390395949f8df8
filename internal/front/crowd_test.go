//go:build linux

package front_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/front"
)

const patience = 20 * time.Second // for what comes at once unless something is wrong

// group is a Together that echoes. It counts what it got together.
type group struct {
	together atomic.Int64
	wait     func(body string) // nil: for nothing
}

func (g *group) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err) // all of it has come
	}
	if g.wait != nil {
		g.wait(string(body))
	}
	switch {
	case string(body) == "panic":
		panic(http.ErrAbortHandler)
	case string(body) == "close":
		w.Header().Set("Connection", "close")
	case strings.HasPrefix(string(body), "large"):
		body = bytes.Repeat(body, 200_000)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s", body)
}

func (g *group) Alone(r *http.Request) bool { return r.Header.Get("Alone") != "" }

func (g *group) ServeTogether(ws []http.ResponseWriter, rs []*http.Request) {
	for i, r := range rs {
		if g.Alone(r) {
			panic("it was to be alone")
		}
		g.ServeHTTP(ws[i], r)
	}
	g.together.Add(int64(len(rs)))
}

// onSockets serves a group on a port of its own, behind a front or not.
func onSockets(t *testing.T, g *group, alone bool, change ...func(*http.Server)) (of interface {
	Shutdown(context.Context) error
}, addr string) {
	mux := http.NewServeMux()
	mux.Handle("POST /a", g)
	s := settings(mux)
	s.ErrorLog = log.New(io.Discard, "", 0)
	for _, f := range change {
		f(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var one interface {
		Serve(net.Listener) error
		Shutdown(context.Context) error
		Close() error
	} = s
	if !alone {
		one = front.New(s, map[string]http.Handler{"/a": g}, nil)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := one.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		one.Close()
		running.Wait()
	})
	return one, l.Addr().String()
}

func dialTCP(t *testing.T, addr string) (*net.TCPConn, *bufio.Reader) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn), bufio.NewReader(c)
}

// ask sends one request and reads its answer.
func ask(t *testing.T, c net.Conn, answers *bufio.Reader, body string) {
	t.Helper()
	if _, err := io.WriteString(c, post(body)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(res.Body); string(got) != body || err != nil {
		t.Fatalf("got %q, %v; want %q", got, err, body)
	}
}

// join sends requests until the connection is in the crowd.
func join(t *testing.T, g *group, c net.Conn, answers *bufio.Reader) {
	t.Helper()
	for before := g.together.Load(); g.together.Load() == before; {
		ask(t, c, answers, "hello")
	}
}

// What a client in the crowd sends, it is answered as by net/http alone.
func TestTheCrowdAnswersAsNetHTTPAloneDoes(t *testing.T) {
	get := "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, sends := range map[string][]string{
		"pipelined":        {post("1") + post("22") + post("3")},
		"in pieces":        {post("12345")[:9], post("12345")[9:50], post("12345")[50:] + post("6")[:2], post("6")[2:]},
		"ends of lines":    {"\r\n\r\n" + post("1"), "\r\n" + post("2")},
		"another method":   {post("1") + get + post("2"), post("3")},
		"a wrong one":      {post("1"), "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", post("2")},
		"a large body":     {post(strings.Repeat("x", 9000)), post("1")},
		"a larger head":    {post("1", "X: "+strings.Repeat("x", 5000)), post("2")},
		"told to close":    {post("1"), post("close"), post("2")},
		"a handler panics": {post("1") + post("panic"), post("2")},
		"large answers":    {post("large 1") + post("large 2"), post("3")},
		"nothing":          {},
		"one alone":        {post("1") + post("2", "Alone: yes") + post("3"), post("4", "Alone: yes"), post("5")},
		"half a request":   {post("1"), post("22222")[:20]},
	} {
		t.Run(name, func(t *testing.T) {
			alone, inCrowd := answersOf(t, sends, true), answersOf(t, sends, false)
			if !bytes.Equal(alone, inCrowd) {
				t.Errorf("net/http answers %d: %.600q\nthe crowd %d: %.600q", len(alone), alone, len(inCrowd), inCrowd)
			}
		})
	}
}

// answersOf gives what a client gets for what it sends, until it has sent all and the
// server has closed.
func answersOf(t *testing.T, sends []string, alone bool) []byte {
	g := &group{}
	_, addr := onSockets(t, g, alone)
	c, r := dialTCP(t, addr)
	if ask(t, c, r, "hello"); !alone {
		join(t, g, c, r)
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() {
		for _, s := range sends {
			if _, err := io.WriteString(c, s); err != nil {
				return // the server has closed, which is compared
			}
		}
		c.CloseWrite()
	})
	got, err := io.ReadAll(r)
	if err != nil && !strings.Contains(err.Error(), "reset by peer") {
		t.Error(alone, err)
	}
	return dates.ReplaceAll(got, []byte("Date:"))
}

// stalled is a group whose slow requests tell that they are held, until release.
func stalled() (g *group, held chan struct{}, release func()) {
	held, released := make(chan struct{}), make(chan struct{})
	return &group{wait: func(body string) {
		if body == "slow" {
			held <- struct{}{}
			<-released
		}
	}}, held, sync.OnceFunc(func() { close(released) })
}

// Handlers that do not end keep no other connection from being served, however many
// they are.
func TestSlowTurnsKeepNobodyWaiting(t *testing.T) {
	g, held, release := stalled()
	_, addr := onSockets(t, g, false)
	defer release()
	other, answers := dialTCP(t, addr)
	join(t, g, other, answers)
	for range 10 {
		c, r := dialTCP(t, addr)
		join(t, g, c, r)
		if _, err := io.WriteString(c, post("slow")); err != nil {
			t.Fatal(err)
		}
		<-held
		ask(t, other, answers, "quick")
	}
	release()
	ask(t, other, answers, "at last")
}

// A client that reads nothing loses nothing, and holds up nobody.
func TestWhoReadsNothingHoldsUpNobody(t *testing.T) {
	g := &group{}
	_, addr := onSockets(t, g, false)
	mute, late := dialTCP(t, addr)
	join(t, g, mute, late)
	bodies := []string{"large 1", "large 2", "large 3", "large 4", "large 5", "large 6", "7"}
	for _, body := range bodies {
		if _, err := io.WriteString(mute, post(body)); err != nil {
			t.Fatal(err)
		}
	}
	c, r := dialTCP(t, addr)
	join(t, g, c, r)
	ask(t, c, r, "quick")
	for _, body := range bodies {
		res, err := http.ReadResponse(late, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); err != nil || len(got) != int(res.ContentLength) || strings.ReplaceAll(string(got), body, "") != "" {
			t.Fatalf("%s: %d of %d bytes, %v", body, len(got), res.ContentLength, err)
		}
	}
}

func TestShutdownEndsTheCrowd(t *testing.T) {
	g, held, release := stalled()
	server, addr := onSockets(t, g, false)
	defer release()
	idle, nothing := dialTCP(t, addr)
	join(t, g, idle, nothing)
	slow, answers := dialTCP(t, addr)
	join(t, g, slow, answers)
	if _, err := io.WriteString(slow, post("slow")); err != nil {
		t.Fatal(err)
	}
	<-held
	ended := make(chan error, 1)
	go func() { ended <- server.Shutdown(t.Context()) }()
	if b, err := io.ReadAll(nothing); len(b) > 0 || err != nil { // although the other one still runs
		t.Errorf("got %q, %v", b, err)
	}
	select {
	case err := <-ended:
		t.Errorf("Shutdown ended before a handler did: %v", err)
	default:
	}
	release()
	res, err := http.ReadResponse(answers, nil)
	if err != nil || !res.Close {
		t.Errorf("got %v, %v", res, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhoIsIdleLeavesTheCrowd(t *testing.T) {
	g := &group{}
	_, addr := onSockets(t, g, false, func(s *http.Server) { s.IdleTimeout = time.Millisecond })
	c, r := dialTCP(t, addr)
	join(t, g, c, r)
	if b, err := io.ReadAll(r); len(b) > 0 || err != nil { // which ends when it is not served any more
		t.Errorf("got %q, %v", b, err)
	}
}
