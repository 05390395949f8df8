package ingest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is the verdict on one event.
type Status string

const (
	Accepted  Status = "accepted"  // it is on the queue
	Duplicate Status = "duplicate" // it was there already; nothing was stored
	Rejected  Status = "rejected"  // it is in the bad-rows store
)

// Result is what became of one event. An accepted one has a code only where
// something about it was odd.
type Result struct {
	Index   int    `json:"index"`
	ID      string `json:"id,omitempty"`
	Status  Status `json:"status"`
	Code    string `json:"code,omitempty"`
	Pointer string `json:"pointer,omitempty"`
	Message string `json:"message,omitempty"`
}

func (r *Result) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"index":`...), int64(r.Index), 10)
	member := func(name, value string) {
		if value != "" {
			b = quote(append(b, name...), value)
		}
	}
	member(`,"id":`, r.ID)
	member(`,"status":`, string(r.Status))
	member(`,"code":`, r.Code)
	member(`,"pointer":`, r.Pointer)
	member(`,"message":`, r.Message)
	return append(b, '}')
}

// order sorts results by their place in the request. A duplicate says more than a
// remark on the same event.
func (c *call) order() {
	slices.SortStableFunc(c.results, func(a, b Result) int { return a.Index - b.Index })
	kept := c.results[:0]
	for i, r := range c.results {
		if i+1 < len(c.results) && c.results[i+1].Index == r.Index {
			continue
		}
		kept = append(kept, r)
	}
	c.results = kept
}

// answer writes the verdicts of our own routes.
func (c *call) answer(rt route) {
	b := c.wire[:0] // nobody reads the body any more
	if rt.one && c.single && c.rejected == 0 {
		b = c.appendOne(b)
	} else {
		b = c.appendMany(b)
	}
	c.send(http.StatusAccepted, append(b, '\n'))
	c.wire = b
}

// appendOne is the answer for a single event: its id, and what was odd.
func (c *call) appendOne(b []byte) []byte {
	id, r := c.msgs[0].ID, Result{}
	if len(c.results) > 0 {
		r = c.results[0]
		id = r.ID
	}
	b = quote(append(b, `{"messageId":`...), id)
	if r.Status == Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	if r.Code != "" {
		b = append(r.append(append(b, `,"results":[`...)), ']')
	}
	return append(b, '}')
}

func (c *call) appendMany(b []byte) []byte {
	count := func(name string, n int) {
		b = strconv.AppendInt(append(b, name...), int64(n), 10)
	}
	count(`{"accepted":`, c.accepted)
	count(`,"duplicate":`, c.duplicate)
	count(`,"rejected":`, c.rejected)
	b = append(b, `,"results":[`...)
	first := true
	add := func(r *Result) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = r.append(b)
	}
	all := strings.Contains(c.r.Header.Get("Prefer"), "return=representation")
	next, sent := 0, 0
	for i := range c.items {
		told := next < len(c.results) && c.results[next].Index == i
		if told {
			add(&c.results[next])
			next++
		}
		if sent < len(c.index) && c.index[sent] == i {
			if all && !told {
				add(&Result{Index: i, ID: c.msgs[sent].ID, Status: Accepted})
			}
			sent++
		}
	}
	return append(b, "]}"...)
}

// answerSegment is what SDKs expect. They read no verdicts; the count of bad rows
// is in a header for people who look.
func (c *call) answerSegment() {
	if c.rejected > 0 {
		c.w.Header().Set("X-Forebay-Rejected", strconv.Itoa(c.rejected))
	}
	c.send(http.StatusOK, append(c.wire[:0], `{"success":true}`+"\n"...))
}

// largeAnswer is what net/http keeps until a handler has returned. A longer answer
// goes to the client while the call still holds its part of the budget, which a
// client that does not read must not keep from the others.
const largeAnswer = 2 << 10

func (c *call) send(status int, b []byte) {
	c.w.Header()["Content-Type"] = jsonType
	if len(b) > largeAnswer {
		c.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	}
	c.w.WriteHeader(status)
	if len(b) <= largeAnswer {
		_, _ = c.w.Write(b) // a client that has gone needs no answer
		return
	}
	rc := http.NewResponseController(c.w)
	_ = rc.SetWriteDeadline(time.Now().Add(answerTime)) // where the writer can
	_, _ = c.w.Write(b)
	_ = rc.Flush()
	_ = rc.SetWriteDeadline(time.Time{})
}
