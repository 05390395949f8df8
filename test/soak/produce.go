//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// producer sends what users send, and repeats it with the same id until it is answered.
type producer struct {
	b     *book
	s     *stand
	round string // ids begin with it
	rng   *rand.Rand
	n     int
	name  string
	home  int // the node that takes its events: two of them would be two queues while SQS is away
}

func (p *producer) id(kind string) string {
	p.n++
	return fmt.Sprintf("%s-%s%s-%d", p.round, p.name, kind, p.n)
}

// pause is between two requests of one producer.
func (p *producer) pause(ctx context.Context, mean time.Duration) bool {
	return rest(ctx, time.Duration(p.rng.ExpFloat64()*float64(mean)))
}

// surely repeats a request until it is answered well; false: in all its time it was not.
func (p *producer) surely(ctx context.Context, method, path string, in, out any) bool {
	for {
		nodes := p.s.apis(path)
		err := ask(ctx, method, nodes[p.rng.IntN(len(nodes))].url()+path, in, out)
		switch code := said(err); {
		case err == nil:
			return true
		case code != 0 && code < 500 && code != http.StatusTooManyRequests:
			p.refusal(path, err)
			return false
		}
		p.b.count(func(c *counts) { c.Retries++ })
		if !rest(ctx, 200*time.Millisecond) {
			return false
		}
	}
}

func (p *producer) refusal(path string, err error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	p.b.find(time.Now(), "request", path, "it was refused: %v", err)
}

// apis are the nodes that take such a request.
func (s *stand) apis(path string) []*node {
	if (s.engine == "redis" || s.engine == "postgres") && strings.HasPrefix(path, "/api/jobs") {
		return s.nodes
	}
	return s.nodes[:1]
}

// edge is the node that takes events from a producer.
func (s *stand) edge(home int) *node {
	if s.engine == "sqs" {
		return s.nodes[home%len(s.nodes)]
	}
	return s.nodes[0]
}

// events sends the events of some users, one after the other, in batches, in the words of
// Segment, some twice, some that are wrong, some that the database will refuse.
func (p *producer) events(ctx, patient context.Context, users int, mean time.Duration) {
	places := make([]int, users)
	for p.pause(ctx, mean) {
		var some []event
		n := 1
		if p.rng.IntN(3) > 0 {
			n += p.rng.IntN(40)
		}
		segment := p.rng.IntN(5) == 0
		for range n {
			u := p.rng.IntN(users)
			e := event{id: p.id("e"), user: fmt.Sprintf("%s-%s-u%d", p.round, p.name, u), place: places[u]}
			places[u]++
			switch k := p.rng.IntN(300); {
			case k == 0:
				e.poison = true
			case k <= 2 && !segment:
				e.bad = true
			}
			some = append(some, e)
		}
		if p.post(patient, some, segment) {
			p.b.ackEvents(some)
			good := slices.DeleteFunc(slices.Clone(some), func(e event) bool { return e.bad })
			if p.rng.IntN(20) == 0 && len(good) > 0 && p.post(patient, good, segment) {
				p.b.count(func(c *counts) { c.Duplicates += len(good) })
			}
		}
	}
}

// post sends events until they are taken.
func (p *producer) post(ctx context.Context, some []event, segment bool) bool {
	path, body := "/ingest/batch", native(some)
	if segment {
		path, body = "/v1/batch", segmentOf(some)
	}
	for {
		status, answer, err := call(ctx, http.MethodPost, p.s.edge(p.home).url()+path, body)
		if err == nil && status/100 == 2 {
			p.verdicts(some, answer, segment)
			return true
		}
		if err == nil && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout {
			p.refusal(path, fmt.Errorf("%d: %.300s", status, answer))
			return false
		}
		p.b.count(func(c *counts) { c.Retries++ })
		if !rest(ctx, 200*time.Millisecond) {
			return false
		}
	}
}

// verdicts looks that what is wrong was told to be, and nothing else.
func (p *producer) verdicts(some []event, answer []byte, segment bool) {
	if segment {
		return
	}
	var told struct{ Accepted, Duplicate, Rejected int }
	bad := 0
	for _, e := range some {
		if e.bad {
			bad++
		}
	}
	if err := json.Unmarshal(answer, &told); err != nil || told.Rejected != bad || told.Accepted+told.Duplicate != len(some)-bad {
		p.refusal("/ingest/batch", fmt.Errorf("%d events, %d of them wrong, were answered with %.300s", len(some), bad, answer))
	}
}

func native(some []event) []byte {
	var b bytes.Buffer
	for _, e := range some {
		kind := "soak"
		switch {
		case e.poison:
			kind = "poison"
		case e.bad:
			kind = ""
		}
		fmt.Fprintf(&b, `{"eventType":%q,"eventId":%q,"userId":%q,"payload":{"place":%d}}`+"\n", kind, e.id, e.user, e.place)
	}
	return b.Bytes()
}

func segmentOf(some []event) []byte {
	var b bytes.Buffer
	b.WriteString(`{"batch":[`)
	for i, e := range some {
		if i > 0 {
			b.WriteByte(',')
		}
		kind := "soak"
		if e.poison {
			kind = "poison"
		}
		fmt.Fprintf(&b, `{"type":"track","event":%q,"messageId":%q,"userId":%q,"properties":{"place":%d}}`, kind, e.id, e.user, e.place)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}
