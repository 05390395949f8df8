package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// client is one open stream as it is written to.
//
// Each write has its deadline, set before and cleared after: the server's own
// WriteTimeout would end a stream however much alive, and none at all would leave a
// handler with a client that has gone without a word.
type client struct {
	access Access
	w      http.ResponseWriter
	rc     *http.ResponseController
	buf    bytes.Buffer

	mu      sync.Mutex
	writing bool
	hurry   bool // the server ends: no write may take longer than hurryTime
}

// begin sends the header and the time after which to come again.
func (c *client) begin() error {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	fmt.Fprintf(&c.buf, "retry: %d\n\n", (reconnect/2 + rand.N(reconnect)).Milliseconds())
	return c.flush()
}

// event adds an event to what is flushed next. An empty id: it has none.
func (c *client) event(name, id string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return forebay.Errorf(forebay.CodeInternal, "stream: "+name, "%w", err)
	}
	fmt.Fprintf(&c.buf, "event: %s\n", name)
	if id != "" {
		fmt.Fprintf(&c.buf, "id: %s\n", id)
	}
	c.buf.WriteString("data: ")
	switch {
	case bytes.HasPrefix(b, []byte(`{"v":`)), !bytes.HasPrefix(b, []byte("{")):
		c.buf.Write(b)
	case len(b) == len("{}"):
		c.buf.WriteString(`{"v":1}`)
	default:
		c.buf.WriteString(`{"v":1,`)
		c.buf.Write(b[1:])
	}
	c.buf.WriteString("\n\n")
	return nil
}

// flush writes what was added.
func (c *client) flush() error {
	if c.buf.Len() == 0 {
		return nil
	}
	if err := c.deadline(true, writeTime); err != nil {
		return err
	}
	_, err := c.w.Write(c.buf.Bytes())
	if err == nil {
		err = c.rc.Flush()
	}
	if c.buf.Cap() > 64<<10 {
		c.buf = bytes.Buffer{}
	}
	c.buf.Reset()
	return errors.Join(err, c.deadline(false, 0))
}

// deadline sets the deadline of a write, or clears it after one.
func (c *client) deadline(writing bool, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = writing
	if c.hurry {
		d = min(d, hurryTime)
	}
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d) // the kernel's clock, whatever that of the tests is
	}
	return c.rc.SetWriteDeadline(at)
}

// finish bounds what the server has to write after the handler has returned.
func (c *client) finish() { _ = c.deadline(false, time.Second) }

// cut lets a write that is under way end, or fail, soon; without one, the handler
// ends by itself.
func (c *client) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurry = true
	if c.writing {
		_ = c.rc.SetWriteDeadline(time.Now().Add(hurryTime)) // it was set before
	}
}
