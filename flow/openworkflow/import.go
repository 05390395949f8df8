package openworkflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// Import writes an Open Workflow document as a flow. Problems are what cannot cross, and
// what is wrong with the document; with an error among them there is no file.
func Import(doc []byte) ([]byte, flow.Problems, error) {
	raw, places, problems := flow.Read(doc)
	if len(problems) > 0 {
		return nil, problems, problems
	}
	read, err := decode(raw)
	if err != nil {
		return nil, nil, forebay.Errorf(forebay.CodeInternal, "openworkflow: import", "%w", err)
	}
	i := &importer{notes: notes{places: places}, ids: map[string]bool{}}
	root, ok := read.(object)
	if !ok {
		i.say(false, "", "the document is no map; it needs document and do")
	}
	file := i.file(root)
	all := i.sorted()
	if len(all.Errors()) > 0 {
		return nil, all, all.Errors()
	}
	out, err := encode(file)
	if err != nil {
		return nil, all, forebay.Errorf(forebay.CodeInternal, "openworkflow: import", "%w", err)
	}
	text, err := flow.YAML(out)
	if err != nil {
		return nil, all, err
	}
	if _, wrong := flow.Load(text, flow.Known{}); len(wrong.Errors()) > 0 {
		for _, p := range wrong.Errors() { // of the file that was made; its places are not the document's
			i.say(false, "", "the flow that it makes is not sound: %s: %s (%s)", p.Path, p.Text, p.Code)
		}
		return nil, i.sorted(), i.sorted().Errors()
	}
	return text, all, nil
}

type importer struct {
	notes
	steps  []*step
	ids    map[string]bool
	caught []string
}

// step is one that is made.
type step struct {
	id     string
	fields object
	needs  []string
	maybe  bool // it may be left out, with what only it leads to
}

// entry is what a task begins after: a step, or the case of a switch.
type entry struct {
	step string // empty: the beginning of the run
	of   int    // its case; -1: it ends
}

// flowing is what comes out of tasks: after what the next begins, and its data.
type flowing struct {
	entries []entry
	data    scope
}

var start = entry{"", -1}

func (i *importer) file(root object) object {
	head, _ := root.get("document").(object)
	name := fmt.Sprint(head.get("name"))
	switch dsl := fmt.Sprint(head.get("dsl")); {
	case len(head) == 0:
		i.say(false, "", "document is missing: it says dsl, namespace, name and version")
	case !strings.HasPrefix(dsl, "1.0."):
		i.say(false, "document.dsl", "the DSL %s is not read; 1.0 is", dsl)
	case name == "" || head.get("name") == nil:
		i.say(false, "document", "document.name is missing")
	}
	i.only(root, "", "document", "input", "output", "timeout", "do")
	i.only(head, "document", "dsl", "namespace", "name", "version", "title", "summary", "metadata")
	out := object{{"flow", name}}
	if text, ok := head.get("summary").(string); ok && text != "" {
		out.set("description", text)
	} else if text, ok := head.get("title").(string); ok && text != "" {
		out.set("description", text)
	}
	for _, f := range ourOwn(head) {
		switch f.key {
		case "name":
			out.set("flow", f.value)
		case "context":
			out.set("context", f.value)
		}
	}
	if input, ok := root.get("input").(object); ok {
		i.only(input, "input", "schema")
		if schema, ok := input.get("schema").(object); ok && schema.has("document") {
			out.set("input", schema.get("document"))
		} else {
			i.say(true, "input", "a schema that is not in the document itself is left out")
		}
	}
	if root.has("timeout") {
		if d, ok := i.after(root.get("timeout"), "timeout"); ok {
			out.set("timeout", ours(d))
		}
	}
	tasks, _ := root.get("do").([]any)
	if len(tasks) == 0 {
		i.say(false, "do", "do is missing; it lists tasks")
		return out
	}
	input := plain("input")
	begin := flowing{entries: []entry{start}, data: scope{here: input, variables: map[string]meaning{
		"workflow": {fields: &known{keys: []string{"input", "id", "definition"}, values: map[string]meaning{"input": input, "id": plain("run.id"), "definition": {fields: &known{values: map[string]meaning{"document": {fields: &known{values: map[string]meaning{"name": plain("run.flow")}}}}}}}}},
		"input":    input, "context": {fields: &known{}},
	}}}
	end := i.block(tasks, "do", begin)
	i.ends(end)
	steps := object{}
	for n := 0; n < len(i.steps); n++ { // one may come with it
		s := i.steps[n]
		if needs := i.pruned(s); len(needs) > 0 {
			s.fields.set("needs", needs)
		}
		steps.set(s.id, s.fields)
	}
	out.set("steps", steps)
	if output, ok := root.get("output").(object); ok {
		i.only(output, "output", "as")
		out.set("output", i.value(output.get("as"), end.data, "output.as"))
	}
	return out
}

// ourOwn is what stands under metadata.forebay.
func ourOwn(of object) object {
	meta, _ := of.get("metadata").(object)
	mine, _ := meta.get(own).(object)
	return mine
}

// only tells of fields that are not read.
func (i *importer) only(o object, path string, keys ...string) {
	for _, f := range o {
		if !slices.Contains(keys, f.key) {
			at := f.key
			if path != "" {
				at = path + "." + f.key
			}
			i.say(true, at, "%s is left out: there is nothing like it in a flow", f.key)
		}
	}
}

func (i *importer) id(name string) string {
	id := idOf(name)
	if slices.Contains(reserved, id) {
		id += "_"
	}
	for n := 2; i.ids[id]; n++ {
		id = idOf(name)
		id = id[:min(len(id), flow.MaxStepBytes-5)] + "_" + itoa(n)
	}
	i.ids[id] = true
	return id
}

// reserved words of CEL cannot be ids.
var reserved = strings.Fields("as break const continue else false for function if import in let loop namespace null package return true var void while")

// add makes a step that begins after entries.
func (i *importer) add(name string, fields object, after []entry) *step {
	s := &step{id: i.id(name), fields: fields}
	i.steps = append(i.steps, s)
	i.follow(s, after)
	return s
}

// follow lets a step begin after entries: by its needs, or as a case of a branch.
func (i *importer) follow(s *step, after []entry) {
	for _, e := range after {
		if e.of < 0 {
			if !slices.Contains(s.needs, e.step) {
				s.needs = append(s.needs, e.step)
			}
			continue
		}
		for _, other := range i.steps {
			if other.id == e.step {
				cases := other.fields.get("branch").([]any)
				c := cases[e.of].(object)
				to, _ := c.get("to").([]string)
				c.set("to", append(to, s.id))
				cases[e.of] = c
			}
		}
	}
}

// pruned are the needs of a step without those that come before others of them anyway.
func (i *importer) pruned(s *step) []string {
	sure := func(id string) bool { // it runs, or the run ends
		for _, o := range i.steps {
			if o.id == id {
				return !o.maybe
			}
		}
		return false
	}
	var out []string
	for _, n := range s.needs {
		covered := slices.ContainsFunc(s.needs, func(o string) bool {
			return o != n && o != "" && sure(o) && (n == "" || slices.Contains(i.before(o, 0), n))
		})
		if n == "" && len(s.needs) == 1 || covered {
			continue
		}
		if n == "" {
			n = i.beginning()
		}
		out = append(out, n)
	}
	return out
}

// before are the steps that a step is sure to come after.
func (i *importer) before(id string, depth int) (all []string) {
	for _, s := range i.steps {
		if s.id != id || depth > len(i.steps) {
			continue
		}
		for _, n := range s.needs {
			if n != "" {
				all = append(append(all, n), i.before(n, depth+1)...)
			}
		}
	}
	return all
}

// beginning is a step that does nothing, for what follows one that may be left out.
func (i *importer) beginning() string {
	for _, s := range i.steps {
		if s.fields.has("parallel") {
			return s.id
		}
	}
	var first []string
	for _, s := range i.steps {
		if slices.Equal(s.needs, []string{""}) {
			first = append(first, s.id)
		}
	}
	return i.add("begin", object{{"parallel", first}}, nil).id
}

// expr reads an expression, with its ${ } or without.
func (i *importer) expr(v any, s scope, path string) string {
	text, ok := v.(string)
	if !ok {
		i.say(false, path, "an expression is wanted")
		return ""
	}
	if parts, whole := texts(text); whole {
		text = parts[0].expr
	}
	m, err := celOf(text, s)
	if err != nil {
		i.say(false, path, "%s", err)
	}
	return m.text()
}

// value translates data with expressions in it.
func (i *importer) value(v any, s scope, path string) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for _, f := range v {
			out.set(f.key, i.value(f.value, s, path+"."+f.key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for n := range v {
			out[n] = i.value(v[n], s, fmt.Sprintf("%s[%d]", path, n))
		}
		return out
	case string:
		return i.text(v, s, path)
	}
	return v
}

func (i *importer) text(v string, s scope, path string) string {
	parts, _ := texts(v)
	var b strings.Builder
	for _, p := range parts {
		if p.expr == "" {
			b.WriteString(strings.ReplaceAll(p.text, "${", "$${"))
			continue
		}
		m, err := celOf(p.expr, s)
		if err != nil {
			i.say(false, path, "%s", err)
		}
		b.WriteString("${" + m.text() + "}")
	}
	return b.String()
}

// asMeaning is data that later tasks see.
func (i *importer) asMeaning(v any, s scope, path string) meaning {
	switch v := v.(type) {
	case object:
		out := &known{values: map[string]meaning{}}
		for _, f := range v {
			out.set(f.key, i.asMeaning(f.value, s, path+"."+f.key))
		}
		return meaning{fields: out}
	case []any:
		all := make([]string, len(v))
		for n := range v {
			all[n] = i.asMeaning(v[n], s, fmt.Sprintf("%s[%d]", path, n)).text()
		}
		return plain("[" + strings.Join(all, ", ") + "]")
	case string:
		parts, whole := texts(v)
		if !whole && !strings.Contains(v, "${") {
			return plain(celText(v))
		}
		var all []string
		for _, p := range parts {
			if p.expr == "" {
				all = append(all, celText(p.text))
				continue
			}
			m, err := celOf(p.expr, s)
			if err != nil {
				i.say(false, path, "%s", err)
			}
			if whole {
				return m
			}
			all = append(all, "string("+m.text()+")")
		}
		return meaning{cel: strings.Join(all, " + ")}
	}
	out, err := encode(v)
	if err != nil {
		i.say(false, path, "%s", err)
	}
	return plain(string(out))
}
