package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/forebayhq/forebay/flow"
)

const flowsPath = "/api/flows"

func flowPathOf(name string) string { return flowsPath + "/" + url.PathEscape(name) }

// Flows lists flows by name; after is Next of the page before.
func (c *Client) Flows(ctx context.Context, after string, limit int) (v FlowList, err error) {
	return v, c.call(ctx, http.MethodGet, flowsPath+query("after", after, "limit", number(int64(limit))), nil, &v)
}

// Flow shows a version of a flow, 0 for the latest.
func (c *Client) Flow(ctx context.Context, name string, version int) (v Flow, err error) {
	return v, c.call(ctx, http.MethodGet, flowPathOf(name)+query("version", number(int64(version))), nil, &v)
}

// PutFlow stores a file as the next version of a flow. A file that is not sound is
// refused with all that is wrong with it.
func (c *Client) PutFlow(ctx context.Context, name string, src []byte) (v PutFlow, err error) {
	return v, c.callFile(ctx, http.MethodPut, flowPathOf(name), src, &v)
}

// CheckFlow tells all that is wrong with a file, as the server knows handlers.
func (c *Client) CheckFlow(ctx context.Context, src []byte) (v CheckedFlow, err error) {
	return v, c.callFile(ctx, http.MethodPost, flowsPath+"/validate", src, &v)
}

// TryFlow tells what a run of a file would do; nothing is sent or stored.
func (c *Client) TryFlow(ctx context.Context, in TryFlow) (v TriedFlow, err error) {
	return v, c.call(ctx, http.MethodPost, flowsPath+"/dry-run", in, &v)
}

// FlowVersions lists the versions of a flow, newest first, those before one; 0: all.
func (c *Client) FlowVersions(ctx context.Context, name string, before, limit int) (v FlowVersions, err error) {
	return v, c.call(ctx, http.MethodGet, flowPathOf(name)+"/versions"+query("before", number(int64(before)), "limit", number(int64(limit))), nil, &v)
}

// DiffFlow tells what one version does otherwise than another; to 0: the latest, from
// 0: the one before.
func (c *Client) DiffFlow(ctx context.Context, name string, from, to int) (v FlowDiff, err error) {
	return v, c.call(ctx, http.MethodGet, flowPathOf(name)+"/diff"+query("from", number(int64(from)), "to", number(int64(to))), nil, &v)
}

// DiffFlowFile tells what a file does otherwise than a version; 0: the latest.
func (c *Client) DiffFlowFile(ctx context.Context, name string, from int, src []byte) (v FlowDiff, err error) {
	return v, c.callFile(ctx, http.MethodPost, flowPathOf(name)+"/diff"+query("from", number(int64(from))), src, &v)
}

// StartRun starts a run. With an idempotency key, a repetition starts no other;
// empty: none is shown.
func (c *Client) StartRun(ctx context.Context, flow string, s StartRun, idempotencyKey string) (v StartedRun, err error) {
	return v, c.callWith(ctx, http.MethodPost, flowPathOf(flow)+"/runs", idempotencyKey, s, &v)
}

// RunFilter says which runs are listed; zero fields hold for all.
type RunFilter struct {
	Flow  string
	State flow.RunState // running: those that have not ended
}

// Runs lists runs; after is Next of the page before.
func (c *Client) Runs(ctx context.Context, f RunFilter, after string, limit int) (v RunList, err error) {
	path := runsPath
	if f.Flow != "" {
		path = flowPathOf(f.Flow) + "/runs"
	}
	return v, c.call(ctx, http.MethodGet, path+query("state", string(f.State), "after", after, "limit", number(int64(limit))), nil, &v)
}

// Run shows a run.
func (c *Client) Run(ctx context.Context, id string) (v FlowRun, err error) {
	return v, c.call(ctx, http.MethodGet, runPathOf(id), nil, &v)
}

// TellRun tells a run to pause, resume, cancel, retry, skip or discard.
func (c *Client) TellRun(ctx context.Context, id string, do flow.Do, r RunCommand) (v RunTold, err error) {
	return v, c.call(ctx, http.MethodPost, runPathOf(id)+"/"+string(do), r, &v)
}

// ApproveRun answers a step that waits for an approval.
func (c *Client) ApproveRun(ctx context.Context, id string, a ApproveRun) (v ApprovedRun, err error) {
	return v, c.call(ctx, http.MethodPost, runPathOf(id)+"/approve", a, &v)
}

// SendFlowEvent tells all runs that wait for it of an event, and how many steps got it.
func (c *Client) SendFlowEvent(ctx context.Context, e FlowEvent) (told int, err error) {
	var v FlowEventTold
	return v.Told, c.call(ctx, http.MethodPost, "/api/flow-events", e, &v)
}

// RunUpdate is one event of a run's stream.
type RunUpdate struct {
	Event string        `json:"event"` // snapshot, step, run, reset, done
	ID    string        `json:"id,omitempty"`
	Run   *FlowRun      `json:"run,omitempty"`
	Step  *RunStepEvent `json:"step,omitempty"`
}

// WatchRun follows a run until its end and gives it back as it ended. A stream that
// breaks off is resumed. tell gets each event but pings, in order; its error ends it.
func (c *Client) WatchRun(ctx context.Context, id string, tell func(RunUpdate) error) (FlowRun, error) {
	var last *FlowRun
	w := &watch{c: c, path: runPathOf(id) + streamSuffix, retry: 2 * time.Second, take: func(event, id string, data []byte) error {
		u := RunUpdate{Event: event, ID: id}
		var err error
		switch event {
		case "snapshot", "run", "done":
			err = json.Unmarshal(data, &u.Run)
			last = u.Run
		case "step":
			err = json.Unmarshal(data, &u.Step)
		}
		if err != nil {
			return unreadable(err)
		}
		return tell(u)
	}}
	if err := w.follow(ctx); err != nil {
		return FlowRun{}, err
	}
	if w.over || last == nil { // its end was told in a stream before
		return c.Run(ctx, id)
	}
	return *last, nil
}

// callFile calls with a file as the body.
func (c *Client) callFile(ctx context.Context, method, path string, src []byte, into any) error {
	return c.send(ctx, method, path, http.Header{"Content-Type": {yamlType}}, bytes.NewReader(src), into)
}
