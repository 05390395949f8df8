package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Topic is an event of one of several streams over one connection.
type Topic struct {
	Topic int             `json:"topic" doc:"Which of those that were asked for, from 0."`
	Event string          `json:"event" doc:"As its own stream calls it; or over: it has ended, and all of it was seen; or fail: it cannot be followed, and data is the problem."`
	ID    string          `json:"id,omitempty" doc:"To resume this one from."`
	Data  json.RawMessage `json:"data,omitempty"`
}

// ServeTopics streams what several requests for streams would, over the one connection of
// r: each event of theirs as one called topic. A browser has six connections for a server,
// and a page shows more than that. serve answers the requests, which share r's context.
//
// A topic that ends, or cannot be followed, leaves the others alone; where one breaks off
// before its end all do, so that the client comes again and resumes each.
func (s *Streams) ServeTopics(w http.ResponseWriter, r *http.Request, topics []*http.Request, serve http.Handler) {
	c := &client{access: accessOf(r), w: w, rc: http.NewResponseController(w)}
	err := s.enter(c)
	if err == nil {
		defer s.leave(c)
		err = c.deadline(false, 0)
	}
	if err != nil {
		c.access.Fail(w, err)
		return
	}
	defer c.finish()
	if c.begin() != nil {
		return
	}
	ctx, breakOff := context.WithCancel(r.Context())
	defer breakOff()
	var writing sync.Mutex
	var open sync.WaitGroup
	for n, topic := range topics {
		p := &part{header: http.Header{}, tell: func(t Topic) error {
			writing.Lock()
			defer writing.Unlock()
			t.Topic = n
			if err := c.event("topic", "", t); err != nil {
				return err
			}
			return c.flush()
		}}
		open.Go(func() {
			serve.ServeHTTP(p, topic.WithContext(ctx))
			if p.end() != nil {
				breakOff()
			}
		})
	}
	open.Wait()
}

// part is the answer to one of the requests, told as topics. What is written at once are
// whole events, see client.flush; its deadlines are those of the connection that all share.
type part struct {
	header http.Header
	status int
	body   bytes.Buffer // of an answer that is no stream
	ended  bool
	tell   func(Topic) error
}

func (p *part) Header() http.Header { return p.header }

func (p *part) WriteHeader(status int) {
	if p.status == 0 {
		p.status = status
	}
}

func (p *part) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.status != http.StatusOK {
		return p.body.Write(b)
	}
	for event := range bytes.SplitSeq(b, []byte("\n\n")) {
		var t Topic
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			field, value, _ := bytes.Cut(line, []byte(": "))
			switch string(field) {
			case "event":
				t.Event = string(value)
			case "id":
				t.ID = string(value)
			case "data":
				t.Data = value
			}
		}
		if t.Event == "" {
			continue // when to come again, which the connection's own beginning says
		}
		p.ended = p.ended || t.Event == "done"
		if err := p.tell(t); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (p *part) FlushError() error                { return nil } // each event was, as it was told
func (p *part) SetWriteDeadline(time.Time) error { return nil }

// end tells how an answer ended that was no stream. An error: a stream has broken off.
func (p *part) end() error {
	switch {
	case p.ended:
		return nil
	case p.status == http.StatusNoContent:
		return p.tell(Topic{Event: "over"})
	case p.status == http.StatusOK || p.status == 0:
		return errBroken
	case json.Valid(p.body.Bytes()):
		return p.tell(Topic{Event: "fail", Data: p.body.Bytes()})
	}
	text, err := json.Marshal(map[string]any{"status": p.status, "title": http.StatusText(p.status)})
	if err != nil {
		return err
	}
	return p.tell(Topic{Event: "fail", Data: text})
}
