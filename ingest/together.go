package ingest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/forebayhq/forebay"
)

// sheaf is what several requests come to.
type sheaf struct {
	calls    []*call
	problems []*problem
	good     []int             // of the calls: those of which all is to be sent
	msgs     []forebay.Message // of those
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
			s.good, s.msgs = append(s.good, i), append(s.msgs, c.msgs...)
		}
	}
	sent = n.send(s) == nil
	for i, c := range s.calls {
		n.answer(c, s.problems[i])
	}
}

// Alone is for the front: no request needs to be.
func (*entry) Alone(*http.Request) bool { return false }

// send sends what is good, while the rest is stored as ServeHTTP does.
func (n *entry) send(s *sheaf) (err error) {
	ctx := n.edge.deadlines.Next()
	var sent []forebay.SendResult
	defer n.sendRest(ctx, s)()
	if len(s.msgs) > 0 {
		sent, err = n.edge.send(ctx, s.msgs)
	}
	for _, i := range s.good {
		c, p := s.calls[i], &s.problems[i]
		if err != nil {
			*p = c.stored(c.failed(err))
			continue
		}
		its := sent[:len(c.msgs)]
		sent = sent[len(its):]
		*p = c.stored(c.settle(ctx, its))
	}
	return err
}

// sendRest begins to store what has bad rows, each by itself, and gives a function that
// waits for it.
func (n *entry) sendRest(ctx context.Context, s *sheaf) (wait func()) {
	var running sync.WaitGroup
	var failed atomic.Value // what a goroutine panicked with, for whoever is to see it
	for i, c := range s.calls {
		if s.problems[i] != nil || c.good() {
			continue
		}
		running.Go(func() {
			defer func() {
				if err := recover(); err != nil {
					failed.Store(fmt.Sprint(err))
				}
			}()
			s.problems[i] = c.stored(c.store(ctx))
		})
	}
	return func() {
		running.Wait()
		if err := failed.Load(); err != nil {
			panic(err)
		}
	}
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
	s.calls, s.problems, s.good, s.msgs = s.calls[:0], s.problems[:0], s.good[:0], s.msgs[:0]
}
