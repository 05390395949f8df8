package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// node is a value of the file with its place. It is the part of YAML that a flow
// needs: maps, lists and scalars; no anchors, tags or merges.
type node struct {
	kind    nodeKind
	text    string // a string, or a scalar as it is written
	value   any    // int64, float64 or bool
	entries []entry
	items   []*node
	place
	flow    bool // {…} or […]
	literal bool // | or >
}

type entry struct {
	key string
	place
	value *node
}

type place struct{ line, column int }

type nodeKind string

const (
	isMap    nodeKind = "a map"
	isList   nodeKind = "a list"
	isString nodeKind = "text"
	isInt    nodeKind = "a whole number"
	isFloat  nodeKind = "a number"
	isBool   nodeKind = "true or false"
	isNull   nodeKind = "nothing"
)

func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// tree reads the file as nodes.
func tree(src []byte) (*node, Problems) {
	if len(src) > MaxFileBytes {
		return nil, Problems{{Code: CodeLimit, Text: fmt.Sprintf("the file has %d bytes; at most %d are allowed", len(src), MaxFileBytes)}}
	}
	if p := tooDeep(src); p != nil {
		return nil, Problems{*p}
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntax(err)}
	}
	var g grower
	var root *node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			g.wrong(doc.Body, CodeSyntax, "a second document; a file has one flow")
		default:
			root = g.grow(doc.Body, 0)
		}
	}
	if root == nil && len(g.problems) == 0 {
		return nil, Problems{{Code: CodeSyntax, Line: 1, Column: 1, Text: "the file is empty; it needs at least flow and steps"}}
	}
	return root, g.problems
}

func syntax(err error) Problem {
	p := Problem{Code: CodeSyntax, Text: err.Error()}
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		p.Text = s.Message
		if s.Token != nil && s.Token.Position != nil {
			p.Line, p.Column = s.Token.Position.Line, s.Token.Position.Column
		}
	}
	p.Text = "the file is not YAML: " + p.Text
	return p
}

type grower struct{ problems Problems }

func (g *grower) wrong(n ast.Node, code, format string, args ...any) {
	at := placeOf(n)
	g.problems = append(g.problems, Problem{Code: code, Line: at.line, Column: at.column, Text: fmt.Sprintf(format, args...)})
}

func placeOf(n ast.Node) place {
	if v, ok := n.(*ast.MappingValueNode); ok {
		return placeOf(v.Key)
	}
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return placeOf(m.Values[0])
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return place{t.Position.Line, t.Position.Column}
	}
	return place{}
}

const maxDepth = 32

func (g *grower) grow(n ast.Node, depth int) *node {
	out := &node{place: placeOf(n)}
	if depth > maxDepth {
		g.wrong(n, CodeLimit, "more than %d levels", maxDepth)
		return out
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.kind, out.flow = isMap, n.IsFlowStyle
		g.entries(out, n.Values, depth)
	case *ast.MappingValueNode:
		out.kind = isMap
		g.entries(out, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out.kind, out.flow = isList, n.IsFlowStyle
		for _, item := range n.Values {
			out.items = append(out.items, g.grow(item, depth+1))
		}
	case *ast.StringNode:
		out.kind, out.text = isString, n.Value
	case *ast.LiteralNode:
		out.kind, out.text, out.literal = isString, n.Value.Value, true
	case *ast.NullNode:
		out.kind = isNull
	case *ast.BoolNode:
		out.kind, out.value, out.text = isBool, n.Value, n.GetToken().Value
	case *ast.IntegerNode:
		g.integer(out, n)
	case *ast.FloatNode:
		out.kind, out.value, out.text = isFloat, n.Value, n.GetToken().Value
	default:
		g.wrong(n, CodeSyntax, "%s is more of YAML than a flow needs; write the value itself", n.Type())
		out.kind = isNull
	}
	return out
}

func (g *grower) integer(out *node, n *ast.IntegerNode) {
	out.kind, out.text = isInt, n.GetToken().Value
	switch v := n.Value.(type) {
	case int64:
		out.value = v
	case uint64:
		if v > math.MaxInt64 {
			g.wrong(n, CodeValue, "the number %s is too large", out.text)
		}
		out.value = int64(v)
	default:
		i, err := strconv.ParseInt(out.text, 0, 64)
		if err != nil {
			g.wrong(n, CodeValue, "%q is not a whole number", out.text)
		}
		out.value = i
	}
}

func (g *grower) entries(out *node, values []*ast.MappingValueNode, depth int) {
	seen := map[string]bool{}
	for _, v := range values {
		at := placeOf(v.Key)
		key := v.Key.GetToken().Value
		if v.Key.IsMergeKey() {
			g.wrong(v.Key, CodeSyntax, "a merge (<<) is more of YAML than a flow needs; write the values themselves")
			continue
		}
		if seen[key] {
			g.wrong(v.Key, CodeDuplicate, "%q is there twice; keep one of them", key)
			continue
		}
		seen[key] = true
		out.entries = append(out.entries, entry{key, at, g.grow(v.Value, depth+1)})
	}
}

// json is the node as JSON, maps in the order of the file.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case isMap:
		b.WriteByte('{')
		for i, e := range n.entries {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, e.key)
			b.WriteByte(':')
			e.value.write(b)
		}
		b.WriteByte('}')
	case isList:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case isString:
		writeJSON(b, n.text)
	case isNull:
		b.WriteString("null")
	default:
		writeJSON(b, n.value)
	}
}

func writeJSON(b *bytes.Buffer, v any) {
	text, err := json.Marshal(v)
	if err != nil { // NaN or infinity, which JSON does not have
		text = []byte("null")
	}
	b.Write(text)
}
