package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Value is data with expressions in it. A text that is ${expression} gives the
// expression's value, of whatever type; elsewhere in a text ${expression} is put in
// as text. $${ is ${ itself.
type Value struct {
	literal json.RawMessage // without expressions
	parts   []part          // a text with some
	items   []*Value
	keys    []string // of a map; its values are items
	isMap   bool
	path    string
}

// part of a text: an expression, or a literal.
type part struct {
	expr string
	text string
}

func (r *reader) value(to **Value) func(*node, string) {
	return func(n *node, path string) { *to = r.valueOf(n, path) }
}

func (r *reader) valueOf(n *node, path string) *Value {
	v := &Value{path: path}
	r.places[path] = n.place
	switch n.kind {
	case isMap:
		v.isMap = true
		for _, e := range n.entries {
			v.keys = append(v.keys, e.key)
			v.items = append(v.items, r.valueOf(e.value, join(path, e.key)))
		}
	case isList:
		v.items = []*Value{}
		for i, item := range n.items {
			v.items = append(v.items, r.valueOf(item, fmt.Sprintf("%s[%d]", path, i)))
		}
	case isString:
		parts, err := split(n.text)
		if err != "" {
			r.wrong(n.place, path, CodeExpression, "%s", err)
		}
		if len(parts) == 1 && parts[0].expr == "" {
			n.text = parts[0].text
			parts = nil
		}
		if v.parts = parts; len(parts) == 0 {
			v.literal = n.json()
		}
	default:
		v.literal = n.json()
	}
	return v
}

// split finds the expressions in a text.
func split(s string) (parts []part, problem string) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, part{text: text.String()})
			text.Reset()
		}
	}
	for len(s) > 0 {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' { // $${
			text.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		end := closing(s[i+2:])
		if end < 0 {
			return nil, "${ has no } that ends it; write $${ for the characters themselves"
		}
		expr := strings.TrimSpace(s[i+2 : i+2+end])
		if expr == "" {
			return nil, "${} has no expression in it"
		}
		if len(expr) > MaxExprBytes {
			return nil, fmt.Sprintf("the expression has %d bytes; at most %d are allowed", len(expr), MaxExprBytes)
		}
		text.WriteString(s[:i])
		flush()
		parts = append(parts, part{expr: expr})
		s = s[i+2+end+1:]
	}
	text.WriteString(s)
	flush()
	if len(parts) == 0 {
		parts = []part{{}}
	}
	return parts, ""
}

// closing finds the brace that ends an expression: not one of a map or a text in it.
func closing(s string) int {
	depth := 0
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}

// each calls f for every expression.
func (v *Value) each(f func(expr, path string)) {
	if v == nil {
		return
	}
	for _, p := range v.parts {
		if p.expr != "" {
			f(p.expr, v.path)
		}
	}
	for _, item := range v.items {
		item.each(f)
	}
}

// source is the value as it was written, as JSON.
func (v *Value) source() string {
	if v == nil {
		return ""
	}
	var b bytes.Buffer
	v.render(&b, func(parts []part) json.RawMessage {
		var text strings.Builder
		for _, p := range parts {
			if p.expr != "" {
				text.WriteString("${" + p.expr + "}")
			} else {
				text.WriteString(strings.ReplaceAll(p.text, "${", "$${"))
			}
		}
		var out bytes.Buffer
		writeJSON(&out, text.String())
		return out.Bytes()
	})
	return b.String()
}

// render writes the value as JSON; texts with expressions are what fill says.
func (v *Value) render(b *bytes.Buffer, fill func([]part) json.RawMessage) {
	switch {
	case v.isMap:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, key)
			b.WriteByte(':')
			v.items[i].render(b, fill)
		}
		b.WriteByte('}')
	case v.items != nil:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.render(b, fill)
		}
		b.WriteByte(']')
	case v.parts != nil:
		b.Write(fill(v.parts))
	default:
		b.Write(v.literal)
	}
}
