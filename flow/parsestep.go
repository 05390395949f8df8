package flow

import (
	"fmt"
	"slices"

	"github.com/forebayhq/forebay"
)

func (r *reader) step(s *Step, n *node, path string) {
	fields := []field{
		{"title", r.text(&s.Title, 200)},
		{"needs", r.list(&s.Needs, MaxNeeds, "step ids")},
		{"when", r.expr(&s.When)},
		{"use", r.text(&s.Use, forebay.MaxKindBytes)},
		{"branch", func(n *node, path string) { r.branch(s, n, path) }},
		{"parallel", r.list(&s.Parallel, MaxNeeds, "step ids")},
		{"join", func(n *node, path string) { r.join(&s.Join, n, path) }},
		{"delay", func(n *node, path string) { r.delay(&s.Delay, n, path) }},
		{"wait", func(n *node, path string) { r.wait(&s.Wait, n, path) }},
		{"flow", func(n *node, path string) { r.flowRef(&s.Flow, n, path) }},
		{"emit", func(n *node, path string) { r.emit(&s.Emit, n, path) }},
		{"dead_letter", r.text(&s.Reason, forebay.MaxTextBytes)},
		{"with", r.value(&s.With)},
		{"for_each", func(n *node, path string) { r.forEach(s, n, path) }},
		{"on_failure", r.onFailure(&s.OnFailure, []FailureMode{Fail, Skip, DeadLetter, Goto})},
		{"on_timeout", r.onFailure(&s.OnTimeout, []FailureMode{Fail, Skip, Goto})},
		{"compensate", func(n *node, path string) { r.compensate(s, n, path) }},
	}
	if !r.fields(n, path, "a step", append(fields, r.policy(&s.Policy)...)) {
		return
	}
	var found []Kind
	for _, k := range kinds {
		if n.get(string(k)) != nil {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		s.Kind = found[0]
		r.belongs(s, n, path)
	case 0:
		r.wrong(n.place, path, CodeKind, "the step %s does not say what it does; one of %s is needed", s.ID, quoted(kinds))
	default:
		r.wrong(n.place, path, CodeKind, "the step %s says %s; only one of them is allowed", s.ID, quoted(found))
	}
}

// belongs refuses fields that mean nothing for the kind of the step.
func (r *reader) belongs(s *Step, n *node, path string) {
	sent := []Kind{KindJob}
	for _, c := range []struct {
		field string
		kinds []Kind
	}{
		{"with", []Kind{KindJob, KindFlow, KindDead}},
		{"for_each", []Kind{KindJob, KindFlow}},
		{"queue", []Kind{KindJob, KindEmit}},
		{"priority", []Kind{KindJob, KindEmit}}, {"group", sent}, {"limit_key", sent}, {"timeout", sent}, {"retry", sent},
		{"on_failure", []Kind{KindJob, KindFlow, KindEmit, KindBranch, KindDelay, KindWait}},
		{"on_timeout", []Kind{KindWait}},
		{"compensate", []Kind{KindJob, KindFlow, KindWait, KindEmit}},
	} {
		if v := n.get(c.field); v != nil && !slices.Contains(c.kinds, s.Kind) {
			r.wrong(v.place, join(path, c.field), CodeUnknownField, "%s means nothing for a step with %s; it belongs to %s", c.field, s.Kind, quoted(c.kinds))
		}
	}
	if s.ForEach != nil && s.OnFailure.Mode == DeadLetter {
		r.wrong(n.get("on_failure").place, join(path, "on_failure"), CodeValue,
			"dead_letter is not possible with for_each; its failed items are dead letters already, and max_failures says how many are tolerated")
	}
}

func (r *reader) policy(p *Policy) []field {
	return []field{
		{"queue", r.text(&p.Queue, forebay.MaxQueueBytes)},
		{"priority", func(n *node, path string) {
			level := -1
			r.number(&level, 0, 9)(n, path)
			if level >= 0 {
				p.Priority = &level
			}
		}},
		{"group", r.value(&p.Group)},
		{"limit_key", r.value(&p.LimitKey)},
		{"timeout", r.duration(&p.Timeout, forebay.MaxDelay)},
		{"retry", func(n *node, path string) { r.retry(&p.Retry, n, path) }},
	}
}

func (r *reader) retry(t *Retry, n *node, path string) {
	r.fields(n, path, "retry", []field{
		{"attempts", r.number(&t.Attempts, 1, 1000)},
		{"backoff", func(n *node, path string) {
			r.oneOf((*string)(&t.Kind), string(forebay.BackoffFixed), string(forebay.BackoffExponential))(n, path)
		}},
		{"base", r.duration(&t.Base, forebay.MaxDelay)},
		{"cap", r.duration(&t.Cap, forebay.MaxDelay)},
		{"jitter", func(n *node, path string) {
			f, ok := n.value.(float64)
			if i, whole := n.value.(int64); whole {
				f, ok = float64(i), true
			}
			if !ok || f < 0 || f > 1 {
				r.wrong(n.place, path, CodeValue, "%s is not a number from 0 to 1", path)
				return
			}
			t.Jitter = f
		}},
	})
	if t.Cap > 0 && t.Base > t.Cap {
		r.wrong(n.place, path, CodeValue, "the base %s is more than the cap %s", t.Base, t.Cap)
	}
}

func (r *reader) oneOf(to *string, allowed ...string) func(*node, string) {
	return func(n *node, path string) {
		if n.kind != isString || !slices.Contains(allowed, n.text) {
			r.wrong(n.place, path, CodeValue, "%s is %q; %s is allowed%s", path, n.text, quoted(allowed), near(n.text, allowed))
			return
		}
		*to = n.text
	}
}

func (r *reader) branch(s *Step, n *node, path string) {
	if n.kind != isList || len(n.items) == 0 || len(n.items) > MaxCases {
		r.wrong(n.place, path, CodeType, "branch is a list of 1 to %d cases, each with when and to; the last may be without when, for all else", MaxCases)
		return
	}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		var c Case
		r.fields(item, at, "a case", []field{{"when", r.expr(&c.When)}, {"to", r.list(&c.To, MaxNeeds, "step ids")}})
		r.need(item, at, "to", "it names the steps that follow where the case holds")
		s.Cases = append(s.Cases, c)
	}
}

func (r *reader) join(j *Join, n *node, path string) {
	switch {
	case n.kind == isString && n.text == "all":
	case n.kind == isString && n.text == "any":
		j.Count = 1
	case n.kind == isInt:
		r.number(&j.Count, 1, MaxNeeds)(n, path)
	default:
		r.wrong(n.place, path, CodeValue, "join is %q; all, any or a number is allowed", n.text)
	}
}

func (r *reader) delay(d *Delay, n *node, path string) {
	if n.kind != isMap {
		r.duration(&d.For, MaxWait)(n, path)
		return
	}
	r.fields(n, path, "a delay", []field{{"for", r.duration(&d.For, MaxWait)}, {"until", r.expr(&d.Until)}})
	if len(n.entries) != 1 {
		r.wrong(n.place, path, CodeValue, "a delay has either for, a duration, or until, a time")
	}
}

func (r *reader) wait(w *Wait, n *node, path string) {
	approval := func(n *node, path string) {
		w.Approval = true
		if n.kind == isNull || n.kind == isBool {
			return
		}
		r.fields(n, path, "an approval", []field{
			{"role", r.text(&w.Role, MaxNameBytes)},
			{"approvers", r.list(&w.By, MaxApprovers, "keys or scopes")},
			{"form", func(n *node, _ string) { w.Form = n.json() }},
		})
	}
	event := func(n *node, path string) {
		if n.kind == isString {
			r.text(&w.Event, forebay.MaxKindBytes)(n, path)
			return
		}
		r.fields(n, path, "an event to wait for", []field{{"type", r.text(&w.Event, forebay.MaxKindBytes)}, {"match", r.expr(&w.Match)}})
		r.need(n, path, "type", "it says which events are meant")
	}
	ok := r.fields(n, path, "a wait", []field{{"event", event}, {"approval", approval}, {"timeout", r.duration(&w.Timeout, MaxWait)}})
	if ok && (n.get("event") == nil) == (n.get("approval") == nil) {
		r.wrong(n.place, path, CodeValue, "a wait is for an event or for an approval; one of the two is needed")
	}
	if ok && n.get("timeout") == nil {
		r.wrong(n.place, path, CodeNoTimeout, "the wait has no timeout and could last for ever; say how long, up to %s", days(MaxWait))
	}
}

func (r *reader) flowRef(f *FlowRef, n *node, path string) {
	if n.kind == isString {
		r.name(&f.Name)(n, path)
		return
	}
	r.fields(n, path, "a sub-flow", []field{
		{"name", r.name(&f.Name)},
		{"version", func(n *node, path string) {
			if n.kind == isString && n.text == "latest" {
				return
			}
			r.number(&f.Version, 1, 1<<30)(n, path)
		}},
	})
	r.need(n, path, "name", "it says which flow")
}

func (r *reader) emit(e *Emit, n *node, path string) {
	if n.kind == isString {
		r.text(&e.Type, forebay.MaxKindBytes)(n, path)
		return
	}
	r.fields(n, path, "an event to emit", []field{{"type", r.text(&e.Type, forebay.MaxKindBytes)}, {"data", r.value(&e.Data)}})
	r.need(n, path, "type", "it says what has happened")
}

func (r *reader) forEach(s *Step, n *node, path string) {
	f := &ForEach{InFlight: defaultInFlight}
	s.ForEach = f
	if n.kind == isString || n.kind == isInt {
		r.expr(&f.In)(n, path)
		return
	}
	r.fields(n, path, "a for_each", []field{
		{"in", r.expr(&f.In)},
		{"max_in_flight", r.number(&f.InFlight, 1, MaxInFlight)},
		{"max_failures", r.number(&f.Failures, 0, MaxItems)},
	})
	r.need(n, path, "in", "it is the list, or the number, of what is to be done")
}

func (r *reader) onFailure(f *OnFailure, allowed []FailureMode) func(*node, string) {
	return func(n *node, path string) {
		if n.kind == isString {
			words := make([]string, 0, len(allowed))
			for _, m := range allowed {
				if m != Goto {
					words = append(words, string(m))
				}
			}
			if n.text == string(Goto) {
				r.wrong(n.place, path, CodeValue, "goto needs the name of a step: {goto: step}")
				return
			}
			r.oneOf((*string)(&f.Mode), words...)(n, path)
			return
		}
		f.Mode = Goto
		r.fields(n, path, "a goto", []field{{"goto", r.text(&f.Goto, MaxStepBytes)}, {"max", r.number(&f.Max, 1, MaxLoops)}})
		r.need(n, path, "goto", "it names the step to go on at")
	}
}

func (r *reader) compensate(s *Step, n *node, path string) {
	c := &Compensation{}
	s.Compensate = c
	if n.kind == isString {
		r.text(&c.Use, forebay.MaxKindBytes)(n, path)
		return
	}
	fields := []field{{"use", r.text(&c.Use, forebay.MaxKindBytes)}, {"with", r.value(&c.With)}}
	r.fields(n, path, "a compensation", append(fields, r.policy(&c.Policy)...))
	r.need(n, path, "use", "it is the handler that undoes the step")
}
