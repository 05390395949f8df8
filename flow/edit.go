package flow

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
)

// Edit sets one value of a file, and touches nothing else of it: comments, order and
// spacing stay. The path is as in a Problem (steps.welcome.retry.attempts); maps on the
// way that are not there are made. The value is JSON; nil takes the field out. What
// cannot be changed surely is refused with CodeUnsupported.
func Edit(src []byte, path string, value json.RawMessage) ([]byte, error) {
	root, problems := tree(src)
	if len(problems) > 0 {
		return nil, problems
	}
	var to *node
	if value != nil {
		if !json.Valid(value) {
			return nil, forebay.Errorf(forebay.CodeInvalid, "", "the new value of %s is not JSON", path)
		}
		if to, problems = tree(value); len(problems) > 0 {
			return nil, problems
		}
	}
	keys := segments(path)
	e := &editor{src: newText(src), to: to, path: path}
	out, err := e.set(root, keys, 0)
	if err != nil {
		return nil, err
	}
	want, err := expected(root, keys, to)
	if err != nil {
		return nil, err
	}
	after, problems := tree(out)
	if len(problems) > 0 || !bytes.Equal(want, after.json()) {
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "%s cannot be changed without touching what is around it; change it by hand", path)
	}
	return out, nil
}

// segments splits a path: steps.size.branch[0].to is steps, size, branch, [0, to.
func segments(path string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(path, "]", ""), "[", ".["), ".")
}

// find is the place of a child.
func (n *node) find(key string) int {
	if n.kind == isList {
		i, err := strconv.Atoi(strings.TrimPrefix(key, "["))
		if err != nil || i < 0 || i >= len(n.items) {
			return -1
		}
		return i
	}
	return slices.IndexFunc(n.entries, func(e entry) bool { return e.key == key })
}

type editor struct {
	src  *text
	to   *node
	path string
}

func (e *editor) set(n *node, keys []string, indent int) ([]byte, error) {
	i := n.find(keys[0])
	switch {
	case n.kind != isMap && n.kind != isList || i < 0 && (n.kind == isList || keys[0][:min(1, len(keys[0]))] == "["):
		return nil, forebay.Errorf(forebay.CodeNotFound, "", "there is no %s in the file: %s is %s", e.path, keys[0], n.kind)
	case i < 0 && e.to == nil:
		return nil, forebay.Errorf(forebay.CodeNotFound, "", "there is no %s in the file", e.path)
	case i < 0:
		return e.insert(n, keys, indent)
	case len(keys) > 1 && n.kind == isList:
		return e.set(n.items[i], keys[1:], n.items[i].column-1)
	case len(keys) > 1:
		at := n.entries[i]
		if at.value.kind == isMap && len(at.value.entries) > 0 || at.value.kind == isList {
			return e.set(at.value, keys[1:], at.column-1)
		}
		e.to = nest(keys[1:], e.to)
		return e.replace(at.value, at.place, n.flow)
	case e.to == nil && n.kind == isList:
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "an item of a list cannot be taken out alone; set the whole list")
	case e.to == nil:
		return e.remove(n, i)
	case n.kind == isList:
		return e.replace(n.items[i], place{n.items[i].line, n.items[i].column}, true)
	}
	return e.replace(n.entries[i].value, n.entries[i].place, n.flow)
}

// nest puts a value under keys.
func nest(keys []string, v *node) *node {
	for _, key := range slices.Backward(keys) {
		v = &node{kind: isMap, entries: []entry{{key: key, value: v}}}
	}
	return v
}

// replace writes the new value where the old one is.
func (e *editor) replace(old *node, key place, flow bool) ([]byte, error) {
	t := e.src
	from, to := t.offset(old.place), t.end(old, key.column-1, flow)
	if old.kind == isNull && (old.line != key.line || from >= len(t.b) || t.b[from] == '\n' || strings.HasPrefix(string(t.b[from:]), ":")) {
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "%s has nothing to be replaced; write a value first", e.path)
	}
	block := old.line > key.line
	if block { // from the end of the key's line, so that a scalar can stand there
		from = t.keyEnd(key)
	}
	out := " " + e.to.yaml(key.column+1, flow)
	if e.to.blockly(flow) {
		out = "\n" + strings.Repeat(" ", key.column+1) + e.to.yaml(key.column+1, flow)
	}
	if !block && !strings.HasPrefix(out, "\n") {
		out = out[1:]
	} else if !block {
		from = t.keyEnd(key)
	}
	return t.splice(from, to, out), nil
}

func (e *editor) insert(n *node, keys []string, indent int) ([]byte, error) {
	t, v := e.src, nest(keys[1:], e.to)
	if n.flow {
		at := t.end(n, indent, true) - 1
		comma := ""
		if len(n.entries) > 0 {
			comma = ", "
		}
		for at > 0 && t.b[at-1] == ' ' && len(n.entries) > 0 {
			at--
		}
		return t.splice(at, at, comma+scalar(keys[0])+": "+v.yaml(0, true)), nil
	}
	last := n.entries[len(n.entries)-1]
	at := t.end(last.value, last.column-1, false)
	if last.value.kind == isNull {
		at = t.keyEnd(last.place)
	}
	for at < len(t.b) && t.b[at] != '\n' { // a comment behind it stays there
		at++
	}
	column := n.entries[0].column - 1
	line := "\n" + strings.Repeat(" ", column) + scalar(keys[0]) + ":"
	if v.blockly(false) {
		line += "\n" + strings.Repeat(" ", column+2)
	} else {
		line += " "
	}
	return t.splice(at, at, line+v.yaml(column+2, false)), nil
}

func (e *editor) remove(n *node, i int) ([]byte, error) {
	t, at := e.src, n.entries[i]
	from, to := t.offset(at.place), t.end(at.value, at.column-1, n.flow)
	switch {
	case n.flow && i+1 < len(n.entries):
		to = t.offset(n.entries[i+1].place)
	case n.flow && i > 0:
		prev := n.entries[i-1]
		from = t.end(prev.value, prev.column-1, true)
	case !n.flow:
		if from -= at.column - 1; strings.TrimSpace(string(t.b[from:from+at.column-1])) != "" {
			return nil, forebay.Errorf(forebay.CodeUnsupported, "", "%s is the first of a list's item; set the item instead", e.path)
		}
		for to < len(t.b) && t.b[to] != '\n' {
			to++
		}
		to = min(to+1, len(t.b))
	}
	return t.splice(from, to, ""), nil
}

// expected is the JSON of the file after the change.
func expected(root *node, keys []string, to *node) (json.RawMessage, error) {
	return clone(root, keys, to).json(), nil
}

func clone(n *node, keys []string, to *node) *node {
	out := *n
	out.entries, out.items = slices.Clone(n.entries), slices.Clone(n.items)
	i := n.find(keys[0])
	next := func(old *node) *node {
		if len(keys) == 1 {
			return to
		}
		if old == nil || old.kind != isMap && old.kind != isList {
			return nest(keys[1:], to)
		}
		return clone(old, keys[1:], to)
	}
	switch {
	case i < 0:
		out.entries = append(out.entries, entry{key: keys[0], value: next(nil)})
	case to == nil && len(keys) == 1:
		out.entries = slices.Delete(out.entries, i, i+1)
	case n.kind == isList:
		out.items[i] = next(n.items[i])
	default:
		out.entries[i].value = next(n.entries[i].value)
	}
	return &out
}
