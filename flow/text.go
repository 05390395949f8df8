package flow

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// text is a file by lines and columns.
type text struct {
	b      []byte
	starts []int // of lines
}

func newText(b []byte) *text {
	t := &text{b: b, starts: []int{0}}
	for i, c := range b {
		if c == '\n' {
			t.starts = append(t.starts, i+1)
		}
	}
	return t
}

// offset of a place; columns count characters.
func (t *text) offset(p place) int {
	if p.line < 1 || p.line > len(t.starts) {
		return len(t.b)
	}
	at := t.starts[p.line-1]
	for range p.column - 1 {
		_, size := utf8.DecodeRune(t.b[at:])
		at += size
	}
	return min(at, len(t.b))
}

func (t *text) splice(from, to int, s string) []byte {
	return slices.Concat(t.b[:from], []byte(s), t.b[to:])
}

// keyEnd is behind the colon of a key.
func (t *text) keyEnd(key place) int {
	at := t.offset(key)
	if at < len(t.b) && (t.b[at] == '"' || t.b[at] == '\'') {
		at = t.quoted(at)
	}
	if i := strings.IndexByte(string(t.b[at:]), ':'); i >= 0 {
		return at + i + 1
	}
	return at
}

// end of a value whose key is indented so far.
func (t *text) end(n *node, indent int, flow bool) int {
	at := t.offset(n.place)
	switch {
	case at >= len(t.b):
		return at
	case n.literal:
		return t.deeper(at, indent)
	case n.flow:
		return t.bracket(at)
	case n.kind == isMap && len(n.entries) > 0:
		last := n.entries[len(n.entries)-1]
		if last.value.kind == isNull {
			return t.keyEnd(last.place)
		}
		return t.end(last.value, last.column-1, false)
	case n.kind == isList && len(n.items) > 0:
		last := n.items[len(n.items)-1]
		return t.end(last, last.column-2, false)
	case t.b[at] == '"' || t.b[at] == '\'':
		return t.quoted(at)
	}
	return t.plain(at, indent, flow)
}

// deeper goes on over lines that are indented further.
func (t *text) deeper(at, indent int) int {
	end := t.lineEnd(at)
	for next := end + 1; next < len(t.b); {
		stop := t.lineEnd(next)
		line := string(t.b[next:stop])
		if strings.TrimSpace(line) != "" {
			if indentOf(line) <= indent {
				break
			}
			end = stop
		}
		next = stop + 1
	}
	return end
}

func (t *text) lineEnd(at int) int {
	if i := slices.Index(t.b[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(t.b)
}

// quoted is behind a quoted text.
func (t *text) quoted(at int) int {
	quote := t.b[at]
	for i := at + 1; i < len(t.b); i++ {
		switch {
		case t.b[i] == '\\' && quote == '"':
			i++
		case t.b[i] == quote && quote == '\'' && i+1 < len(t.b) && t.b[i+1] == quote:
			i++
		case t.b[i] == quote:
			return i + 1
		}
	}
	return len(t.b)
}

// bracket is behind a map or list in brackets.
func (t *text) bracket(at int) int {
	depth := 0
	for i := at; i < len(t.b); i++ {
		switch t.b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if strings.IndexByte(" ,:[{\n", t.b[i-1]) >= 0 { // not within a plain text
				i = t.quoted(i) - 1
			}
		case '#':
			if t.b[i-1] == ' ' || t.b[i-1] == '\n' {
				i = t.lineEnd(i)
			}
		}
	}
	return len(t.b)
}

// plain is behind a plain scalar.
func (t *text) plain(at, indent int, flow bool) int {
	end := t.lineEnd(at)
	if !flow {
		if first := string(t.b[at:end]); !strings.Contains(first, " #") {
			end = t.deeper(at, indent)
		}
	}
	s := string(t.b[at:end])
	if i := strings.Index(s, " #"); i >= 0 {
		s = s[:i]
	}
	if flow {
		if i := strings.IndexAny(s, ",}]"); i >= 0 {
			s = s[:i]
		}
	}
	return at + len(strings.TrimRight(s, " \t\n"))
}

var plainText = regexp.MustCompile(`^[A-Za-z_/$][A-Za-z0-9_ ./(){}$<>=*+'-]*$`)

// scalar writes a text, in quotes where it needs them.
func scalar(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return quote(s)
	}
	if plainText.MatchString(s) && !strings.HasSuffix(s, " ") {
		return s
	}
	return quote(s)
}

// blockly tells whether a value is written over several lines.
func (n *node) blockly(flow bool) bool {
	return !flow && n.kind == isMap && len(n.entries) > 0 || !flow && n.kind == isList && slices.ContainsFunc(n.items, func(i *node) bool { return len(i.entries) > 0 })
}

// yaml writes a value; its first line stands where the caller has put it.
func (n *node) yaml(indent int, flow bool) string {
	if flow && n.kind == isString && strings.ContainsAny(n.text, "{}[],") {
		return quote(n.text)
	}
	if n.kind == isString {
		return scalar(n.text)
	}
	if n.kind != isMap && n.kind != isList {
		return string(n.json())
	}
	var parts []string
	block := n.blockly(flow)
	for _, e := range n.entries {
		part := scalar(e.key) + ": "
		if e.value.blockly(!block) {
			part = scalar(e.key) + ":\n" + strings.Repeat(" ", indent+2)
		}
		parts = append(parts, part+e.value.yaml(indent+2, !block))
	}
	for _, item := range n.items {
		if block {
			parts = append(parts, "- "+item.yaml(indent+2, len(item.items) > 0))
		} else {
			parts = append(parts, item.yaml(indent, true))
		}
	}
	switch {
	case block:
		return strings.Join(parts, "\n"+strings.Repeat(" ", indent))
	case n.kind == isMap:
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
