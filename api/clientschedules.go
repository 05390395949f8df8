package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const schedulesPath = "/api/schedules"

func schedulePathOf(name string) string { return schedulesPath + "/" + url.PathEscape(name) }

// Schedules lists schedules by name; after is Next of the page before.
func (c *Client) Schedules(ctx context.Context, after string, limit int) (v ScheduleList, err error) {
	return v, c.call(ctx, http.MethodGet, schedulesPath+query("after", after, "limit", number(int64(limit))), nil, &v)
}

// Schedule shows a schedule.
func (c *Client) Schedule(ctx context.Context, name string) (v Schedule, err error) {
	return v, c.call(ctx, http.MethodGet, schedulePathOf(name), nil, &v)
}

// PutSchedule adds or replaces a schedule.
func (c *Client) PutSchedule(ctx context.Context, name string, p PutSchedule) (v Schedule, err error) {
	return v, c.call(ctx, http.MethodPut, schedulePathOf(name), p, &v)
}

// DeleteSchedule deletes a schedule; its jobs stay.
func (c *Client) DeleteSchedule(ctx context.Context, name string) (v ScheduleGone, err error) {
	return v, c.call(ctx, http.MethodDelete, schedulePathOf(name), nil, &v)
}

// PauseSchedule lets no tick happen until ResumeSchedule.
func (c *Client) PauseSchedule(ctx context.Context, name string) (v Schedule, err error) {
	return v, c.call(ctx, http.MethodPost, schedulePathOf(name)+"/pause", nil, &v)
}

// ResumeSchedule undoes PauseSchedule, from now on.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (v Schedule, err error) {
	return v, c.call(ctx, http.MethodPost, schedulePathOf(name)+"/resume", nil, &v)
}

// RunSchedule adds a job of a schedule at once. With an idempotency key, a repetition
// adds no other; empty: none is shown.
func (c *Client) RunSchedule(ctx context.Context, name, idempotencyKey string) (v ScheduleRun, err error) {
	return v, c.callWith(ctx, http.MethodPost, schedulePathOf(name)+"/run", idempotencyKey, nil, &v)
}

// PreviewSchedule tells the next ticks of a schedule, n of them.
func (c *Client) PreviewSchedule(ctx context.Context, name string, n int) ([]time.Time, error) {
	var v TickList
	err := c.call(ctx, http.MethodGet, schedulePathOf(name)+"/preview"+query("n", strconv.Itoa(n)), nil, &v)
	return v.Items, err
}

// PreviewDefinition tells the next ticks of a schedule that need not exist.
func (c *Client) PreviewDefinition(ctx context.Context, p PreviewSchedule) ([]time.Time, error) {
	var v TickList
	err := c.call(ctx, http.MethodPost, schedulesPath+"/preview", p, &v)
	return v.Items, err
}
