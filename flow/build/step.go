package build

import (
	"time"

	"github.com/forebayhq/forebay/flow"
)

// Step is a step of a flow. Its methods set a field each, and give it back; which of
// them mean something for its kind, Source says.
type Step struct {
	id     string
	fields fields
}

func (f *Flow) add(id string, kind flow.Kind, value any) *Step {
	s := &Step{id: id}
	f.steps = append(f.steps, s)
	return s.set(string(kind), value)
}

// Job adds a step that is a job of a kind.
func (f *Flow) Job(id, kind string) *Step { return f.add(id, flow.KindJob, kind) }

// Branch adds a step that takes the first of its cases that holds.
func (f *Flow) Branch(id string, cases ...Case) *Step { return f.add(id, flow.KindBranch, cases) }

// Case of a branch. When is CEL; empty: otherwise.
type Case struct {
	When string   `json:"when,omitempty"`
	To   []string `json:"to"`
}

// Parallel adds a step after which others begin side by side.
func (f *Flow) Parallel(id string, steps ...string) *Step { return f.add(id, flow.KindParallel, steps) }

// JoinAll adds a step that completes when all that it needs was taken.
func (f *Flow) JoinAll(id string) *Step { return f.add(id, flow.KindJoin, "all") }

// Join adds a step that completes when n of what it needs were taken.
func (f *Flow) Join(id string, n int) *Step { return f.add(id, flow.KindJoin, n) }

// Delay adds a step that waits.
func (f *Flow) Delay(id string, d time.Duration) *Step { return f.add(id, flow.KindDelay, d.String()) }

// Until adds a step that waits for the time that an expression gives.
func (f *Flow) Until(id, expr string) *Step {
	return f.add(id, flow.KindDelay, fields{{"until", expr}})
}

// Event adds a step that waits for an event of a type, and one that fits where match is
// not empty.
func (f *Flow) Event(id, kind, match string, timeout time.Duration) *Step {
	event := fields{{"type", kind}}
	if match != "" {
		event.set("match", match)
	}
	return f.add(id, flow.KindWait, fields{{"event", event}, {"timeout", timeout.String()}})
}

// Approval adds a step that waits for a person's word, of anybody's where the role is
// empty. form is a JSON Schema, or nil.
func (f *Flow) Approval(id, role string, form any, timeout time.Duration) *Step {
	approval := fields{}
	if role != "" {
		approval.set("role", role)
	}
	if form != nil {
		approval.set("form", form)
	}
	var value any = approval
	if len(approval) == 0 {
		value = true
	}
	return f.add(id, flow.KindWait, fields{{"approval", value}, {"timeout", timeout.String()}})
}

// Approvers names who may answer a step that waits for an approval: keys by name or id,
// or their scopes.
func (s *Step) Approvers(who ...string) *Step {
	wait, _ := s.fields.get("wait").(fields)
	approval, _ := wait.get("approval").(fields)
	approval.set("approvers", who)
	wait.set("approval", approval)
	return s.set("wait", wait)
}

// Flow adds a step that runs another flow; version 0: the latest when it begins.
func (f *Flow) Flow(id, name string, version int) *Step {
	ref := fields{{"name", name}}
	if version > 0 {
		ref.set("version", version)
	}
	return f.add(id, flow.KindFlow, ref)
}

// Emit adds a step that sends an event; nil data: the input and earlier outputs.
func (f *Flow) Emit(id, kind string, data any) *Step {
	emit := fields{{"type", kind}}
	if data != nil {
		emit.set("data", data)
	}
	return f.add(id, flow.KindEmit, emit)
}

// DeadLetter adds a step that ends the run with a dead letter.
func (f *Flow) DeadLetter(id, reason string) *Step { return f.add(id, flow.KindDead, reason) }

func (s *Step) set(key string, value any) *Step {
	s.fields.set(key, value)
	return s
}

// Title is what people read.
func (s *Step) Title(text string) *Step { return s.set("title", text) }

// After names steps that end before it begins.
func (s *Step) After(steps ...*Step) *Step {
	ids := make([]string, len(steps))
	for i, one := range steps {
		ids[i] = one.id
	}
	return s.set("needs", ids)
}

// When is CEL; where it is false, the step is skipped.
func (s *Step) When(expr string) *Step { return s.set("when", expr) }

// With is what its handler gets.
func (s *Step) With(value any) *Step { return s.set("with", value) }

// ForEach makes a job of each item of a list, or of 0 to n-1. inFlight 0: as many at
// once as is usual; failures: how many are tolerated.
func (s *Step) ForEach(in string, inFlight, failures int) *Step {
	each := fields{{"in", in}}
	if inFlight > 0 {
		each.set("max_in_flight", inFlight)
	}
	if failures > 0 {
		each.set("max_failures", failures)
	}
	return s.set("for_each", each)
}

// Queue is where its job goes.
func (s *Step) Queue(name string) *Step { return s.set("queue", name) }

// Priority is 0, the most urgent, to 9.
func (s *Step) Priority(level int) *Step { return s.set("priority", level) }

// Group lets its jobs run in order with others of that group.
func (s *Step) Group(value string) *Step { return s.set("group", value) }

// LimitKey is the key of per-key limits.
func (s *Step) LimitKey(value string) *Step { return s.set("limit_key", value) }

// Timeout is of one attempt.
func (s *Step) Timeout(d time.Duration) *Step { return s.set("timeout", d.String()) }

// Retry says how often it is tried, and how long the wait after a failure is: it doubles
// from base to most. 0: as its queue says.
func (s *Step) Retry(attempts int, base, most time.Duration) *Step {
	retry := fields{{"attempts", attempts}}
	if base > 0 {
		retry.set("base", base.String())
	}
	if most > 0 {
		retry.set("cap", most.String())
	}
	return s.set("retry", retry)
}

// OnFailure says what its failure means: flow.Fail, flow.Skip or flow.DeadLetter.
func (s *Step) OnFailure(mode flow.FailureMode) *Step { return s.set("on_failure", mode) }

// OnFailureGo lets the run go on at another step. To a step before it at most so many
// times; 0: it is further on.
func (s *Step) OnFailureGo(step string, most int) *Step { return s.set("on_failure", to(step, most)) }

// OnTimeout says what the end of a wait means: flow.Fail or flow.Skip.
func (s *Step) OnTimeout(mode flow.FailureMode) *Step { return s.set("on_timeout", mode) }

// OnTimeoutGo is as OnFailureGo.
func (s *Step) OnTimeoutGo(step string, most int) *Step { return s.set("on_timeout", to(step, most)) }

func to(step string, most int) fields {
	f := fields{{"goto", step}}
	if most > 0 {
		f.set("max", most)
	}
	return f
}

// Compensate names the kind of the job that undoes it when the run fails later; nil
// data: the input and earlier outputs.
func (s *Step) Compensate(kind string, data any) *Step {
	if data == nil {
		return s.set("compensate", kind)
	}
	return s.set("compensate", fields{{"use", kind}, {"with", data}})
}
