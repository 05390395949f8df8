package ingest

import (
	"net/http"
	"strings"
	"sync"
)

// route is one way in.
type route struct {
	dialect *dialect
	own     bool // our own answers; else those that Segment's SDKs expect
	one     bool // a single object is answered by its message id
	wrapped bool // a single object may be an envelope around a batch
}

// entry is a route as a handler. See together.go for its other way.
type entry struct {
	edge   *Edge
	route  route
	sheafs sync.Pool // of *sheaf
}

// ServeHTTP serves a request. Whatever happens, the call's buffers are released after
// the answer was written. A client that goes away stops nothing: what has arrived is
// stored, within the time that storing may take.
func (n *entry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer Unwatch(r)()
	c := n.call(w, r)
	defer c.release()
	p := c.read(n.route)
	if p == nil {
		p = c.stored(c.store(n.edge.deadlines.Next()))
	}
	n.answer(c, p)
}

func (n *entry) call(w http.ResponseWriter, r *http.Request) *call {
	d := n.route.dialect
	if n.route.own && isCloudType(r.Header) {
		d = cloudDialect
	}
	return n.edge.newCall(w, r, d)
}

// answer answers a call that was stored, or that has a problem.
func (n *entry) answer(c *call, p *problem) {
	status := http.StatusAccepted
	switch {
	case p != nil:
		status = p.status
		p.write(c.w, n.route.own)
	case n.route.own:
		c.answer(n.route)
	default:
		status = http.StatusOK
		c.answerSegment()
	}
	n.edge.cfg.Observer.Request(c.dialect.name, status, n.edge.cfg.Now().Sub(c.received))
}

// isCloudType tells CloudEvents by their headers; without those the members tell.
func isCloudType(h http.Header) bool {
	if isBinaryCloud(h) {
		return true
	}
	t := h["Content-Type"]
	return len(t) > 0 && strings.HasPrefix(t[0], "application/cloudevents")
}

// read takes the request as far as the store. A problem means that the request is
// refused as a whole.
func (c *call) read(rt route) *problem {
	e := c.edge
	e.allowOrigin(c.w, c.r)
	if p := e.gate.check(c.received); p != nil {
		return p
	}
	known, p := c.authenticate(secretOf(c.r))
	if p != nil {
		return p
	}
	if p := c.readBody(); p != nil {
		return p
	}
	if p := c.cut(rt); p != nil {
		return p
	}
	if !known {
		if p := c.authenticateBody(); p != nil {
			return p
		}
	}
	if p := c.spend(len(c.items)); p != nil {
		return p
	}
	if p := c.judge(); p != nil {
		return c.refund(p)
	}
	return nil
}

// stored ends what store or settle began.
func (c *call) stored(p *problem) *problem {
	if p != nil {
		return c.refund(p)
	}
	c.order()
	c.observe()
	return nil
}

// cut finds the items of the body.
func (c *call) cut(rt route) *problem {
	if isBinaryCloud(c.r.Header) && rt.own {
		return c.cutBinaryCloud()
	}
	body, p := c.decode()
	if p != nil {
		return p
	}
	return c.frame(body, rt.wrapped)
}

// source is what an event's Source says: the key's name and the dialect.
func (c *call) source(d *dialect) string {
	if c.key.Name == "" {
		return d.name
	}
	return c.key.Name + "/" + d.name
}

func (c *call) observe() {
	verdict, name := c.edge.cfg.Observer.Verdict, c.dialect.name
	plain := c.accepted
	for i := range c.results {
		r := &c.results[i]
		verdict(name, r.Status, r.Code)
		if r.Status == Accepted {
			plain--
		}
	}
	for range plain {
		verdict(name, Accepted, "")
	}
}
