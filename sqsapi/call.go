package sqsapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// call is one request on its way.
type call struct {
	front  *Front
	w      http.ResponseWriter
	r      *http.Request
	id     string
	speaks protocol // set before anything may fail
	action *action  // nil until it is known
	caller caller
	body   *buffer // what speaks reads; nil once it is decoded
	held   int64   // bytes of it that the front's budget has lent
}

// protocol is one of the two ways to say the same.
type protocol interface {
	// name finds the action that a request with this body asks for.
	name(r *http.Request, body []byte) (string, error)
	// decode fills the input of the action from what name has read; in is a pointer.
	decode(a *action, in any) error
	// encode appends what says out, nil where an action answers nothing.
	encode(b []byte, a *action, out any, id string) ([]byte, error)
	refuse(b []byte, f *queue.Fault, id string) []byte
	contentType() string
}

// serve does all up to the answer.
func (c *call) serve() (any, error) {
	c.speaks = protocolOf(c.r)
	if c.r.ContentLength != 0 {
		// It holds for refusals too: the server reads what is left before it answers.
		// It ends with the body, so that it ends no long poll.
		c.control().SetReadDeadline(time.Now().Add(c.front.cfg.BodyTime)) // an error: a reader that has none
	}
	if c.r.Method != http.MethodPost && (c.r.Method != http.MethodGet || c.r.Header.Get(targetHeader) != "") {
		return nil, fault("InvalidAction", "The method %s is not supported: use POST, or GET with the query protocol.", c.r.Method)
	}
	claim, err := c.begin()
	if err != nil {
		return nil, err
	}
	c.body = newBuffer()
	defer c.release()
	if err := c.read(); err != nil {
		return nil, err
	}
	if err := c.identify(claim, c.body.bytes); err != nil {
		return nil, err
	}
	name, err := c.speaks.name(c.r, c.body.bytes)
	if err != nil {
		return nil, err
	}
	if c.action = c.front.actions[name]; c.action == nil {
		return nil, fault("InvalidAction", "The action %s is not valid for this endpoint.", printable(name))
	}
	return c.action.run(c)
}

// read reads the body, which has a bound and a deadline, as all bodies together have
// a bound.
func (c *call) read() error {
	limit := c.front.cfg.MaxBody
	tooLarge := fault("RequestEntityTooLarge", "The request is larger than %d bytes.", limit)
	if c.r.ContentLength > limit {
		c.drain()
		return tooLarge
	}
	if c.r.ContentLength == 0 {
		return nil
	}
	var err error
	c.body.bytes, err = appendAll(c.body.bytes, io.LimitReader(c.r.Body, limit+1), c.borrow)
	var refused *queue.Fault
	switch {
	case int64(len(c.body.bytes)) > limit:
		c.drain()
		return tooLarge
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault("RequestTimeout", "The body did not arrive within %s.", c.front.cfg.BodyTime)
	}
	return fault("MalformedInput", "The body ends early, after %d bytes.", len(c.body.bytes))
}

// drain passes over the rest of a body, as far as it is not more than four of the
// largest: a client that is still writing when its connection is closed sees that, and
// not the answer. One that asks before it sends is told without.
func (c *call) drain() {
	if c.r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, c.r.Body, 4*c.front.cfg.MaxBody)
	}
}

// borrow takes what a body needs beyond its first buffer from what all bodies may have.
func (c *call) borrow(by int) error {
	c.held += int64(by)
	if c.front.bodies.Add(int64(by)) > c.front.cfg.MaxBodies {
		return fault("RequestThrottled", "Too many large requests are being read at this moment.")
	}
	return nil
}

// release lets go of the body. It may be called again.
func (c *call) release() {
	if c.body != nil {
		c.body.free()
		c.front.bodies.Add(-c.held)
		c.body, c.held = nil, 0
	}
}

func (c *call) control() *http.ResponseController { return http.NewResponseController(c.w) }

// context is that of the action: it tells who asks, and ends with the client.
func (c *call) context() context.Context {
	return queue.WithCaller(c.r.Context(), c.caller.id)
}

// gone tells whether nobody waits for an answer.
func (c *call) gone(err error) bool {
	return c.r.Context().Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

func (c *call) answer(out any) {
	b := newBuffer()
	defer b.free()
	var err error
	if b.bytes, err = c.speaks.encode(b.bytes, c.action, out, c.id); err != nil {
		c.refuse(err)
		return
	}
	c.write(http.StatusOK, b.bytes)
}

// refuse answers with an error. What is not the client's doing is logged here, the
// only place.
func (c *call) refuse(err error) {
	f := asFault(err)
	code, status, sender := f.Describe()
	side := "Sender"
	if !sender {
		side = "Receiver"
		action := "none"
		if c.action != nil {
			action = c.action.name
		}
		c.front.cfg.Logger.Error("sqsapi: an action failed", "action", action, "request", c.id, "error", err)
	}
	c.w.Header().Set("X-Amzn-Query-Error", code+";"+side)
	b := newBuffer()
	defer b.free()
	b.bytes = c.speaks.refuse(b.bytes, f, c.id)
	c.write(status, b.bytes)
}

func (c *call) write(status int, body []byte) {
	h := c.w.Header()
	h["X-Amzn-Requestid"] = []string{c.id}
	h.Set("Content-Type", c.speaks.contentType())
	h.Set("Content-Length", fmt.Sprint(len(body)))
	c.w.WriteHeader(status)
	c.w.Write(body) // an error: the client has gone
}

// asFault gives every error the shape that clients know.
func asFault(err error) *queue.Fault {
	var f *queue.Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault("ServiceUnavailable", "The server is closing, or the request took too long.")
	}
	return fault("InternalFailure", "The request failed on the server. Its log tells why.")
}

func fault(shape, format string, args ...any) *queue.Fault {
	return &queue.Fault{Shape: shape, Message: fmt.Sprintf(format, args...)}
}

// printable makes what a client wrote fit for an error.
func printable(s string) string {
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	b, err := json.Marshal(strings.ToValidUTF8(s, "?"))
	if err != nil {
		return "?"
	}
	return string(b)
}

// requestID makes a random UUID. It is a name for logs, not a secret.
func requestID() string {
	var raw [16]byte
	for i := range 2 {
		v := rand.Uint64()
		for j := range 8 {
			raw[8*i+j] = byte(v >> (8 * j))
		}
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	var b [36]byte
	hex.Encode(b[:], raw[:4])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	hex.Encode(b[9:], raw[4:6])
	hex.Encode(b[14:], raw[6:8])
	hex.Encode(b[19:], raw[8:10])
	hex.Encode(b[24:], raw[10:])
	return string(b[:])
}
