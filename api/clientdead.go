package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// DeadGroups lists dead letters by cause; order is newest or largest, after is Next of
// the page before.
func (c *Client) DeadGroups(ctx context.Context, f DeadGroupFilter, after string, limit int) (v DeadGroupList, err error) {
	q := query("queue", f.Queue, "kind", f.Kind, "code", f.Code, "group", f.Group, "order", f.Order, "after", after, "limit", number(int64(limit)))
	return v, c.call(ctx, http.MethodGet, "/api/dead/groups"+q, nil, &v)
}

// DeadGroupFilter selects groups.
type DeadGroupFilter struct{ Queue, Kind, Code, Group, Order string }

// EditDead sends a dead letter again with changes.
func (c *Client) EditDead(ctx context.Context, seq int64, e DeadEdit) (v DeadEdited, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/dead/"+strconv.FormatInt(seq, 10)+"/replay", e, &v)
}

// ActOnDead begins an action on all dead letters that a filter means.
func (c *Client) ActOnDead(ctx context.Context, a DeadAction) (v DeadWork, err error) {
	return v, c.call(ctx, http.MethodPost, deadActionPath, a, &v)
}

// DeadActions lists actions, the last begun first.
func (c *Client) DeadActions(ctx context.Context) ([]DeadWork, error) {
	var v DeadWorkList
	return v.Items, c.call(ctx, http.MethodGet, deadActionPath, nil, &v)
}

// DeadAction shows how far an action is.
func (c *Client) DeadAction(ctx context.Context, id string) (v DeadWork, err error) {
	return v, c.call(ctx, http.MethodGet, deadActionPath+"/"+url.PathEscape(id), nil, &v)
}

// ChangeDeadAction lets an action pause, resume or cancel.
func (c *Client) ChangeDeadAction(ctx context.Context, id, verb string) (v DeadWork, err error) {
	return v, c.call(ctx, http.MethodPost, deadActionPath+"/"+url.PathEscape(id)+"/"+verb, nil, &v)
}

// RedriveDead gives dead letters that another store keeps back to their queue.
func (c *Client) RedriveDead(ctx context.Context, queue string, rate int) (v Redriven, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/dead/elsewhere/"+url.PathEscape(queue)+"/redrive", Redrive{rate}, &v)
}

// CancelRedrive ends such a task, and tells what it had moved by then.
func (c *Client) CancelRedrive(ctx context.Context, queue, task string) (v Redriven, err error) {
	return v, c.call(ctx, http.MethodDelete, "/api/dead/elsewhere/"+url.PathEscape(queue)+"/redrive/"+url.PathEscape(task), nil, &v)
}
