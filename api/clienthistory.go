package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/forebayhq/forebay"
)

// History reads a page of what happened to jobs, or of what was sent.
func (c *Client) History(ctx context.Context, q HistoryQuery) (v HistoryList, err error) {
	return v, c.call(ctx, http.MethodGet, historyPath+"?"+q.values().Encode(), nil, &v)
}

// ReplayHistory begins to send again what was sent.
func (c *Client) ReplayHistory(ctx context.Context, r HistoryReplay) (v Replaying, err error) {
	return v, c.call(ctx, http.MethodPost, historyPath+"/replay", r, &v)
}

// maxItem bounds an item that is read: a payload, as base64, with what is around it.
const maxItem = 2*forebay.MaxPayloadBytes + 64<<10

// AllHistory reads all of it, item by item, in one call that has no end by time but ctx.
func (c *Client) AllHistory(ctx context.Context, q HistoryQuery, each func(*HistoryItem) error) error {
	const op = "api: GET " + historyPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+historyPath+"?"+q.values().Encode(), nil)
	if err != nil {
		return forebay.Errorf(forebay.CodeInvalid, op, "%w", err)
	}
	req.Header.Set("Accept", ndjson)
	if c.secret != "" {
		req.Header.Set("Authorization", "Bearer "+c.secret)
	}
	unhurried := *c.http
	unhurried.Timeout = 0
	resp, err := unhurried.Do(req)
	if err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, op, "no server answers at %s: %w", c.base, err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != ndjson {
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return forebay.Errorf(forebay.CodeUnavailable, op, "%w", err)
		}
		return errorOf(op, resp, b)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxItem)
	for lines.Scan() {
		var one struct {
			HistoryItem
			Error *Problem `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return forebay.Errorf(forebay.CodeUnavailable, op, "a line of the answer cannot be read: %w", err)
		}
		if one.Error != nil {
			return forebay.Errorf(one.Error.Code, "", "%s", one.Error.Detail)
		}
		if err := each(&one.HistoryItem); err != nil {
			return err
		}
	}
	if err := errors.Join(lines.Err(), ctx.Err()); err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, op, "%w", err)
	}
	return nil
}
