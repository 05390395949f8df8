package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// file walks one settings file. It reads the syntax tree, not a decoded value, so
// that every problem is found in one pass and has its line.
type file struct {
	name     string
	settings *Settings
	problems Problems
}

func (s *Settings) readYAML(name string, b []byte) Problems {
	f := &file{name: name, settings: s}
	tree, err := parser.ParseBytes(b, 0)
	if err != nil {
		return Problems{f.syntax(err)}
	}
	for i, doc := range tree.Docs {
		if i > 0 {
			f.add(doc.Body, "", "a second document; only one is read")
			break
		}
		if doc.Body != nil {
			f.group("", doc.Body)
		}
	}
	return f.problems
}

func (f *file) syntax(err error) Problem {
	var s *yaml.SyntaxError
	if errors.As(err, &s) && s.Token != nil && s.Token.Position != nil {
		p := s.Token.Position
		return Problem{At: Source{f.name, p.Line, p.Column}, Text: s.Message}
	}
	return Problem{At: Source{Name: f.name}, Text: err.Error()}
}

func (f *file) at(n ast.Node) Source {
	if n == nil || n.GetToken() == nil {
		return Source{Name: f.name}
	}
	p := n.GetToken().Position
	return Source{f.name, p.Line, p.Column}
}

func (f *file) add(n ast.Node, key, format string, args ...any) {
	f.problems = append(f.problems, Problem{f.at(n), key, fmt.Sprintf(format, args...)})
}

// group reads the settings under prefix.
func (f *file) group(prefix string, n ast.Node) {
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	case *ast.NullNode: // a group with all its lines commented out
		return
	default:
		f.add(n, prefix, "is not a group of settings; allowed: %s", strings.Join(f.settings.below(prefix), ", "))
		return
	}
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		if prefix != "" {
			key = prefix + "." + key
		}
		switch {
		case f.settings.knows(key):
			f.group(key, pair.Value)
		case groupOf(prefix) != nil:
			f.named(groupOf(prefix), key, pair)
		default:
			f.one(key, pair)
		}
	}
}

// named reads the settings of something that was not named before: a queue, say.
func (f *file) named(g *namedGroup, key string, pair *ast.MappingValueNode) {
	name := strings.TrimPrefix(key, g.prefix+".")
	if !g.isName(name) {
		f.add(pair.Key, key, "is not the name of %s; allowed: %s", g.what, g.allowed)
		return
	}
	f.settings.all = append(f.settings.all, g.table(name)...)
	f.group(key, pair.Value)
}

func (f *file) one(key string, pair *ast.MappingValueNode) {
	one, text := f.settings.find(key)
	if one == nil {
		f.add(pair.Key, key, "%s", text)
		return
	}
	v, ok := scalar(pair.Value)
	if _, list := pair.Value.(*ast.SequenceNode); !ok || list && !one.value.list {
		f.add(pair.Value, key, "is not a single value; allowed: %s", one.value.allowed)
		return
	}
	f.problems = append(f.problems, one.take(v, f.at(pair.Value))...)
}

// scalar gives the text of a plain value, as it was written, and a list of them as
// JSON.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		words := make([]string, len(n.Values))
		for i, one := range n.Values {
			if _, list := one.(*ast.SequenceNode); list {
				return "", false
			}
			var ok bool
			if words[i], ok = scalar(one); !ok {
				return "", false
			}
		}
		b, err := json.Marshal(words)
		return string(b), err == nil
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}
