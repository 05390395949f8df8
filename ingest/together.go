package ingest

import (
	"net/http"

	"github.com/forebayhq/forebay"
)

// sheaf is what several requests come to.
type sheaf struct {
	calls    []*call
	problems []*problem
	msgs     []forebay.Message
}

// ServeTogether does for each request what ServeHTTP does, but sends at once the events
// of all requests that have no bad rows. An error of that is an error of each of them,
// as it would have been if each had been sent in the same moment.
func (n *entry) ServeTogether(ws []http.ResponseWriter, rs []*http.Request) {
	s, _ := n.sheafs.Get().(*sheaf)
	if s == nil {
		s = &sheaf{}
	}
	sent := false
	defer func() {
		if s.release(); sent { // or the store may go on reading the messages
			s.forget()
			n.sheafs.Put(s)
		}
	}()
	for i, r := range rs {
		c := n.call(ws[i], r)
		s.calls, s.problems = append(s.calls, c), append(s.problems, c.read(n.route))
		if s.problems[i] == nil && c.good() {
			s.msgs = append(s.msgs, c.msgs...)
		}
	}
	sent = n.send(s) == nil
	for i, c := range s.calls {
		n.answer(c, s.problems[i])
	}
}

// send sends what is good, and the rest as ServeHTTP does.
func (n *entry) send(s *sheaf) (err error) {
	ctx := n.edge.deadlines.Next()
	var sent []forebay.SendResult
	if len(s.msgs) > 0 {
		sent, err = n.edge.send(ctx, s.msgs)
	}
	for i, c := range s.calls {
		p := &s.problems[i]
		switch {
		case *p != nil:
		case !c.good():
			*p = c.stored(c.store(ctx))
		case err != nil:
			*p = c.stored(c.failed(err))
		default:
			its := sent[:len(c.msgs)]
			sent = sent[len(its):]
			*p = c.stored(c.settle(ctx, its))
		}
	}
	return err
}

// good tells whether all that a request has is to be sent.
func (c *call) good() bool { return len(c.bad) == 0 && len(c.msgs) > 0 }

func (s *sheaf) release() {
	for _, c := range s.calls {
		c.release()
	}
}

// forget keeps the room that was taken.
func (s *sheaf) forget() {
	clear(s.calls)
	clear(s.problems)
	clear(s.msgs)
	s.calls, s.problems, s.msgs = s.calls[:0], s.problems[:0], s.msgs[:0]
}
