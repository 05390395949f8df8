// Package demo sends sample traffic to a running server and shows what becomes of
// it: an ordinary day, then a campaign with fifty times the events, and in between
// all that goes wrong in the field.
//
// It promises that its numbers are measured: what it calls accepted was answered
// with 202, and it ends well only if every accepted event was written or became a
// dead letter.
//
// It refuses to know how a server works: it sees what any client sees.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

//go:embed traffic.ndjson
var traffic []byte

// client sends events and keeps count of the answers.
type client struct {
	url  string
	http *http.Client

	mu        sync.Mutex
	seen      Seen
	latencies []time.Duration
}

// Seen is what the clients were answered.
type Seen struct {
	Accepted  int      `json:"accepted"`
	Duplicate int      `json:"duplicate"`
	Rejected  int      `json:"rejected"`
	Failed    int      `json:"failed"` // no answer, or one that is no verdict
	Reasons   []Reason `json:"reasons"`
}

// Reason is why events were rejected, with the words of the answer.
type Reason struct {
	Code  string `json:"code"`
	Text  string `json:"text"`
	Count int    `json:"count"`
}

func newClient(url string, conns int) *client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = conns
	return &client{url: url, http: &http.Client{Transport: t, Timeout: 10 * time.Second}}
}

// sample is one request of the traffic.
type sample struct {
	path   string
	body   []byte
	events int // of the Segment dialect, whose answers do not count
}

// post sends a request and counts what the answer says.
func (c *client) post(ctx context.Context, s sample) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+s.path, bytes.NewReader(s.body))
	if err != nil {
		c.failed()
		return
	}
	req.Header.Set("Content-Type", "application/json")
	begun := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		c.failed()
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	took := time.Since(begun)
	if err != nil {
		c.failed()
		return
	}
	c.count(s, resp, body, took)
}

func (c *client) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Failed++
}

// verdict is any answer of the edge: the native single and batch ones, and
// problem+json.
type verdict struct {
	MessageID string `json:"messageId"`
	Success   bool   `json:"success"`   // of the Segment dialect, which has no more to say
	Duplicate any    `json:"duplicate"` // true of one event, a number of a batch
	Accepted  int    `json:"accepted"`
	Rejected  int    `json:"rejected"`
	Results   []struct {
		Status, Code, Message, Pointer string
	} `json:"results"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (c *client) count(s sample, resp *http.Response, body []byte, took time.Duration) {
	var v verdict
	err := json.Unmarshal(body, &v)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latencies = append(c.latencies, took)
	switch {
	case err != nil || resp.StatusCode >= 500:
		c.seen.Failed++
	case resp.StatusCode >= 400:
		c.seen.Rejected++
		c.reason(v.Code, v.Detail)
	case v.MessageID != "" && v.Duplicate == true:
		c.seen.Duplicate++
	case v.MessageID != "":
		c.seen.Accepted++
	case v.Success:
		bad, _ := strconv.Atoi(resp.Header.Get("X-Forebay-Rejected"))
		c.seen.Accepted += s.events - bad
		c.seen.Rejected += bad
	default:
		c.seen.Accepted += v.Accepted
		c.seen.Rejected += v.Rejected
		if n, ok := v.Duplicate.(float64); ok {
			c.seen.Duplicate += int(n)
		}
	}
	for _, r := range v.Results {
		if r.Status == "rejected" {
			c.reason(r.Code, r.Message)
		}
	}
}

func (c *client) reason(code, text string) {
	for i := range c.seen.Reasons {
		if c.seen.Reasons[i].Code == code {
			c.seen.Reasons[i].Count++
			return
		}
	}
	c.seen.Reasons = append(c.seen.Reasons, Reason{code, text, 1})
}

// ordinary gives the i-th event of ordinary traffic: the sample events, over and
// over, each time for other users.
func ordinary(events [][]byte, i int) sample {
	e := events[i%len(events)]
	from, to := []byte(`"userId":"`), fmt.Appendf(nil, `"userId":"%d-`, i/len(events)%97)
	return sample{path: "/ingest/event", body: bytes.Replace(e, from, to, 1)}
}

// poison ends the id of the event that the database of the demo refuses.
const poison = "-negative-total"

// awkward is what a back end meets in the field: other dialects, mistakes of every
// kind, a retry whose first answer was lost, and one order that the database does
// not take.
func awkward(run string) []sample {
	native := func(body string) sample { return sample{path: "/ingest/event", body: []byte(body)} }
	order := `{"eventId":"` + run + `-order","eventType":"order_placed","userId":"u-1042","payload":{"order":"o-1","total":19.99}}`
	return []sample{
		native(order),
		native(order), // the phone did not hear the 202 and sends it again
		native(`{"payload":{"screen":"home"},"userId":"u-1"}`),
		native(`{"eventType":"an_event_type_that_somebody_made_much_too_long_by_mistake","payload":{}}`),
		native(`{"eventType":"cart_updated","payload":"not an object"}`),
		native(`{"eventType":"app_open","payload":{"screen":"home"`),
		native(`{"eventType":42,"payload":{}}`),
		{path: "/ingest/batch", body: []byte(`[{"eventType":"search","payload":{"q":"boots"}},{"eventType":"search"},{"eventType":"search","payload":{"q":"coat"}}]`)},
		{path: "/v1/batch", events: 1, body: []byte(`{"batch":[{"type":"track","event":"Order Completed","userId":"u-7","messageId":"` + run +
			`-segment","properties":{"revenue":39.95}}],"sentAt":"2026-01-01T00:00:00Z"}`)},
		native(`{"eventId":"` + run + poison + `","eventType":"order_placed","userId":"u-9","payload":{"order":"o-2","total":-5}}`),
	}
}
