package openworkflow

import (
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// Export writes a flow as an Open Workflow document. Problems are what cannot cross; with
// an error among them, or where the flow itself is not sound, there is no document.
func Export(src []byte) ([]byte, flow.Problems, error) {
	d, _ := flow.Parse(src)
	if _, problems := flow.Load(src, flow.Known{}); d == nil || len(problems.Errors()) > 0 {
		return nil, problems, problems.Errors()
	}
	raw, places, problems := flow.Read(src)
	if len(problems) > 0 {
		return nil, problems, problems
	}
	file, err := decode(raw)
	if err != nil {
		return nil, nil, forebay.Errorf(forebay.CodeInternal, "openworkflow: export", "%w", err)
	}
	t, err := newTranslator()
	if err != nil {
		return nil, nil, forebay.Errorf(forebay.CodeInternal, "openworkflow: export", "%w", err)
	}
	e := &exporter{notes: notes{places: places}, translator: t, d: d, file: file.(object), graph: newGraph(d), used: map[string]bool{}}
	for i := range d.Steps {
		e.used[d.Steps[i].ID] = true
	}
	doc := e.document()
	all := e.sorted()
	if len(all.Errors()) > 0 {
		return nil, all, all.Errors()
	}
	out, err := encode(doc)
	if err != nil {
		return nil, all, forebay.Errorf(forebay.CodeInternal, "openworkflow: export", "%w", err)
	}
	text, err := flow.YAML(out)
	return text, all, err
}

type exporter struct {
	notes
	translator *translator
	d          *flow.Definition
	file       object // as it is written
	graph      *graph
	used       map[string]bool // names of tasks
	whole      bool            // the step at hand gets all that was before it
}

// name is one that no other task has.
func (e *exporter) name(s string) string {
	name := s
	for n := 2; e.used[name]; n++ {
		name = s + "_" + itoa(n)
	}
	e.used[name] = true
	return name
}

func (e *exporter) document() object {
	version := "0.1.0"
	if e.d.Version > 0 {
		version = "0." + itoa(e.d.Version) + ".0"
	}
	head := object{{"dsl", Version}, {"namespace", "forebay"}, {"name", strings.ToLower(notName.ReplaceAllString(e.d.Name, "-"))}, {"version", version}}
	meta := object{}
	if head.get("name") != e.d.Name {
		meta.set("name", e.d.Name)
	}
	if e.d.Description != "" {
		head.set("summary", e.d.Description)
	}
	for _, key := range []string{"context"} {
		if e.file.has(key) {
			meta.set(key, e.file.get(key))
			e.say(true, key, "%s is kept under metadata.forebay: there is nothing like it there", key)
		}
	}
	if len(meta) > 0 {
		head.set("metadata", object{{own, meta}})
	}
	doc := object{{"document", head}}
	if schema := e.file.get("input"); schema != nil {
		doc.set("input", object{{"schema", object{{"format", "json"}, {"document", schema}}}})
	}
	if e.d.Timeout > 0 {
		doc.set("timeout", object{{"after", asUnits(e.d.Timeout)}})
	}
	var all []string
	for i := range e.d.Steps {
		if id := e.d.Steps[i].ID; e.graph.caught[id] == "" {
			all = append(all, id)
		}
	}
	doc.set("do", e.block(all))
	if output := e.file.get("output"); output != nil {
		if v, err := e.translator.value(output); err != nil {
			e.say(false, "output", "%s", err)
		} else {
			doc.set("output", object{{"as", v}})
		}
	}
	return doc
}

// block writes steps as the tasks of one do: what stands side by side as a fork, the
// rest one after the other.
func (e *exporter) block(steps []string) []any {
	g := e.graph
	parts := g.components(steps)
	if len(parts) > 1 {
		return []any{e.fork(parts)}
	}
	if cond := e.guarded(steps); cond != "" { // what only it leads to is left out with it
		return []any{e.conditional(steps)}
	}
	if len(steps) == 1 {
		return e.step(steps[0])
	}
	if at := g.bottleneck(steps); at != "" {
		before, after := g.around(steps, at)
		var out []any
		if len(before) > 0 {
			out = append(out, e.block(before)...)
		}
		if s, _ := e.d.Step(at); s.Kind == flow.KindBranch {
			return append(out, e.choice(s, after)...)
		}
		out = append(out, e.step(at)...)
		if len(after) > 0 {
			out = append(out, e.block(after)...)
		}
		return out
	}
	first, rest := g.level(steps)
	for _, id := range rest {
		for _, from := range first {
			if !slices.Contains(g.before[id], from) && slices.ContainsFunc(g.edges[id], func(n string) bool { return slices.Contains(first, n) }) {
				e.say(true, "steps."+id, "%s waits for %s too: what leads there is no nest of forks, which is all that there is", id, from)
			}
		}
	}
	return append(e.block(first), e.block(rest)...)
}

func (e *exporter) fork(parts [][]string) any {
	var branches []any
	for _, p := range parts {
		if tasks := e.block(p); len(tasks) > 0 {
			branches = append(branches, e.single(tasks, p[0]))
		}
	}
	return object{{e.name(parts[0][0] + "_and_more"), object{{"fork", object{{"compete", false}, {"branches", branches}}}}}}
}

// single makes one task of several.
func (e *exporter) single(tasks []any, of string) object {
	if len(tasks) == 1 {
		return tasks[0].(object)
	}
	return object{{e.name(of + "_and_then"), object{{"do", tasks}}}}
}

// guarded is the condition of the step with which all others of a block begin.
func (e *exporter) guarded(steps []string) string {
	s, _ := e.d.Step(steps[0])
	if s.When == "" || len(steps) == 1 || !e.graph.dominates(steps[0], steps) {
		return ""
	}
	return s.When
}

func (e *exporter) conditional(steps []string) object {
	s, _ := e.d.Step(steps[0])
	when := s.When
	s.When = ""
	task := object{{"if", e.condition(when, "steps."+s.ID+".when")}, {"do", e.block(steps)}}
	s.When = when
	return object{{e.name(s.ID + "_and_then"), task}}
}

func (e *exporter) condition(cel, path string) string {
	out, err := e.translator.jq(cel)
	if err != nil {
		e.say(false, path, "%s", err)
	}
	return "${ " + out + " }"
}

// choice writes a branch, what its cases lead to, and what follows them all.
func (e *exporter) choice(s *flow.Step, after []string) []any {
	g := e.graph
	join := g.joins(after)
	inner, rest := after, []string(nil)
	if join != "" {
		inner, rest = g.around(after, join)
		rest = append([]string{join}, rest...)
	}
	rest = slices.DeleteFunc(rest, func(id string) bool { return id == "" })
	next := "exit"
	var following []any
	if len(rest) > 0 {
		following = e.block(rest)
	}
	if len(following) > 0 {
		next = following[0].(object)[0].key
	}
	out := []any{nil}
	entry := map[string]string{} // by step, the task that has it
	for i, c := range s.Cases {
		var mine []string
		for _, id := range c.To {
			if slices.Contains(inner, id) && entry[id] == "" {
				mine = append(mine, g.within(id, inner)...)
			}
		}
		slices.Sort(mine)
		mine = g.inOrder(slices.Compact(mine))
		if len(mine) == 0 {
			continue
		}
		tasks := e.block(mine)
		if len(tasks) == 0 {
			continue
		}
		task := e.single(tasks, mine[0])
		for _, id := range mine {
			if entry[id] != "" {
				e.say(false, "steps."+s.ID+".branch["+itoa(i)+"]", "%s is led to by two cases that do not lead to the same there", id)
			}
			entry[id] = task[0].key
		}
		task[0].value = append(task[0].value.(object), field{"then", next})
		out = append(out, task)
	}
	out[0] = object{{s.ID, e.cases(s, entry, next)}}
	if last := len(out) - 1; last > 0 { // it goes on by itself
		task := out[last].(object)
		body := task[0].value.(object)
		task[0].value = body[:len(body)-1]
	}
	return append(out, following...)
}

func (e *exporter) cases(s *flow.Step, entry map[string]string, next string) object {
	var list []any
	for i, c := range s.Cases {
		body := object{}
		name := "case" + itoa(i+1)
		if c.When == "" {
			name = "default"
		} else {
			body.set("when", e.condition(c.When, "steps."+s.ID+".branch["+itoa(i)+"].when"))
		}
		to := next
		for _, id := range c.To {
			if entry[id] != "" {
				to = entry[id]
			}
		}
		body.set("then", to)
		list = append(list, object{{name, body}})
	}
	if s.Cases[len(s.Cases)-1].When != "" {
		list = append(list, object{{"default", object{{"then", next}}}})
	}
	out := object{{"switch", list}}
	if s.When != "" {
		e.say(false, "steps."+s.ID+".when", "a branch with a condition has no counterpart: make it one of its cases")
	}
	return out
}
