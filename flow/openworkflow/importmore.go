package openworkflow

import (
	"fmt"
	"strings"
)

// try makes of what catches the failure of one task what becomes of that step.
func (i *importer) try(t task, in flowing) flowing {
	i.only(t.body, t.path, "try", "catch", "if", "then", "input", "output", "export", "metadata")
	list, _ := t.body.get("try").([]any)
	catch, _ := t.body.get("catch").(object)
	at := t.path + ".catch"
	i.only(catch, at, "errors", "as", "retry", "do")
	made := len(i.steps)
	out := i.block(list, t.path+".try", in)
	if len(i.steps) != made+1 {
		i.say(false, t.path+".try", "a try is read that has one task; it has what makes %d steps", len(i.steps)-made)
		return out
	}
	s := i.steps[made]
	timeout := false
	if errors, ok := catch.get("errors").(object); ok {
		with, _ := errors.get("with").(object)
		timeout = strings.HasSuffix(fmt.Sprint(with.get("type")), "/errors/timeout") && s.fields.has("wait")
		if !timeout {
			i.say(true, at+".errors", "which errors are meant is left out: all failures of a step are")
		}
	}
	if retry := catch.get("retry"); retry != nil {
		i.retry(s, retry, at+".retry")
	}
	field := "on_failure"
	if timeout {
		field = "on_timeout"
	}
	handlers, there := catch.get("do").([]any)
	switch {
	case len(handlers) == 0 && (there || !catch.has("retry")):
		s.fields.set(field, "skip")
	case len(handlers) > 0:
		name, _ := catch.get("as").(string)
		if name == "" {
			name = "error"
		}
		err := &known{}
		err.set("type", plain("steps."+s.id+".error.code"))
		err.set("detail", plain("steps."+s.id+".error.message"))
		err.set("title", plain("steps."+s.id+".error.message"))
		first := len(i.steps)
		handled := i.block(handlers, at+".do", flowing{nil, in.data.with(name, meaning{fields: err})})
		if len(i.steps) == first {
			i.say(false, at+".do", "what is done about a failure needs a task that becomes a step")
			return out
		}
		if to := i.steps[first].id; !s.fields.has(field) {
			s.fields.set(field, object{{"goto", to}})
		}
		data := out.data
		data.reason = "it is what the task gave, or what was done about its failure"
		if len(handled.entries) > 0 {
			data.variables = merged([]flowing{out, handled}).data.variables
		}
		out = flowing{append(out.entries, handled.entries...), data}
	}
	return out
}

func (i *importer) retry(s *step, v any, path string) {
	o, ok := v.(object)
	if !ok {
		i.say(false, path, "a retry is read that is written where it is used")
		return
	}
	i.only(o, path, "delay", "backoff", "limit")
	retry := object{}
	limit, _ := o.get("limit").(object)
	attempt, _ := limit.get("attempt").(object)
	i.only(limit, path+".limit", "attempt")
	i.only(attempt, path+".limit.attempt", "count")
	if n := attempt.get("count"); n != nil {
		retry.set("attempts", n)
	}
	backoff, _ := o.get("backoff").(object)
	for _, f := range backoff {
		switch f.key {
		case "constant":
			retry.set("backoff", "fixed")
		case "exponential":
			retry.set("backoff", "exponential")
		default:
			i.say(true, path+".backoff."+f.key, "%s becomes exponential", f.key)
			retry.set("backoff", "exponential")
		}
	}
	if o.has("delay") {
		if d, ok := durationOf(o.get("delay")); ok {
			retry.set("base", ours(d))
		} else {
			i.say(false, path+".delay", "the delay is no duration")
		}
	}
	if more, ok := s.fields.get("retry").(object); ok {
		for _, f := range more {
			retry.set(f.key, f.value)
		}
	}
	s.fields.set("retry", retry)
}

func (i *importer) wait(t task, in flowing) flowing {
	d, ok := durationOf(t.body.get("wait"))
	if !ok {
		i.say(false, t.path+".wait", "a wait is a duration: a map of days to milliseconds, or ISO 8601 such as PT15M")
	}
	before := in.data
	_, out := i.single(t, object{{"delay", ours(d)}}, in, "wait")
	out.data = before // it changes nothing
	return out
}

func (i *importer) listen(t task, in flowing) flowing {
	listen, _ := t.body.get("listen").(object)
	to, _ := listen.get("to").(object)
	i.only(listen, t.path+".listen", "to")
	filter, ok := to.get("one").(object)
	if any, list := to.get("any").([]any); list && len(any) == 1 {
		filter, ok = any[0].(object)
	}
	with, _ := filter.get("with").(object)
	kind, _ := with.get("type").(string)
	if !ok || kind == "" {
		i.say(false, t.path+".listen", "a listen is read that waits for one event of a type")
	}
	i.only(filter, t.path+".listen.to.one", "with")
	i.only(with, t.path+".listen.to.one.with", "type", "data")
	event := object{{"type", kind}}
	if match, ok := with.get("data").(string); ok {
		event.set("match", i.expr(match, in.data.at(plain("event")), t.path+".listen.to.one.with.data"))
	} else if with.has("data") {
		i.say(false, t.path+".listen.to.one.with.data", "what an event must be like is read as one expression over its data")
	}
	wait := object{{"event", event}}
	if more, ok := ourOwn(t.body).get("wait").(object); ok && kind == approved {
		wait = object{{"approval", more.get("approval")}}
	}
	if t.body.has("timeout") {
		if d, ok := i.after(t.body.get("timeout"), t.path+".timeout"); ok {
			wait.set("timeout", ours(d))
		}
	} else {
		wait.set("timeout", "30d")
		i.say(true, t.path, "the listen has no timeout; 30 days are set")
	}
	s, out := i.single(t, object{{"wait", wait}}, in, "listen", "timeout")
	one := plain("steps." + s.id + ".output")
	out.data = out.data.at(meaning{cel: "[" + one.cel + "]", simple: true, only: &one})
	return out
}

func (i *importer) emit(t task, in flowing) flowing {
	emit, _ := t.body.get("emit").(object)
	event, _ := emit.get("event").(object)
	with, _ := event.get("with").(object)
	kind, _ := with.get("type").(string)
	if kind == "" {
		i.say(false, t.path+".emit", "an event needs a type")
	}
	for _, f := range with {
		if f.key != "type" && f.key != "data" && f.key != "source" {
			i.say(true, t.path+".emit.event.with."+f.key, "%s of an event is left out", f.key)
		}
	}
	made := object{{"type", kind}, {"data", nil}}
	if with.has("data") {
		made.set("data", i.value(with.get("data"), in.data, t.path+".emit.event.with.data"))
	}
	before := in.data
	_, out := i.single(t, object{{"emit", made}}, in, "emit")
	out.data = before
	return out
}

func (i *importer) raise(t task, in flowing) flowing {
	raise, _ := t.body.get("raise").(object)
	e, ok := raise.get("error").(object)
	reason := ""
	for _, key := range []string{"title", "detail", "type"} {
		if text, is := e.get(key).(string); is && reason == "" {
			reason = text
		}
	}
	if !ok || reason == "" {
		i.say(false, t.path+".raise", "an error is read that is written where it is raised, with a title")
	}
	if strings.Contains(reason, "${") {
		i.say(false, t.path+".raise", "the reason of a dead letter has no expressions in it")
	}
	_, _ = i.single(t, object{{"dead_letter", reason}}, in, "raise")
	return flowing{nil, in.data}
}

func (i *importer) run(t task, in flowing) flowing {
	run, _ := t.body.get("run").(object)
	w, ok := run.get("workflow").(object)
	name, _ := w.get("name").(string)
	if !ok || name == "" {
		i.say(false, t.path+".run", "a run is read that is of a workflow; containers, scripts and shells are handlers here")
	}
	i.only(w, t.path+".run.workflow", "namespace", "name", "version", "input")
	var ref any = name
	version := 0
	if text, ok := w.get("version").(string); ok && text != "latest" {
		if _, err := fmt.Sscanf(text, "0.%d.0", &version); err != nil || version == 0 {
			i.say(true, t.path+".run.workflow.version", "the version %s is left out: the latest is run", text)
		} else {
			ref = object{{"name", name}, {"version", version}}
		}
	}
	fields := object{{"flow", ref}}
	if w.has("input") {
		fields.set("with", i.value(w.get("input"), in.data, t.path+".run.workflow.input"))
	} else {
		fields.set("with", "${"+in.data.here.text()+"}")
	}
	_, out := i.single(t, fields, in, "run")
	return out
}
