package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

const (
	streamIdle  = 45 * time.Second // three pings missed: the connection is dead
	streamTries = 10               // in a row without an event, before it gives up
	maxLine     = 4 << 20          // of a stream
)

// errAgain means that a stream broke off and is to be resumed.
var errAgain = errors.New("the stream broke off")

// WatchJob follows a job until its end and gives it back as it ended. A stream that
// breaks off is resumed. tell gets each event but pings, in order; its error ends it.
func (c *Client) WatchJob(ctx context.Context, id string, tell func(JobUpdate) error) (Job, error) {
	var last *Job
	w := &watch{c: c, path: jobPathOf(id) + streamSuffix, retry: 2 * time.Second, take: func(event, id string, data []byte) error {
		u := JobUpdate{Event: event, ID: id}
		if err := u.read(data); err != nil {
			return unreadable(err)
		}
		if u.Job != nil {
			last = u.Job
		}
		return tell(u)
	}}
	if err := w.follow(ctx); err != nil {
		return Job{}, err
	}
	if w.over || last == nil { // its end was told in a stream before
		return c.Job(ctx, id)
	}
	return *last, nil
}

func unreadable(err error) error {
	return forebay.Errorf(forebay.CodeUnavailable, "api: stream", "an event cannot be read: %w", err)
}

// watch follows something over its streams.
type watch struct {
	c     *Client
	path  string
	take  func(event, id string, data []byte) error
	retry time.Duration
	place string // the last id
	began bool   // something came, in any stream
	heard bool   // something came in this stream
	over  bool   // nothing is left to tell
}

// follow reads streams until the end of what they show.
func (w *watch) follow(ctx context.Context) error {
	for tries := 0; ; {
		err := w.once(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case !errors.Is(err, errAgain) && forebay.CodeOf(err) != forebay.CodeUnavailable && forebay.CodeOf(err) != forebay.CodeClosed:
			return err
		}
		if tries++; w.heard {
			tries, w.heard = 0, false
		}
		if tries == streamTries || !w.began && tries > 0 && !errors.Is(err, errAgain) {
			return err
		}
		select {
		case <-time.After(w.retry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// once follows one stream; nil: it has come to its end.
func (w *watch) once(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path := w.path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.c.base+path, nil)
	if err != nil {
		return forebay.Errorf(forebay.CodeInvalid, "api: GET "+path, "%w", err)
	}
	if w.c.secret != "" {
		req.Header.Set("Authorization", "Bearer "+w.c.secret)
	}
	if w.place != "" {
		req.Header.Set("Last-Event-ID", w.place)
	}
	h := *w.c.http
	h.Timeout = 0 // of the whole answer
	idle := time.AfterFunc(streamIdle, cancel)
	defer idle.Stop()
	resp, err := h.Do(req)
	if err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, "api: GET "+path, "no server answers at %s: %w", w.c.base, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNoContent:
		w.over = true
		return nil
	case resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return errAgain
		}
		return errorOf("api: GET "+path, resp, body)
	}
	return w.events(resp.Body, func() { idle.Reset(streamIdle) })
}

// events reads what a stream says, as the standard of server-sent events has it.
func (w *watch) events(body io.Reader, alive func()) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	var event, id, data string
	for lines.Scan() {
		alive()
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			data += value
		case "retry":
			w.retry = retryTime(value, w.retry)
		case "":
			if value != "" || event == "" {
				break // a comment, or nothing
			}
			ended, err := w.hear(event, id, data)
			if err != nil || ended {
				return err
			}
			event, id, data = "", "", ""
		}
	}
	return errAgain
}

func (w *watch) hear(event, id, data string) (ended bool, err error) {
	w.heard, w.began = true, true
	if id != "" {
		w.place = id
	}
	if event == "ping" {
		return false, nil
	}
	return event == "done", w.take(event, id, []byte(data))
}
