package front_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/internal/front"
)

// server is what both the front and net/http are.
type server interface {
	Serve(net.Listener) error
	Close() error
}

// plain is net/http alone, as the program sets it up.
func plain(h http.Handler) server { return settings(h) }

func settings(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 75 * time.Second, MaxHeaderBytes: 16 << 10,
	}
}

// fronted is the same behind a front.
func fronted(h http.Handler) server {
	return front.New(settings(h), map[string]http.Handler{"/a": h, "/b": h}, nil)
}

// echo answers what it sees of a request. The body says in which way.
func echo() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/a", "/b"} {
		mux.HandleFunc("POST "+path, answerEcho)
	}
	return mux
}

func answerEcho(w http.ResponseWriter, r *http.Request) {
	body, err := []byte(nil), error(nil)
	if r.Header.Get("Unread") == "" {
		body, err = io.ReadAll(r.Body)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s %v %q %d %v %q %v %q\n", r.Method, r.RequestURI, r.URL, r.Proto, r.Host, r.ContentLength, r.TransferEncoding, r.RemoteAddr, r.Close, body)
	fmt.Fprintf(&b, "%v %v\n", err != nil, r.Context().Value(http.LocalAddrContextKey))
	_ = r.Header.Write(&b)
	h := w.Header()
	mode, _, _ := bytes.Cut(body, []byte(" "))
	switch string(mode) {
	case "none":
		return
	case "nothing": // has no body
		w.WriteHeader(http.StatusNoContent)
	case "typed":
		h["Content-Type"] = []string{"application/json"}
		h.Add("Vary", "Origin")
		h.Set("Late", "no\r\nInjected: x")
		w.WriteHeader(http.StatusAccepted)
		h.Set("Late", "yes")
		w.WriteHeader(http.StatusTeapot)
	case "dated":
		h.Set("Date", "today")
		w.WriteHeader(799)
	case "close":
		h.Set("Connection", "close")
	case "panic":
		panic(http.ErrAbortHandler)
	case "large":
		b.WriteString(strings.Repeat("0123456789", 1000))
		h.Set("Content-Length", strconv.Itoa(b.Len()))
		w.Write(b.Next(5000))
		http.NewResponseController(w).Flush()
	case "short":
		h.Set("Content-Length", strconv.Itoa(b.Len()+1))
	case "long":
		h.Set("Content-Length", strconv.Itoa(b.Len()))
		defer func() { fmt.Fprint(w, "more than was said") }()
	}
	w.Write(b.Next(3))
	w.Write(b.Bytes())
}

// script is what a client does: it sends the first part, waits, sends the second and
// perhaps tells that no more comes.
type script struct {
	first, second []byte
	pause         time.Duration
	half          bool
}

// talk gives all that a server answers to a script within ten minutes.
func talk(t *testing.T, of func(http.Handler) server, do script) (answers []byte) {
	synctest.Test(t, func(t *testing.T) {
		s := of(echo())
		l := newPipes()
		var running sync.WaitGroup
		running.Go(func() { s.Serve(l) })
		toServer, answered := l.dial()
		running.Go(func() { answers, _ = io.ReadAll(answered) })
		running.Go(func() {
			toServer.Write(do.first)
			time.Sleep(do.pause)
			toServer.Write(do.second)
			if do.half {
				toServer.Close()
			}
		})
		time.Sleep(10 * time.Minute)
		toServer.Close()
		answered.Close()
		s.Close()
		running.Wait()
	})
	return answers
}

// pipes is a listener within the process, so that a test can wind the clock.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// dial gives the two directions of a connection, of which each can be closed alone.
func (l *pipes) dial() (toServer, answers net.Conn) {
	in, toServer := net.Pipe()
	out, answers := net.Pipe()
	l.conns <- &twoWay{out, in}
	return toServer, answers
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

// twoWay is a connection whose directions are pipes of their own.
type twoWay struct {
	net.Conn // out
	in       net.Conn
}

func (c *twoWay) Read(b []byte) (int, error)        { return c.in.Read(b) }
func (c *twoWay) SetReadDeadline(t time.Time) error { return c.in.SetReadDeadline(t) }
func (c *twoWay) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(t)
}

func (c *twoWay) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *twoWay) Close() error { return errors.Join(c.in.Close(), c.Conn.Close()) }
