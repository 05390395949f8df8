package main

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// leaving sends clients that keep connections elsewhere while the server is about to
// stop: each answer closes its connection, so that none is cut when the port closes.
type leaving struct{ now atomic.Bool }

func (l *leaving) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.now.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// closed takes no offence at a listener that is closed already.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
