package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// maxAnswer bounds what a client reads.
const maxAnswer = 64 << 20

// Client calls a server's admin API. Its errors are *forebay.Error with the codes
// that the server gave; CodeUnavailable where no server answers.
type Client struct {
	base   string
	secret string
	http   *http.Client
}

// NewClient makes a client of the server at a URL like http://127.0.0.1:8080. The
// secret is an admin key or the token of the server's start; empty: none is shown.
func NewClient(base, secret string, c *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, forebay.Errorf(forebay.CodeInvalid, "api: client", "%q is not like http://127.0.0.1:8080", base)
	}
	if c == nil {
		c = http.DefaultClient
	}
	return &Client{strings.TrimRight(base, "/"), secret, c}, nil
}

// Overview shows everything at a glance.
func (c *Client) Overview(ctx context.Context) (v Overview, err error) {
	return v, c.call(ctx, http.MethodGet, "/api/overview", nil, &v)
}

// Ready tells whether the server can accept events.
func (c *Client) Ready(ctx context.Context) (v Readiness, err error) {
	return v, c.call(ctx, http.MethodGet, "/readyz", nil, &v)
}

// Queues lists all queues.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	var v QueueList
	return v.Items, c.call(ctx, http.MethodGet, "/api/queues", nil, &v)
}

// Queue shows one queue.
func (c *Client) Queue(ctx context.Context, name string) (v Queue, err error) {
	return v, c.call(ctx, http.MethodGet, queuePathOf(name), nil, &v)
}

// Pause and Resume stop and start the handing out of a queue's messages.
func (c *Client) Pause(ctx context.Context, queue string) (v Limits, err error) {
	return v, c.call(ctx, http.MethodPost, queuePathOf(queue)+"/pause", nil, &v)
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, queue string) (v Limits, err error) {
	return v, c.call(ctx, http.MethodPost, queuePathOf(queue)+"/resume", nil, &v)
}

// Limits shows the limits of a queue.
func (c *Client) Limits(ctx context.Context, queue string) (v Limits, err error) {
	return v, c.call(ctx, http.MethodGet, queuePathOf(queue)+"/limits", nil, &v)
}

// SetLimits replaces the limits of a queue.
func (c *Client) SetLimits(ctx context.Context, queue string, l Limits) (v Limits, err error) {
	return v, c.call(ctx, http.MethodPut, queuePathOf(queue)+"/limits", l, &v)
}

// SetConcurrency sets how many deliveries of a queue the server works on at once.
func (c *Client) SetConcurrency(ctx context.Context, queue string, s SetConcurrency) (v Concurrency, err error) {
	return v, c.call(ctx, http.MethodPut, queuePathOf(queue)+"/concurrency", s, &v)
}

// Purge drops all messages of a queue that are not active.
func (c *Client) Purge(ctx context.Context, queue string) (v Purged, err error) {
	return v, c.call(ctx, http.MethodPost, queuePathOf(queue)+"/purge", Purge{Confirm: queue}, &v)
}

// Peek looks at messages of a queue without a hand-out; after is Next of the page
// before, or empty.
func (c *Client) Peek(ctx context.Context, queue, after string, limit int) (v PeekList, err error) {
	return v, c.call(ctx, http.MethodGet, queuePathOf(queue)+"/messages"+query("after", after, "limit", number(int64(limit))), nil, &v)
}

// Dead lists dead letters, newest first; before is Next of the page before, or 0.
func (c *Client) Dead(ctx context.Context, f DeadFilter, before int64, limit int) (v DeadList, err error) {
	q := query("queue", f.Queue, "id", f.ID, "code", f.Code, "group", f.Group, "before", number(before), "limit", number(int64(limit)))
	return v, c.call(ctx, http.MethodGet, "/api/dead"+q, nil, &v)
}

// DeadLetter shows one dead letter with its payload.
func (c *Client) DeadLetter(ctx context.Context, seq int64) (v DeadLetter, err error) {
	return v, c.call(ctx, http.MethodGet, "/api/dead/"+strconv.FormatInt(seq, 10), nil, &v)
}

// ReplayDead sends dead letters again.
func (c *Client) ReplayDead(ctx context.Context, r DeadReplay) (v Outcome, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/dead/replay", r, &v)
}

// DiscardDead removes dead letters for good.
func (c *Client) DiscardDead(ctx context.Context, d DeadDiscard) (v Outcome, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/dead/discard", d, &v)
}

// Bad lists bad rows, newest first; before is Next of the page before, or 0.
func (c *Client) Bad(ctx context.Context, f BadFilter, before int64, limit int) (v BadList, err error) {
	q := query("code", f.Code, "key", f.KeyID, "before", number(before), "limit", number(int64(limit)))
	return v, c.call(ctx, http.MethodGet, "/api/bad"+q, nil, &v)
}

// BadRow shows one bad row with its bytes.
func (c *Client) BadRow(ctx context.Context, seq int64) (v BadRow, err error) {
	return v, c.call(ctx, http.MethodGet, "/api/bad/"+strconv.FormatInt(seq, 10), nil, &v)
}

// ReplayBad validates bad rows again and sends those that pass.
func (c *Client) ReplayBad(ctx context.Context, r BadReplay) (v Outcome, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/bad/replay", r, &v)
}

// DiscardBad removes bad rows for good.
func (c *Client) DiscardBad(ctx context.Context, d BadDiscard) (v Outcome, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/bad/discard", d, &v)
}

// Event tells where an event is.
func (c *Client) Event(ctx context.Context, id string) (v EventPlace, err error) {
	return v, c.call(ctx, http.MethodGet, "/api/events/"+url.PathEscape(id), nil, &v)
}

// Keys lists all keys.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	var v KeyList
	return v.Items, c.call(ctx, http.MethodGet, "/api/keys", nil, &v)
}

// AddKey adds a key and gives its secret, this once.
func (c *Client) AddKey(ctx context.Context, k NewKey) (v AddedKey, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/keys", k, &v)
}

// RotateKey gives a key another secret; the one before stays good for as long as keep says.
func (c *Client) RotateKey(ctx context.Context, id string, keep time.Duration) (v AddedKey, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/keys/"+url.PathEscape(id)+"/rotate", RotateKey{Duration(keep)}, &v)
}

// RevokeKey ends a key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) (v Key, err error) {
	return v, c.call(ctx, http.MethodDelete, "/api/keys/"+url.PathEscape(id), nil, &v)
}

// AccessKeys lists the keys that SQS clients sign with.
func (c *Client) AccessKeys(ctx context.Context) ([]AccessKey, error) {
	var v AccessKeyList
	return v.Items, c.call(ctx, http.MethodGet, "/api/sqs/keys", nil, &v)
}

// AddAccessKey adds one and gives its secret, this once.
func (c *Client) AddAccessKey(ctx context.Context, k NewAccessKey) (v AddedAccessKey, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/sqs/keys", k, &v)
}

// RevokeAccessKey ends one at once.
func (c *Client) RevokeAccessKey(ctx context.Context, id string) (v AccessKey, err error) {
	return v, c.call(ctx, http.MethodDelete, "/api/sqs/keys/"+url.PathEscape(id), nil, &v)
}

func queuePathOf(name string) string { return "/api/queues/" + url.PathEscape(name) }

// number writes n, and 0 as "not said".
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	return c.callWith(ctx, method, path, "", body, into)
}

// callWith calls with an idempotency key; empty: none is shown.
func (c *Client) callWith(ctx context.Context, method, path, key string, body, into any) error {
	header := http.Header{}
	if key != "" {
		header.Set(idempotencyKey, key)
	}
	if body == nil {
		return c.send(ctx, method, path, header, nil, into)
	}
	b, err := json.Marshal(body)
	if err != nil {
		return forebay.Errorf(forebay.CodeInvalid, "api: "+method+" "+path, "%w", err)
	}
	header.Set("Content-Type", "application/json")
	return c.send(ctx, method, path, header, bytes.NewReader(b), into)
}

func (c *Client) send(ctx context.Context, method, path string, header http.Header, body io.Reader, into any) error {
	op := "api: " + method + " " + path
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return forebay.Errorf(forebay.CodeInvalid, op, "%w", err)
	}
	req.Header = header
	req.Header.Set("User-Agent", clientAgent)
	if c.secret != "" {
		req.Header.Set("Authorization", "Bearer "+c.secret)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // the address stands in the text already
		}
		return forebay.Errorf(forebay.CodeUnavailable, op, "no server answers at %s: %w", c.base, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, op, "%w", err)
	}
	if resp.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(b, into); err == nil {
			return nil // also /readyz with 503, which is an answer
		}
	}
	return errorOf(op, resp, b)
}

// errorOf makes an error of an answer that is not what was asked for.
func errorOf(op string, resp *http.Response, body []byte) error {
	var p Problem
	if resp.Header.Get("Content-Type") != problemType || json.Unmarshal(body, &p) != nil || p.Code == "" {
		e := forebay.Errorf(forebay.CodeUnavailable, op, "the answer (%s) is not one of Forebay's admin API", resp.Status)
		e.Hint = "is this the address of a forebay server?"
		return e
	}
	e := forebay.Errorf(p.Code, "", "%s", p.Detail) // the server's words say what it was doing
	e.Field, e.Hint = p.Field, p.Hint
	for _, w := range p.Errors {
		if !strings.Contains(p.Detail, w.Message) { // else it is told already
			e.Text += "; " + w.In + w.Pointer + ": " + w.Message
		}
	}
	for _, one := range p.Problems {
		e.Text += "\n" + flow.Problem(one).String()
	}
	return e
}
