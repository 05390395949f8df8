package openworkflow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay/flow"
)

var notName = regexp.MustCompile(`[^A-Za-z0-9-]+`)

func itoa(n int) string { return strconv.Itoa(n) }

// approved is the event that stands for a person's word.
const approved = "forebay.approval"

// step writes a step as a task; none where there is nothing to be done.
func (e *exporter) step(id string) []any {
	s, _ := e.d.Step(id)
	path := "steps." + id
	fields, _ := e.file.get("steps").(object)
	raw, _ := fields.get(id).(object)
	task, kept := object{}, object{}
	e.whole = false
	if s.When != "" {
		task.set("if", e.condition(s.When, path+".when"))
	}
	switch s.Kind {
	case flow.KindJoin:
		if s.Join.Count > 0 {
			e.say(false, path+".join", "a join of some has no counterpart: a fork ends when all of it has, or goes on with the first alone")
		}
		return e.nothing(s, path)
	case flow.KindParallel:
		return e.nothing(s, path)
	case flow.KindBranch: // one that nothing follows
		return []any{object{{id, e.cases(s, map[string]string{}, "exit")}}}
	case flow.KindJob:
		task.set("call", s.Use)
		e.arguments(s, raw, &task, path)
	case flow.KindFlow:
		e.run(s, raw, &task, path)
	case flow.KindDelay:
		if s.Delay.Until != "" {
			e.say(false, path+".delay", "a delay until a time has no counterpart: a wait there is of a length")
		}
		task.set("wait", asUnits(s.Delay.For))
	case flow.KindWait:
		e.listen(s, raw, &task, &kept, path)
	case flow.KindEmit:
		data := e.data(raw.get("emit"), "data", path+".emit")
		task.set("emit", object{{"event", object{{"with", object{{"source", "forebay://flows/" + e.d.Name}, {"type", s.Emit.Type}, {"data", data}}}}}})
	case flow.KindDead:
		task.set("raise", object{{"error", object{{"type", "https://serverlessworkflow.io/spec/1.0.0/errors/runtime"}, {"status", 500}, {"title", s.Reason}}}})
		if s.With != nil {
			kept.set("with", raw.get("with"))
		}
	}
	e.keep(s, raw, &kept, path)
	if e.whole && s.ForEach == nil {
		kept.set("context", true)
	}
	if kept.has("context") && len(e.graph.before[id]) > 0 {
		e.say(true, path, "%s gets all that was before it: there as a map of what has completed", id)
	}
	if s.Timeout > 0 {
		task.set("timeout", object{{"after", asUnits(s.Timeout)}})
	}
	if len(kept) > 0 {
		task.set("metadata", object{{own, kept}})
	}
	return []any{e.around(s, task, path)}
}

func (e *exporter) nothing(s *flow.Step, path string) []any {
	if s.When != "" {
		e.say(false, path+".when", "a %s with a condition has no counterpart", s.Kind)
	}
	return nil
}

// keep puts under our metadata what only we know.
func (e *exporter) keep(s *flow.Step, raw object, kept *object, path string) {
	for _, key := range []string{"title", "queue", "priority", "group", "limit_key", "compensate"} {
		if raw.has(key) {
			kept.set(key, raw.get(key))
		}
	}
	if retry, ok := raw.get("retry").(object); ok {
		more := object{}
		for _, key := range []string{"cap", "jitter"} {
			if retry.has(key) {
				more.set(key, retry.get(key))
			}
		}
		if len(more) > 0 {
			kept.set("retry", more)
		}
	}
	for key, f := range map[string]flow.OnFailure{"on_failure": s.OnFailure, "on_timeout": s.OnTimeout} {
		if f.Mode == flow.DeadLetter || f.Mode == flow.Goto && f.Max > 0 {
			kept.set(key, raw.get(key))
		} else if f.Mode == flow.Goto && len(e.graph.handlers[s.ID]) == 0 {
			e.say(false, path+"."+key, "%s goes on at a step that others lead to as well, which a catch cannot", s.ID)
		}
	}
	if each, ok := raw.get("for_each").(object); ok {
		more := object{}
		for _, key := range []string{"max_in_flight", "max_failures"} {
			if each.has(key) {
				more.set(key, each.get(key))
			}
		}
		if len(more) > 0 {
			kept.set("for_each", more)
		}
	}
	if len(*kept) == 0 {
		return
	}
	names := make([]string, len(*kept))
	for i, f := range *kept {
		names[i] = f.key
		if inner, ok := f.value.(object); ok && (f.key == "retry" || f.key == "for_each") {
			names[i] += "." + inner[0].key
		}
	}
	slices.Sort(names)
	e.say(true, path, "%s of %s: kept under metadata.forebay, and meaningless elsewhere", strings.Join(names, ", "), s.ID)
}

// around puts a task into what catches its failures and does it for each item.
func (e *exporter) around(s *flow.Step, task object, path string) object {
	if gives(s) && s.ForEach == nil && e.uses(s.ID) {
		of := "."
		if s.Kind == flow.KindWait {
			of = ".[0]"
		}
		task.set("export", object{{"as", "${ $context + {" + s.ID + ": " + of + "} }"}})
	}
	out := object{{s.ID, task}}
	if s.ForEach != nil {
		list := e.condition(s.ForEach.In, path+".for_each")
		if _, err := strconv.Atoi(s.ForEach.In); err == nil {
			e.say(false, path+".for_each", "a number of times has no counterpart: a for goes over a list")
		}
		each := object{}
		if when := task.get("if"); when != nil { // once, and not for each item
			each.set("if", when)
			out[0].value = slices.DeleteFunc(slices.Clone(task), func(f field) bool { return f.key == "if" })
		}
		each = append(each, object{{"for", object{{"each", "item"}, {"in", list}, {"at", "index"}}}, {"do", []any{out}}}...)
		if e.uses(s.ID) {
			inner := strings.TrimSuffix(strings.TrimPrefix(list, "${ "), " }")
			each.set("export", object{{"as", "${ $context + {" + s.ID + ": (" + inner + " | length | " + counted + ")} }"}})
		}
		out = object{{e.name(s.ID + "_each"), each}}
		e.say(true, path+".for_each", "a for does one item after the other")
	}
	catch := object{}
	if s.OnTimeout.Mode == flow.Skip || s.OnTimeout.Mode == flow.Goto && s.OnTimeout.Max == 0 {
		catch.set("errors", object{{"with", object{{"type", "https://serverlessworkflow.io/spec/1.0.0/errors/timeout"}}}})
	}
	if retry := retryOf(s); len(retry) > 0 {
		catch.set("retry", retry)
	}
	switch handlers := e.graph.handlers[s.ID]; {
	case len(handlers) > 0:
		catch.set("as", "error")
		before := e.translator.caught
		e.translator.caught = append(slices.Clone(before), s.ID)
		catch.set("do", e.block(e.graph.inOrder(handlers)))
		e.translator.caught = before
	case s.OnFailure.Mode == flow.Skip || s.OnTimeout.Mode == flow.Skip:
		catch.set("do", []any{})
	}
	if len(catch) == 0 {
		return out
	}
	return object{{e.name(s.ID + "_try"), object{{"try", []any{out}}, {"catch", catch}}}}
}

// counted is what a for each gives.
const counted = "{count: ., completed: ., failed: 0}"

func retryOf(s *flow.Step) object {
	out := object{}
	if s.Retry.Base > 0 {
		out.set("delay", asUnits(s.Retry.Base))
	}
	switch s.Retry.Kind {
	case "fixed":
		out.set("backoff", object{{"constant", object{}}})
	case "exponential":
		out.set("backoff", object{{"exponential", object{}}})
	}
	if s.Retry.Attempts > 0 {
		out.set("limit", object{{"attempt", object{{"count", s.Retry.Attempts}}}})
	}
	return out
}

// gives tells whether a step has an output.
func gives(s *flow.Step) bool {
	return s.Kind == flow.KindJob || s.Kind == flow.KindFlow || s.Kind == flow.KindWait
}

// uses tells whether anything asks what a step gave.
func (e *exporter) uses(id string) bool {
	text, err := encode(e.file)
	if err != nil {
		return true
	}
	if regexp.MustCompile(`steps\.` + id + `\b`).Match(text) {
		return true
	}
	for i := range e.d.Steps { // what gets all that was before
		s := &e.d.Steps[i]
		whole := s.With == nil && (s.Kind == flow.KindJob && s.ForEach == nil || s.Kind == flow.KindFlow && s.ForEach == nil) || s.Kind == flow.KindEmit && s.Emit.Data == nil
		if whole && slices.Contains(e.graph.before[s.ID], id) {
			return true
		}
	}
	return false
}

// arguments are what a job gets.
func (e *exporter) arguments(s *flow.Step, raw object, task *object, path string) {
	v := e.data(raw, "with", path)
	if s.ForEach != nil && !raw.has("with") {
		v = "${ $item }"
	}
	if _, isMap := v.(object); isMap {
		task.set("with", v)
		return
	}
	task.set("input", object{{"from", v}}) // with is a map there
}

// data is what a field of a step says, or all that is known where it says nothing.
func (e *exporter) data(of any, key, path string) any {
	fields, _ := of.(object)
	if !fields.has(key) {
		e.whole = true
		return e.everything(path)
	}
	v, err := e.translator.value(fields.get(key))
	if err != nil {
		e.say(false, path+"."+key, "%s", err)
	}
	return v
}

// everything is {input, steps}, which a handler gets of a step that says nothing else.
func (e *exporter) everything(path string) object {
	id := strings.Split(path, ".")[1]
	steps := object{}
	for _, before := range e.graph.inOrder(e.graph.before[id]) {
		if s, _ := e.d.Step(before); gives(s) {
			steps.set(before, object{{"state", "${ if ($context | has(" + strconv.Quote(before) + ")) then \"completed\" else \"skipped\" end }"}, {"output", "${ $context." + before + " }"}})
		}
	}
	return object{{"input", "${ $workflow.input }"}, {"steps", steps}}
}

func (e *exporter) run(s *flow.Step, raw object, task *object, path string) {
	version := "latest"
	if s.Flow.Version > 0 {
		version = fmt.Sprintf("0.%d.0", s.Flow.Version)
	}
	v := e.data(raw, "with", path)
	if s.ForEach != nil && !raw.has("with") {
		v = "${ $item }"
	}
	task.set("run", object{{"workflow", object{{"namespace", "forebay"}, {"name", s.Flow.Name}, {"version", version}, {"input", v}}}})
}

func (e *exporter) listen(s *flow.Step, raw object, task, kept *object, path string) {
	filter := object{{"type", s.Wait.Event}}
	if s.Wait.Approval {
		filter.set("type", approved)
		wait, _ := raw.get("wait").(object)
		kept.set("wait", object{{"approval", wait.get("approval")}})
	}
	if s.Wait.Match != "" {
		e.translator.event = true
		filter.set("data", e.condition(s.Wait.Match, path+".wait"))
		e.translator.event = false
	}
	task.set("listen", object{{"to", object{{"one", object{{"with", filter}}}}}})
	task.set("timeout", object{{"after", asUnits(s.Wait.Timeout)}})
}
