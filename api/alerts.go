package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/monitor/alert"
)

// Alerts are the rules by which people are told (alert.Alerts).
type Alerts interface {
	Status() []alert.Status
	Mute(ctx context.Context, rule string, d time.Duration, reason string) error
}

// AlertRule is a rule as it stands.
type AlertRule struct {
	Name    string          `json:"name"`
	Of      monitor.Measure `json:"of" doc:"What is measured: seconds, bytes, a count, or a share from 0 to 1."`
	Subject string          `json:"subject,omitempty" doc:"The queue or the producer; absent: each."`
	Over    *float64        `json:"over,omitempty" doc:"It fires above this."`
	Under   *float64        `json:"under,omitempty" doc:"It fires below this."`
	For     Duration        `json:"for" doc:"How long the value must stand there."`
	Every   Duration        `json:"every" doc:"The least time between two notices."`

	Firing     []alert.Subject `json:"firing" nullable:"false"`
	Pending    []string        `json:"pending" nullable:"false" doc:"Subjects that stand there, and not yet for long enough."`
	MutedUntil time.Time       `json:"mutedUntil,omitzero"`
	MuteReason string          `json:"muteReason,omitempty"`
}

// AlertRuleList is all rules.
type AlertRuleList struct {
	Items []AlertRule `json:"items" nullable:"false"`
}

// Mute says for how long nothing is told of a rule.
type Mute struct {
	For    Duration `json:"for" doc:"Up to 30 days; 0s ends the mute."`
	Reason string   `json:"reason,omitempty" maxLength:"1024"`
}

func (a *API) alertRoutes(h huma.API) {
	huma.Register(h, operation(http.MethodGet, "/api/alerts", "list-alerts", "List the rules of alerts, with what they fire for now"),
		func(ctx context.Context, _ *struct{}) (*answer[AlertRuleList], error) {
			return reply(AlertRuleList{heldRules(ctx, a.alertRules())}, nil)
		})
	huma.Register(h, operation(http.MethodPost, "/api/alerts/{rule}/mute", "mute-alert", "Tell nothing of a rule for a while"),
		func(ctx context.Context, in *struct {
			Rule string `path:"rule" maxLength:"80"`
			Body Mute
		}) (*answer[AlertRule], error) {
			return reply(a.mute(ctx, in.Rule, in.Body))
		})
}

// heldRules are those of queues that the caller's key holds for, and what they fire for.
func heldRules(ctx context.Context, all []AlertRule) []AlertRule {
	if holdsAll(ctx) {
		return all
	}
	all = slices.DeleteFunc(all, func(r AlertRule) bool {
		return r.Of == monitor.MeasureQuiet || r.Of == monitor.MeasureDiskFree || r.Subject != "" && !holds(ctx, r.Subject)
	})
	for i := range all {
		r := &all[i]
		r.Firing = slices.DeleteFunc(r.Firing, func(s alert.Subject) bool { return !holds(ctx, s.Name) })
		r.Pending = slices.DeleteFunc(r.Pending, func(name string) bool { return !holds(ctx, name) })
	}
	return all
}

func (a *API) alertRules() []AlertRule {
	all := []AlertRule{}
	if a.cfg.Alerts == nil {
		return all
	}
	for _, s := range a.cfg.Alerts.Status() {
		r := AlertRule{
			Name: s.Rule.Name, Of: s.Rule.Of, Subject: s.Rule.Subject, For: Duration(s.Rule.For), Every: Duration(s.Rule.Every),
			Firing: append([]alert.Subject{}, s.Firing...), Pending: append([]string{}, s.Pending...),
			MutedUntil: s.Muted, MuteReason: s.Reason,
		}
		if limit := s.Rule.Limit; s.Rule.Under {
			r.Under = &limit
		} else {
			r.Over = &limit
		}
		all = append(all, r)
	}
	return all
}

func (a *API) mute(ctx context.Context, rule string, m Mute) (AlertRule, error) {
	missing := forebay.Errorf(forebay.CodeNotFound, "", "there is no rule %q", rule)
	if a.cfg.Alerts == nil {
		return AlertRule{}, missing
	}
	if err := a.cfg.Alerts.Mute(ctx, rule, time.Duration(m.For), m.Reason); err != nil {
		return AlertRule{}, err
	}
	a.cfg.Logger.Info("api: alert muted", "rule", rule, "for", time.Duration(m.For), "reason", m.Reason, "by", caller(ctx))
	for _, r := range a.alertRules() {
		if r.Name == rule {
			return r, nil
		}
	}
	return AlertRule{}, missing
}
