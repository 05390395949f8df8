package inbox

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// begin checks a request for a stream and lets it in. Whoever gets a listener calls
// end.
func (b *Inbox) begin(user, after string) (l *listener, end func(), err error) {
	if err := checkUser(user); err != nil {
		return nil, nil, err
	}
	if after != "" {
		if _, err := parsePlace(after); err != nil {
			return nil, nil, err
		}
	}
	l, err = b.hub.listen(user, func() { b.wait.Add(1) })
	if err != nil {
		return nil, nil, err
	}
	return l, func() {
		b.hub.leave(user, l)
		b.wait.Done()
	}, nil
}

func (b *Inbox) serveStream(w http.ResponseWriter, r *http.Request) {
	user, after := r.PathValue("user"), r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	l, end, err := b.begin(user, after)
	if err != nil {
		problem(w, err)
		return
	}
	defer end()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // proxies hold back what looks like a file
	c := http.NewResponseController(w)
	write := func(text []byte) error {
		// The server's own limit is for whole answers.
		if err := c.SetWriteDeadline(time.Now().Add(b.cfg.Write)); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
		return c.Flush()
	}
	// Clients come back at different times after a restart.
	if err := write(fmt.Appendf(nil, "retry: %d\n\n", 1500+rand.IntN(1000))); err != nil {
		return
	}
	// How it ends is of no interest: the client comes back by itself.
	_ = b.feed(r.Context(), user, after, l, func(e event) error {
		data, err := json.Marshal(e.data)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if e.place != "" {
			fmt.Fprintf(&text, "id: %s\n", e.place)
		}
		fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", e.kind, data)
		return write(text.Bytes())
	})
}
