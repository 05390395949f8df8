package flow

import "bytes"

// The layout of a file is how it is drawn: where steps stand that were moved by hand,
// notes, and groups. It does not change what runs.

// Bounds of a layout.
const (
	maxNotes  = 100
	maxGroups = 50
	maxAway   = 100_000 // from the origin, in points
)

// layout reads one. What is wrong with it is told, and stops nothing: it is drawn as it comes.
func (r *reader) layout(d *Definition, n *node, path string) {
	before := len(r.problems)
	ok := r.fields(n, path, "a layout", []field{
		{"steps", func(n *node, path string) {
			r.named(n, path, "steps", MaxSteps, func(id string, n *node, path string) {
				r.drawn(d, id, path)
				r.fields(n, path, "a place", r.spot())
			})
		}},
		{"notes", func(n *node, path string) { r.named(n, path, "notes", maxNotes, r.note) }},
		{"groups", func(n *node, path string) {
			r.named(n, path, "groups", maxGroups, func(_ string, n *node, path string) { r.group(d, n, path) })
		}},
	})
	for i := before; i < len(r.problems); i++ {
		ok = ok && r.problems[i].Code == CodeUnknownStep
		r.problems[i].Warning = true
	}
	if ok {
		d.Layout = n.json()
	}
}

// named reads a map of things that have ids.
func (r *reader) named(n *node, path, what string, most int, read func(id string, n *node, path string)) {
	if n.kind != isMap && !(n.kind == isNull && len(n.entries) == 0) {
		r.wrong(n.place, path, CodeType, "%s is %s; a map is wanted, each under its id", path, n.kind)
		return
	}
	if len(n.entries) > most {
		r.wrong(n.place, path, CodeLimit, "there are %d %s in the layout; at most %d are allowed", len(n.entries), what, most)
		return
	}
	for _, e := range n.entries {
		at := join(path, e.key)
		r.places[at] = e.place
		if text := badStepID(e.key); text != "" {
			r.wrong(e.place, at, CodeValue, "%s", text)
			continue
		}
		read(e.key, e.value, at)
	}
}

// drawn warns of a step that a layout has and the flow does not: it was taken out by hand.
func (r *reader) drawn(d *Definition, id, path string) {
	if _, ok := d.Step(id); !ok {
		r.wrong(r.places[path], path, CodeUnknownStep, "the layout has a step %q that the flow does not have; it is not drawn", id)
	}
}

func (r *reader) spot() []field {
	var x, y int
	return []field{{"x", r.number(&x, -maxAway, maxAway)}, {"y", r.number(&y, -maxAway, maxAway)}}
}

func (r *reader) note(_ string, n *node, path string) {
	var text string
	var w, h int
	r.fields(n, path, "a note", append(r.spot(), field{"text", r.text(&text, 4<<10)}, field{"width", r.number(&w, 40, 2000)}, field{"height", r.number(&h, 20, 2000)}))
}

func (r *reader) group(d *Definition, n *node, path string) {
	var title string
	var steps []string
	r.fields(n, path, "a group", []field{
		{"title", r.text(&title, 200)},
		{"steps", r.list(&steps, MaxSteps, "step ids")},
		{"collapsed", func(n *node, path string) {
			if n.kind != isBool {
				r.wrong(n.place, path, CodeType, "%s is %s; true or false is wanted", path, n.kind)
			}
		}},
	})
	at := join(path, "steps")
	for _, id := range steps {
		r.places[at] = n.place
		r.drawn(d, id, at)
	}
}

// SameButLayout tells whether two files are the same but for their layout: they do the same, and
// say the same of it.
func SameButLayout(a, b []byte) bool {
	one, ok := bare(a)
	other, fine := bare(b)
	return ok && fine && bytes.Equal(one, other)
}

// bare is a file without its layout.
func bare(src []byte) ([]byte, bool) {
	root, problems := tree(src)
	if len(problems) > 0 || root == nil {
		return nil, false
	}
	if root.get("layout") == nil {
		return bytes.TrimRight(src, "\n"), true
	}
	out, err := Edit(src, "layout", nil)
	return bytes.TrimRight(out, "\n"), err == nil
}
