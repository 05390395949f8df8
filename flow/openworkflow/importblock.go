package openworkflow

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// task is one of a do, with its name and place.
type task struct {
	name string
	body object
	path string
}

func (i *importer) tasks(list []any, path string) (out []task) {
	for n, item := range list {
		at := fmt.Sprintf("%s[%d]", path, n)
		o, ok := item.(object)
		if !ok || len(o) != 1 {
			i.say(false, at, "a task is a map of one name; its body is below that")
			continue
		}
		body, ok := o[0].value.(object)
		if !ok {
			i.say(false, at, "the task %s has no body", o[0].key)
			continue
		}
		out = append(out, task{o[0].key, body, at + "." + o[0].key})
	}
	return out
}

// block makes steps of the tasks of a do. A then leads further on, to the end of the
// block, or to that of the run; nowhere back.
func (i *importer) block(list []any, path string, in flowing) flowing {
	tasks := i.tasks(list, path)
	waiting := map[string][]flowing{} // by name, who goes on there
	var exits []flowing
	on, falls := in, true
	jump := func(from flowing, to string, at int, path string) {
		switch to {
		case "exit":
			exits = append(exits, from)
		case "end":
			if path != "" && len(from.entries) > 0 {
				i.ends(from)
			}
		default:
			n := slices.IndexFunc(tasks, func(t task) bool { return t.name == to })
			if n <= at {
				i.say(false, path, "then leads to %s, which is not further on in the same do", to)
				return
			}
			waiting[to] = append(waiting[to], from)
		}
	}
	for n, t := range tasks {
		from := waiting[t.name]
		if falls {
			from = append(from, on)
		}
		if len(from) == 0 {
			i.say(true, t.path, "nothing leads to the task %s; it is left out", t.name)
			continue
		}
		at := merged(from)
		if list, ok := t.body.get("switch").([]any); ok {
			falls = false
			next := "exit"
			if n+1 < len(tasks) {
				next = tasks[n+1].name
			}
			for _, c := range i.choices(t, list, at) {
				if c.to == "continue" {
					c.to = next
				}
				jump(c.from, c.to, n, c.path)
			}
			continue
		}
		on = i.task(t, at)
		falls = len(on.entries) > 0
		if then, ok := t.body.get("then").(string); ok && then != "continue" {
			jump(on, then, n, t.path+".then")
			falls = false
		}
	}
	if falls {
		exits = append(exits, on)
	}
	return merged(exits)
}

// ends lets a case that leads to the end of the run lead to a step that does nothing.
func (i *importer) ends(from flowing) {
	if slices.ContainsFunc(from.entries, func(e entry) bool { return e.of >= 0 }) {
		i.add("ends", object{{"join", "all"}}, from.entries)
	}
}

// merged is where several ways meet. Data that differ have no one meaning there.
func merged(from []flowing) flowing {
	if len(from) == 0 {
		return flowing{data: scope{variables: map[string]meaning{}}}
	}
	out := flowing{data: from[0].data}
	context := from[0].data.variables["context"]
	for n, f := range from {
		for _, e := range f.entries {
			if !slices.Contains(out.entries, e) {
				out.entries = append(out.entries, e)
			}
		}
		if n > 0 {
			if more := f.data.variables["context"]; more.fields != nil && context.fields != nil {
				context = context.plus(more)
			}
			if f.data.here.text() != out.data.here.text() {
				out.data.reason = "several tasks lead here, each with data of its own"
			}
		}
	}
	return flowing{out.entries, out.data.with("context", context)}
}

// with is a scope with one variable more.
func (s scope) with(name string, m meaning) scope {
	s.variables = maps.Clone(s.variables)
	s.variables[name] = m
	return s
}

func (s scope) at(here meaning) scope {
	s.here, s.reason = here, ""
	return s
}

type chosen struct {
	from flowing
	to   string
	path string
}

// choices makes a branch of a switch.
func (i *importer) choices(t task, list []any, in flowing) (out []chosen) {
	i.only(t.body, t.path, "switch", "metadata", "input", "output")
	in.data = i.narrowed(t, in.data)
	s := i.add(t.name, object{{"branch", []any{}}}, in.entries)
	var cases, last []any
	for n, c := range i.tasks(list, t.path+".switch") {
		i.only(c.body, c.path, "when", "then")
		made := object{}
		if c.body.has("when") {
			made.set("when", i.expr(c.body.get("when"), in.data, c.path+".when"))
		} else if last = []any{made}; n < len(list)-1 {
			i.say(true, c.path, "the case without a condition goes last")
		}
		to, _ := c.body.get("then").(string)
		if to == "" {
			to = "continue"
		}
		cases = append(cases, made)
		out = append(out, chosen{flowing{[]entry{{s.id, n}}, in.data}, to, c.path + ".then"})
	}
	if len(last) == 0 { // what fits nothing goes on
		cases = append(cases, object{})
		out = append(out, chosen{flowing{[]entry{{s.id, len(cases) - 1}}, in.data}, "continue", t.path})
	}
	s.fields.set("branch", cases)
	return out
}

// narrowed is what a task sees, after its input.from.
func (i *importer) narrowed(t task, data scope) scope {
	input, ok := t.body.get("input").(object)
	if !ok {
		return data
	}
	i.only(input, t.path+".input", "from")
	if !input.has("from") {
		return data
	}
	here := i.asMeaning(input.get("from"), data, t.path+".input.from")
	return data.at(here).with("input", here)
}

// after reads a timeout.
func (i *importer) after(v any, path string) (time.Duration, bool) {
	o, _ := v.(object)
	d, ok := durationOf(o.get("after"))
	if !ok {
		i.say(false, path, "a timeout is {after: duration}: a map of days to milliseconds, or ISO 8601 such as PT15M")
	}
	return d, ok
}
