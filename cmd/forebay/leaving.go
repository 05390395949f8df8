package main

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/forebayhq/forebay/internal/front"
)

// leaving sends clients that keep connections elsewhere while the server is about to
// stop: each answer closes its connection, so that none is cut when the port closes.
type leaving struct{ now atomic.Bool }

func (l *leaving) wrap(h http.Handler) http.Handler {
	if t, ok := h.(front.Together); ok {
		return &leavingTogether{l, t}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.tell(w)
		h.ServeHTTP(w, r)
	})
}

func (l *leaving) tell(w http.ResponseWriter) {
	if l.now.Load() {
		w.Header().Set("Connection", "close")
	}
}

// leavingTogether is wrap for requests that are handled together.
type leavingTogether struct {
	leaving *leaving
	next    front.Together
}

func (l *leavingTogether) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.leaving.tell(w)
	l.next.ServeHTTP(w, r)
}

func (l *leavingTogether) Alone(r *http.Request) bool { return l.next.Alone(r) }

func (l *leavingTogether) ServeTogether(ws []http.ResponseWriter, rs []*http.Request) {
	for _, w := range ws {
		l.leaving.tell(w)
	}
	l.next.ServeTogether(ws, rs)
}

// closed takes no offence at a listener that is closed already.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
