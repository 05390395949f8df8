package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Change is one difference between two versions of a flow, in words.
type Change struct {
	Step string `json:"step,omitempty"`
	Kind string `json:"kind"` // added, removed or changed
	Text string `json:"text"`
}

// Diff says what the second definition does otherwise than the first: the flow
// first, then its steps in the order of the second, then those that are gone.
func Diff(a, b *Definition) (changes []Change) {
	tell := func(step, kind, format string, args ...any) {
		changes = append(changes, Change{step, kind, fmt.Sprintf(format, args...)})
	}
	differ := func(step string, before, after []fact) {
		for i, f := range after {
			was := before[i].value
			switch {
			case was == f.value:
			case was == "":
				tell(step, "changed", "%s is now %s", f.name, f.value)
			case f.value == "":
				tell(step, "changed", "%s is not set any more; it was %s", f.name, was)
			default:
				tell(step, "changed", "%s was %s, and is %s", f.name, was, f.value)
			}
		}
	}
	differ("", a.facts(), b.facts())
	for i := range b.Steps {
		s := &b.Steps[i]
		old, ok := a.Step(s.ID)
		if !ok {
			tell(s.ID, "added", "it %s%s", s.Does(), after(s.Needs))
			continue
		}
		differ(s.ID, old.facts(), s.facts())
	}
	for i := range a.Steps {
		if s := &a.Steps[i]; !slices.ContainsFunc(b.Steps, func(o Step) bool { return o.ID == s.ID }) {
			tell(s.ID, "removed", "it was a step that %s", s.Does())
		}
	}
	return changes
}

func after(needs []string) string {
	if len(needs) == 0 {
		return ""
	}
	return ", after " + strings.Join(needs, ", ")
}

// fact is a field as people read it; empty: not set.
type fact struct{ name, value string }

func (d *Definition) facts() []fact {
	return []fact{
		{"flow", d.Name}, {"description", d.Description}, {"input", string(d.Input)}, {"output", d.Output.source()},
		{"timeout", duration(d.Timeout)}, {"context", strconv.Itoa(d.Context)},
	}
}

// Does says what a step is for.
func (s *Step) Does() string {
	switch s.Kind {
	case KindJob:
		if s.ForEach != nil {
			return fmt.Sprintf("does %s for each of %s", s.Use, s.ForEach.In)
		}
		return "does " + s.Use
	case KindBranch:
		cases := make([]string, len(s.Cases))
		for i, c := range s.Cases {
			cases[i] = cmp.Or(c.When, "else") + " → " + strings.Join(c.To, ", ")
		}
		return "branches: " + strings.Join(cases, "; ")
	case KindParallel:
		return "begins " + strings.Join(s.Parallel, ", ") + " side by side"
	case KindJoin:
		if s.Join.Count == 0 {
			return "joins all"
		}
		return fmt.Sprintf("joins %d of its steps", s.Join.Count)
	case KindDelay:
		return "waits for " + cmp.Or(duration(s.Delay.For), s.Delay.Until)
	case KindWait:
		if s.Wait.Approval {
			return strings.TrimSuffix("waits for an approval by "+s.Wait.Role, " by ") + ", up to " + duration(s.Wait.Timeout)
		}
		return strings.TrimSuffix(fmt.Sprintf("waits for %s where %s", s.Wait.Event, s.Wait.Match), " where ") + ", up to " + duration(s.Wait.Timeout)
	case KindFlow:
		if s.Flow.Version == 0 {
			return "runs the flow " + s.Flow.Name + ", the latest"
		}
		return fmt.Sprintf("runs the flow %s, version %d", s.Flow.Name, s.Flow.Version)
	case KindEmit:
		return strings.TrimSuffix(fmt.Sprintf("emits %s with %s", s.Emit.Type, s.Emit.Data.source()), " with ")
	}
	return "ends as a dead letter: " + s.Reason
}

func (s *Step) facts() []fact {
	f := []fact{
		{"title", s.Title}, {"what it does", s.Does()}, {"needs", strings.Join(s.Needs, ", ")}, {"when", s.When}, {"with", s.With.source()},
	}
	inFlight, failures := "", ""
	if s.ForEach != nil {
		inFlight, failures = strconv.Itoa(s.ForEach.InFlight), strconv.Itoa(s.ForEach.Failures)
	}
	f = append(f, fact{"max_in_flight", inFlight}, fact{"max_failures", failures})
	f = append(f, s.Policy.facts("")...)
	f = append(f, fact{"on_failure", s.OnFailure.String()}, fact{"on_timeout", s.OnTimeout.String()}, fact{"the approval's form", string(s.Wait.Form)}, fact{"approvers", strings.Join(s.Wait.By, ", ")})
	c := s.Compensate
	if c == nil {
		c = &Compensation{}
	}
	f = append(f, fact{"compensate", c.Use}, fact{"the compensation's with", c.With.source()})
	return append(f, c.Policy.facts("the compensation's ")...)
}

func (p *Policy) facts(of string) []fact {
	priority, attempts, jitter := "", "", ""
	if p.Priority != nil {
		priority = strconv.Itoa(*p.Priority)
	}
	if p.Retry.Attempts > 0 {
		attempts = strconv.Itoa(p.Retry.Attempts)
	}
	if p.Retry.Jitter > 0 {
		jitter = strconv.FormatFloat(p.Retry.Jitter, 'g', -1, 64)
	}
	return []fact{
		{of + "queue", p.Queue}, {of + "priority", priority}, {of + "group", p.Group.source()}, {of + "limit_key", p.LimitKey.source()},
		{of + "timeout", duration(p.Timeout)}, {of + "attempts", attempts}, {of + "backoff", string(p.Retry.Kind)},
		{of + "base wait", duration(p.Retry.Base)}, {of + "longest wait", duration(p.Retry.Cap)}, {of + "jitter", jitter},
	}
}

func (o OnFailure) String() string {
	switch {
	case o.Mode != Goto:
		return string(o.Mode)
	case o.Max > 0:
		return fmt.Sprintf("goto %s, at most %d times", o.Goto, o.Max)
	}
	return "goto " + o.Goto
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return days(d)
}
