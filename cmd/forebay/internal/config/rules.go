package config

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
)

// Rule settings: when people are told that a measured value stands where it should not.
type Rule struct {
	Of      string
	Subject string
	Over    Threshold
	Under   Threshold
	For     time.Duration
	Every   time.Duration
}

// Off tells a rule that never fires.
func (r *Rule) Off() bool { return r.Over.Text == "" && r.Under.Text == "" }

// Threshold is a limit as it was written, and as a number: seconds, bytes, a count.
type Threshold struct {
	Text  string
	Value float64
}

// measures are what monitor.Measures are; a test compares them.
var measures = []string{"failure_ratio", "dead", "waiting", "oldest_age", "drain_time", "disk_free", "overdue", "quiet"}

// builtIn are the rules that are there without a setting.
var builtIn = []struct {
	name, of, over, under string
	stand                 time.Duration
}{
	{"failures", "failure_ratio", "0.5", "", 5 * time.Minute},
	{"age", "oldest_age", "15m", "", 5 * time.Minute},
	{"drain", "drain_time", "2h", "", 10 * time.Minute},
	{"disk", "disk_free", "", "512MiB", time.Minute},
	{"overdue", "overdue", "10", "", 0},
	{"quiet", "quiet", "", "", 0},
}

func (s *Settings) ruleTables() (all []*setting) {
	for _, b := range builtIn {
		all = append(all, ruleTable(b.name)...)
	}
	return all
}

func ruleTable(name string) []*setting {
	r := &Rule{}
	at := "rules." + name + "."
	of, over, under, stand := measures, "", "", time.Duration(0)
	for _, b := range builtIn {
		if b.name == name {
			of, over, under, stand = append([]string{b.of}, measures...), b.over, b.under, b.stand
		}
	}
	one := choice(&r.Of, of...)
	one.allowed = choice(new(string), measures...).allowed
	return []*setting{
		{key: at + "of", rule: r, value: one, doc: "What is measured: " +
			"the share of failed attempts (0 to 1) or the jobs that became overdue, of the last five minutes; dead letters; messages that wait; " +
			"the age of the oldest; the time until nothing waits; free disk; how long a write key has sent nothing."},
		{key: at + "subject", rule: r, value: text(&r.Subject, "", 80), doc: "The queue, or for quiet the name of the key. Empty: each by itself."},
		{key: at + "over", rule: r, value: threshold(&r.Over, over), doc: "It fires above this. With neither over nor under the rule is off."},
		{key: at + "under", rule: r, value: threshold(&r.Under, under), doc: "It fires below this."},
		{key: at + "for", rule: r, value: duration(&r.For, stand, 0, 7*day), doc: "How long the value must stand there before anybody is told."},
		{key: at + "every", rule: r, value: duration(&r.Every, time.Hour, time.Minute, 30*day), doc: "The least time between two notices while it stands there."},
	}
}

// threshold takes a number, a time or a size.
func threshold(p *Threshold, def string) value {
	v := value{
		get:     func() string { return p.Text },
		allowed: "a number such as 0.5, a time such as 15m, a size such as 1GiB, or nothing",
		set: func(s string) error {
			n, ok := parseThreshold(s)
			if s != "" && (!ok || n < 0) {
				return fmt.Errorf("%q is none of these", s)
			}
			*p = Threshold{s, n}
			return nil
		},
	}
	_ = v.set(def) // ours are right, as a test shows
	return v
}

func parseThreshold(s string) (float64, bool) {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return n, n == n && n <= 1e18
	}
	if d, err := parseDuration(s); err == nil {
		return d.Seconds(), true
	}
	n, err := humanize.ParseBytes(s)
	return float64(n), err == nil
}

// finishRules copies the rules into their place, and checks what no single value shows.
func (s *Settings) finishRules() (problems Problems) {
	for _, one := range s.all {
		if one.rule == nil {
			continue
		}
		name, field, _ := splitNamed(groupOf("rules"), one.key)
		s.Rules[name] = *one.rule
		if field == "over" && one.rule.Over.Text != "" && one.rule.Under.Text != "" {
			problems = append(problems, Problem{s.placeOf("rules." + name), "rules." + name, "has over and under; allowed: one of them, the other empty"})
		}
	}
	return problems
}
