package inbox

import (
	"sync"

	"github.com/forebayhq/forebay"
)

// hub wakes the streams of a user. It carries nothing: streams read from the store.
type hub struct {
	most, perUser int
	closing       chan struct{} // closed by close

	mu     sync.Mutex
	closed bool
	open   int
	users  map[string]map[*listener]bool
}

// listener of one stream. wake holds one signal: many are as good as one.
type listener struct{ wake chan struct{} }

func newHub(most, perUser int) *hub {
	return &hub{most: most, perUser: perUser, closing: make(chan struct{}), users: map[string]map[*listener]bool{}}
}

// listen adds a stream, for which begun is called before it can be closed.
func (h *hub) listen(user string, begun func()) (*listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, forebay.Errorf(forebay.CodeClosed, "inbox", "the server is shutting down")
	case h.open >= h.most:
		return nil, forebay.Errorf(forebay.CodeFull, "inbox", "%d streams are open; that is as many as are allowed", h.open)
	case len(h.users[user]) >= h.perUser:
		return nil, forebay.Errorf(forebay.CodeLimited, "inbox", "this user has %d streams open; that is as many as are allowed", h.perUser)
	}
	l := &listener{wake: make(chan struct{}, 1)}
	if h.users[user] == nil {
		h.users[user] = map[*listener]bool{}
	}
	h.users[user][l] = true
	h.open++
	begun()
	return l, nil
}

func (h *hub) leave(user string, l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.users[user], l)
	if len(h.users[user]) == 0 {
		delete(h.users, user)
	}
	h.open--
}

// wake never waits.
func (h *hub) wake(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.users[user] {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.closing)
	}
}
