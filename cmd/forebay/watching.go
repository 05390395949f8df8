package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/monitor/alert"
)

// monitorConfig says what is measured, and by what limits it is judged.
func (s *server) monitorConfig() monitor.Config {
	h := s.settings.Health
	return monitor.Config{
		Broker: s.broker, Bad: s.bad, Version: built().Version, Logger: s.log.With("part", "metrics"),
		Targets: s.target, Producers: s.producers,
		Limits: monitor.Limits{Dead: h.Dead, Waiting: h.Waiting, Age: h.Age, Drain: h.Drain, Idle: h.Idle},
	}
}

// target is what the workers of a queue are to keep.
func (s *server) target(queue string) monitor.Target {
	q := s.settings.Queue(queue)
	t := monitor.Target{Latency: q.TargetLatency, Concurrency: int(q.Concurrency)} // 0: it tunes itself; the default is where that begins
	if queue == event.Queue && s.settings.Server.Has(config.RoleWorker) {
		t.Concurrency = s.writers()
	}
	return t
}

// producers are the live write keys, with what each has sent today.
func (s *server) producers() map[string]int64 {
	all := make(map[string]int64)
	for _, k := range s.ring.List() {
		if k.Live() && k.Has(keyring.ScopeIngest) {
			all[k.Name] = s.ring.UsedToday(k.ID)
		}
	}
	return all
}

// openAlerts makes the rules; nil where nobody is alerted.
func (s *server) openAlerts() (err error) {
	if !s.settings.Alerts.Enabled {
		return nil
	}
	cfg := alert.Config{Read: s.monitor.Readings, Send: s.tellRule, Documents: s.broker, Logger: s.log.With("part", "alerts")}
	for _, name := range slices.Sorted(maps.Keys(s.settings.Rules)) {
		r := s.settings.Rules[name]
		if r.Off() {
			continue
		}
		one := alert.Rule{Name: name, Of: monitor.Measure(r.Of), Subject: r.Subject, Limit: r.Over.Value, For: r.For, Every: r.Every}
		if r.Under.Text != "" {
			one.Under, one.Limit = true, r.Under.Value
		}
		cfg.Rules = append(cfg.Rules, one)
	}
	if s.alerts, err = alert.New(cfg); err != nil {
		return usage(err)
	}
	return nil
}

// alertRules are the rules as the API shows them.
func (s *server) alertRules() api.Alerts {
	if s.alerts == nil {
		return nil
	}
	return s.alerts
}

// shownSubjects is how many subjects of a rule the text of an alert names.
const shownSubjects = 10

// tellRule makes a notice an alert like those of jobs: it goes to the same people.
func (s *server) tellRule(ctx context.Context, n alert.Notice) error {
	r := s.settings.Rules[n.Rule.Name]
	al := broker.Alert{Name: n.Rule.Name, Reason: broker.AlertRule, Code: r.Of, Count: len(n.Subjects), At: n.At}
	key := "rule/" + n.Rule.Name
	if n.Resolved {
		al.Reason, key = broker.AlertResolved, "resolved/"+n.Rule.Name
	}
	beyond := "over " + r.Over.Text
	if n.Rule.Under {
		beyond = "under " + r.Under.Text
	}
	var parts []string
	for _, one := range n.Subjects[:min(len(n.Subjects), shownSubjects)] {
		name := one.Name
		if name == "" {
			name = "this server"
		}
		parts = append(parts, fmt.Sprintf("%s: %s since %s", name, valueText(n.Rule.Of, one.Value), one.Since.UTC().Format(time.RFC3339)))
		key += "/" + one.Name
	}
	if more := len(n.Subjects) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if n.Rule.Of != monitor.MeasureQuiet && len(n.Subjects) == 1 {
		al.Queue = n.Subjects[0].Name
	}
	what := map[bool]string{false: " is ", true: " is no longer "}[n.Resolved]
	al.Error = strings.ReplaceAll(r.Of, "_", " ") + what + beyond + " (" + strings.Join(parts, "; ") + ")"
	return s.broker.Tell(ctx, key, al)
}

// valueText shows a reading as its threshold is written.
func valueText(of monitor.Measure, v float64) string {
	switch of {
	case monitor.MeasureOldestAge, monitor.MeasureDrainTime, monitor.MeasureQuiet:
		return time.Duration(v * float64(time.Second)).Round(time.Second).String()
	case monitor.MeasureDiskFree:
		return humanize.IBytes(uint64(max(0, v)))
	case monitor.MeasureFailureRatio:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
