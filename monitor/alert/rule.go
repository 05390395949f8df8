// Package alert tells people when a measured value stands where it should not: the
// share of failures, dead letters, the age of the oldest message, the time to drain,
// free disk, overdue jobs, producers that fall silent.
//
// It promises: a rule fires only when its value has stood for the time it names; what
// fires together in one rule is told together; it is told again no sooner than its
// cool-down allows, and once more when it is over; what is muted is not told, and what
// then still stands is told when the mute ends; a restart tells nothing twice, where
// the engine keeps documents.
//
// It refuses to send by itself or to measure: it is given readings and a Send, which
// is tried again at the next look until it works.
package alert

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/monitor"
)

// Rule says when people are told.
type Rule struct {
	Name    string
	Of      monitor.Measure
	Subject string        // a queue or a producer; empty: each by itself
	Limit   float64       // fires beyond it
	Under   bool          // fires below it instead
	For     time.Duration // how long it must stand
	Every   time.Duration // cool-down: the least time between two notices; 0: 1 h
}

const (
	defaultEvery = time.Hour
	maxRules     = 100
	maxSubjects  = 1000 // of one rule; those beyond are not watched
)

func (r *Rule) fires(v float64) bool {
	if r.Under {
		return v < r.Limit
	}
	return v > r.Limit
}

func (r *Rule) check() error {
	wrong := func(field, format string, args ...any) error {
		e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
		e.Field = "rules." + r.Name + "." + field
		return e
	}
	switch {
	case r.Name == "":
		return wrong("name", "a rule has no name")
	case !slices.Contains(monitor.Measures, r.Of):
		return wrong("of", "%q is not measured; allowed are %v", r.Of, monitor.Measures)
	case r.For < 0 || r.Every < 0:
		return wrong("for", "times are 0 or more")
	}
	return nil
}

// Notice is what people are told of one rule.
type Notice struct {
	Rule     Rule
	Resolved bool
	Subjects []Subject // in order of their names
	At       time.Time
}

// Subject is what a rule fires for.
type Subject struct {
	Name  string    `json:"name"`
	Value float64   `json:"value"` // the last one
	Since time.Time `json:"since"` // when it began to stand there
}

// state of one rule. It is kept, so its fields have names in JSON.
type state struct {
	Pending map[string]time.Time `json:"pending,omitempty"` // since when, of subjects that do not fire yet
	Firing  map[string]Subject   `json:"firing,omitempty"`
	Told    map[string]time.Time `json:"told,omitempty"` // of those that fire, when people were told last
	Over    map[string]Subject   `json:"over,omitempty"` // people were told of them, and not yet that it is over
	Muted   time.Time            `json:"muted,omitzero"` // until when
	Reason  string               `json:"reason,omitempty"`
}

// look takes the readings of one moment. What it changes is told by notices. Where
// they are not whole, what is missing stays as it was.
func (s *state) look(r *Rule, readings []monitor.Reading, whole bool, now time.Time) (changed bool) {
	seen := make(map[string]bool)
	for _, v := range readings {
		if v.Of != r.Of || r.Subject != "" && r.Subject != v.Subject || len(seen) >= maxSubjects {
			continue
		}
		seen[v.Subject] = true
		changed = s.one(r, v, now) || changed
	}
	if !whole {
		return changed
	}
	for name := range s.Pending {
		if !seen[name] { // it is measured no more
			delete(s.Pending, name)
			changed = true
		}
	}
	for name, subject := range s.Firing {
		if !seen[name] {
			s.end(name, subject)
			changed = true
		}
	}
	return changed
}

func (s *state) one(r *Rule, v monitor.Reading, now time.Time) (changed bool) {
	firing, fires := s.Firing[v.Subject]
	since, pending := s.Pending[v.Subject]
	switch {
	case !r.fires(v.Value):
		delete(s.Pending, v.Subject)
		if fires {
			firing.Value = v.Value
			s.end(v.Subject, firing)
		}
		return fires || pending
	case fires:
		firing.Value = v.Value
		s.Firing[v.Subject] = firing
		return false
	case !pending:
		since = now
		set(&s.Pending, v.Subject, now)
	}
	if now.Sub(since) < r.For {
		return !pending
	}
	delete(s.Pending, v.Subject)
	if over, ok := s.Over[v.Subject]; ok { // it came back before anybody was told that it had gone
		since = over.Since
		delete(s.Over, v.Subject)
	}
	set(&s.Firing, v.Subject, Subject{v.Subject, v.Value, since})
	return true
}

func (s *state) end(name string, subject Subject) {
	delete(s.Firing, name)
	if _, told := s.Told[name]; told {
		set(&s.Over, name, subject)
	}
}

// notices are what to tell now; booked says that they were told.
func (s *state) notices(r *Rule, now time.Time) (all []Notice) {
	if now.Before(s.Muted) {
		return nil
	}
	every := cmp.Or(r.Every, defaultEvery)
	due := false
	for name := range s.Firing {
		told, ok := s.Told[name]
		due = due || !ok && !s.cooling(every, now) || ok && now.Sub(told) >= every
	}
	if due {
		all = append(all, Notice{Rule: *r, Subjects: sorted(s.Firing), At: now})
	}
	if len(s.Over) > 0 {
		all = append(all, Notice{Rule: *r, Resolved: true, Subjects: sorted(s.Over), At: now})
	}
	return all
}

// cooling tells whether people were told of this rule too lately to be told of one
// more subject: what comes within the cool-down is told together at its end.
func (s *state) cooling(every time.Duration, now time.Time) bool {
	for _, at := range s.Told {
		if now.Sub(at) < every {
			return true
		}
	}
	return false
}

func (s *state) booked(n *Notice) {
	for _, subject := range n.Subjects {
		if n.Resolved {
			delete(s.Over, subject.Name)
			if _, again := s.Firing[subject.Name]; !again {
				delete(s.Told, subject.Name)
			}
			continue
		}
		set(&s.Told, subject.Name, n.At)
	}
}

func set[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}

func sorted(m map[string]Subject) []Subject {
	return slices.SortedFunc(maps.Values(m), func(a, b Subject) int { return cmp.Compare(a.Name, b.Name) })
}
