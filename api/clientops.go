package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/forebayhq/forebay/monitor"
)

// clientAgent tells servers that a call is the Client's, which the sub-commands use.
const clientAgent = "forebay-client"

// Health grades the server and its queues.
func (c *Client) Health(ctx context.Context) (v Health, err error) {
	return v, c.call(ctx, http.MethodGet, "/api/health", nil, &v)
}

// Scaling tells how many workers a queue wants.
func (c *Client) Scaling(ctx context.Context, queue string) (v monitor.Scaling, err error) {
	return v, c.call(ctx, http.MethodGet, "/api/scaling/"+url.PathEscape(queue), nil, &v)
}

// AlertRules lists the rules of alerts, with what they fire for.
func (c *Client) AlertRules(ctx context.Context) ([]AlertRule, error) {
	var v AlertRuleList
	return v.Items, c.call(ctx, http.MethodGet, "/api/alerts", nil, &v)
}

// MuteAlert tells nothing of a rule for a while; 0 ends that.
func (c *Client) MuteAlert(ctx context.Context, rule string, d time.Duration, reason string) (v AlertRule, err error) {
	return v, c.call(ctx, http.MethodPost, "/api/alerts/"+url.PathEscape(rule)+"/mute", Mute{Duration(d), reason}, &v)
}

// Audit tells who changed what, newest first; before is Next of the page before, or 0.
func (c *Client) Audit(ctx context.Context, f AuditFilter, before int64, limit int) (v AuditList, err error) {
	q := query("actor", f.Actor, "action", f.Action, "since", f.Since, "before", number(before), "limit", number(int64(limit)))
	return v, c.call(ctx, http.MethodGet, auditPath+q, nil, &v)
}
