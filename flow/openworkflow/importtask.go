package openworkflow

import (
	"fmt"
	"slices"
	"strings"
)

// kinds of tasks, and who reads them.
func (i *importer) task(t task, in flowing) flowing {
	data := i.narrowed(t, in.data)
	from := flowing{in.entries, data}
	outer := in
	var out flowing
	made := len(i.steps)
	switch {
	case t.body.has("call"):
		out = i.call(t, from)
	case t.body.has("for"): // it has a do as well
		out = i.each(t, from)
	case t.body.has("do"):
		list, _ := t.body.get("do").([]any)
		i.only(t.body, t.path, "do", "if", "then", "input", "output", "export", "metadata")
		out = i.block(list, t.path+".do", from)
	case t.body.has("fork"):
		out = i.fork(t, from)
	case t.body.has("try"):
		out = i.try(t, from)
	case t.body.has("set"):
		i.only(t.body, t.path, "set", "then", "input", "output", "export", "metadata")
		out = flowing{in.entries, data.at(i.asMeaning(t.body.get("set"), data, t.path+".set"))}
	case t.body.has("wait"):
		out = i.wait(t, from)
	case t.body.has("listen"):
		out = i.listen(t, from)
	case t.body.has("emit"):
		out = i.emit(t, from)
	case t.body.has("raise"):
		out = i.raise(t, from)
	case t.body.has("run"):
		out = i.run(t, from)
	default:
		i.say(false, t.path, "the task %s is of no kind that is read: call, do, emit, for, fork, listen, raise, run, set, switch, try, wait", t.name)
		return in
	}
	out.data = i.seen(t, out.data, in.data)
	if t.body.has("if") {
		out = i.conditional(t, outer, out, i.steps[made:])
	}
	return out
}

// seen is what the next task sees: after output.as and export.as.
func (i *importer) seen(t task, out, in scope) scope {
	out.variables = in.with("context", out.variables["context"]).variables
	if o, ok := t.body.get("output").(object); ok {
		i.only(o, t.path+".output", "as")
		if o.has("as") {
			out = out.at(i.asMeaning(o.get("as"), out, t.path+".output.as"))
		}
	}
	if o, ok := t.body.get("export").(object); ok {
		i.only(o, t.path+".export", "as")
		if text, ok := o.get("as").(string); ok && strings.HasSuffix(text, counted+")} }") { // as we write it
			return i.exported(out, strings.TrimPrefix(text, "${ $context + {"))
		}
		context := i.asMeaning(o.get("as"), out, t.path+".export.as")
		if context.fields == nil {
			i.say(false, t.path+".export.as", "the context is to be a map whose fields are known")
			return out
		}
		for _, key := range context.fields.keys { // there if its step has run
			id, is := strings.CutPrefix(context.fields.values[key].text(), "steps.")
			if id, is2 := strings.CutSuffix(id, ".output"); is && is2 && identifier.MatchString(id) {
				context.fields.mark(key, "steps."+id+".state == 'completed'")
			}
		}
		out = out.with("context", context)
	}
	return out
}

func (k *known) mark(key, present string) {
	if k.present == nil {
		k.present = map[string]string{}
	}
	k.present[key] = present
}

// exported is what a for each of ours gave.
func (i *importer) exported(out scope, text string) scope {
	id, _, _ := strings.Cut(text, ":")
	more := &known{}
	more.set(id, plain("steps."+id+".output"))
	more.mark(id, "steps."+id+".state == 'completed'")
	return out.with("context", out.variables["context"].plus(meaning{fields: more}))
}

// conditional leaves out what was made of a task where its if does not hold; what follows
// goes on all the same.
func (i *importer) conditional(t task, in, out flowing, made []*step) flowing {
	when := i.expr(t.body.get("if"), in.data, t.path+".if")
	first := 0
	for _, s := range made {
		begins := len(s.needs) > 0
		for _, n := range s.needs {
			begins = begins && slices.Contains(in.entries, entry{n, -1})
		}
		if begins || len(s.needs) == 0 { // a case leads there
			if s.fields.has("when") {
				s.fields.set("when", "("+when+") && ("+fmt.Sprint(s.fields.get("when"))+")")
			} else {
				s.fields.set("when", when)
			}
			first++
		}
		s.maybe = true
	}
	if first == 0 {
		i.say(false, t.path+".if", "a condition of %s, which becomes no step, is not among what crosses", t.name)
	}
	for _, e := range in.entries {
		if e.of >= 0 {
			i.say(true, t.path+".if", "where %s is left out, so is what only it leads to", t.name)
		} else if !slices.Contains(out.entries, e) {
			out.entries = append(out.entries, e)
		}
	}
	return out
}

// single makes one step; more of it comes from our own metadata.
func (i *importer) single(t task, fields object, in flowing, keys ...string) (*step, flowing) {
	i.only(t.body, t.path, append(keys, "if", "then", "input", "output", "export", "metadata")...)
	s := i.add(t.name, fields, in.entries)
	for _, f := range ourOwn(t.body) {
		if slices.Contains([]string{"title", "queue", "priority", "group", "limit_key", "compensate", "on_failure", "on_timeout", "retry", "for_each", "with"}, f.key) {
			s.fields.set(f.key, f.value)
		}
	}
	if ourOwn(t.body).get("context") == true { // as a step of ours that says nothing else
		s.fields = slices.DeleteFunc(s.fields, func(f field) bool { return f.key == "with" })
		if emit, ok := s.fields.get("emit").(object); ok {
			s.fields.set("emit", emit.get("type"))
		}
	}
	if t.body.has("timeout") && slices.Contains(keys, "timeout") && !s.fields.has("wait") {
		if d, ok := i.after(t.body.get("timeout"), t.path+".timeout"); ok {
			s.fields.set("timeout", ours(d))
		}
	}
	return s, flowing{[]entry{{s.id, -1}}, in.data.at(plain("steps." + s.id + ".output"))}
}

func (i *importer) call(t task, in flowing) flowing {
	kind, _ := t.body.get("call").(string)
	fields := object{{"use", kind}}
	switch with := t.body.get("with"); {
	case with != nil:
		fields.set("with", i.value(with, in.data, t.path+".with"))
	case t.body.has("input"):
		fields.set("with", "${"+in.data.here.text()+"}")
	}
	if slices.Contains([]string{"http", "grpc", "openapi", "asyncapi"}, kind) {
		i.say(true, t.path+".call", "%s becomes a job of that kind: a handler has to make the call", kind)
	}
	_, out := i.single(t, fields, in, "call", "with", "timeout")
	return out
}

func (i *importer) fork(t task, in flowing) flowing {
	i.only(t.body, t.path, "fork", "if", "then", "input", "output", "export", "metadata")
	fork, _ := t.body.get("fork").(object)
	list, _ := fork.get("branches").([]any)
	if len(list) == 0 {
		i.say(false, t.path+".fork", "a fork has branches")
	}
	var ends []flowing
	for _, b := range i.tasks(list, t.path+".fork.branches") {
		out := i.task(b, in)
		ends = append(ends, out)
	}
	out := merged(ends)
	out.data.reason = "what a fork gives is a list, which is not among what crosses; export what is needed of its branches"
	if fork.get("compete") == true {
		s := i.add(t.name, object{{"join", "any"}}, out.entries)
		i.say(true, t.path+".fork.compete", "the first lets %s go on; the others are not stopped", s.id)
		out.entries = []entry{{s.id, -1}}
	}
	return out
}

// each makes a for_each of a for whose body is one task.
func (i *importer) each(t task, in flowing) flowing {
	i.only(t.body, t.path, "for", "do", "if", "then", "input", "output", "export", "metadata")
	of, _ := t.body.get("for").(object)
	i.only(of, t.path+".for", "each", "in", "at")
	list, _ := t.body.get("do").([]any)
	body := i.tasks(list, t.path+".do")
	if len(body) != 1 || !body[0].body.has("call") && !body[0].body.has("run") {
		i.say(false, t.path+".do", "a for is read whose body is one call or one run; more is a workflow of its own")
		return in
	}
	if body[0].body.has("if") {
		i.say(false, body[0].path+".if", "a condition of each item is not among what crosses; filter the list")
	}
	name := func(key, usual string) string {
		if s, ok := of.get(key).(string); ok {
			return s
		}
		return usual
	}
	data := in.data.with(name("each", "item"), plain("item")).with(name("at", "index"), plain("index"))
	made := len(i.steps)
	out := i.task(body[0], flowing{in.entries, data})
	s := i.steps[made]
	each := object{{"in", i.expr(of.get("in"), in.data, t.path+".for.in")}}
	if more, ok := s.fields.get("for_each").(object); ok {
		each = append(each, more...)
	} else {
		each.set("max_in_flight", 1)
	}
	s.fields.set("for_each", each)
	if !s.fields.has("with") {
		s.fields.set("with", "${item}")
	}
	out.data.variables = in.data.with("context", out.data.variables["context"]).variables
	out.data.reason = "what a for gives is that of its last item, which is not among what crosses"
	return out
}
