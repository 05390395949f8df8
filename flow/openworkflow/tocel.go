package openworkflow

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// meaning is what an expression of jq gives: CEL, or a map whose fields are known, as set
// makes them.
type meaning struct {
	cel    string
	simple bool // needs no brackets
	fields *known
	only   *meaning // of a list, which has one item
}

type known struct {
	keys    []string
	values  map[string]meaning
	present map[string]string // CEL that tells whether it is there; absent: it is
}

func (k *known) set(key string, v meaning) {
	if k.values == nil {
		k.values = map[string]meaning{}
	}
	if _, there := k.values[key]; !there {
		k.keys = append(k.keys, key)
	}
	k.values[key] = v
}

func plain(cel string) meaning { return meaning{cel: cel, simple: true} }

// inner is CEL that can stand within more.
func (m meaning) inner() string {
	if m.fields == nil && !m.simple {
		return "(" + m.cel + ")"
	}
	return m.text()
}

// text is CEL.
func (m meaning) text() string {
	if m.fields == nil {
		return m.cel
	}
	parts := make([]string, len(m.fields.keys))
	for i, key := range m.fields.keys {
		parts[i] = celText(key) + ": " + m.fields.values[key].text()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (m meaning) field(name string) meaning {
	switch {
	case m.fields != nil:
		if v, ok := m.fields.values[name]; ok {
			return v
		}
		return plain("null")
	case identifier.MatchString(name):
		return plain(m.inner() + "." + name)
	}
	return plain(m.inner() + "[" + celText(name) + "]")
}

// plus is + of jq: of maps it is all fields of both.
func (m meaning) plus(o meaning) meaning {
	if m.fields == nil || o.fields == nil {
		return meaning{cel: m.inner() + " + " + o.inner()}
	}
	out := &known{}
	for _, from := range []*known{m.fields, o.fields} {
		for _, key := range from.keys {
			out.set(key, from.values[key])
			if present := from.present[key]; present != "" {
				if out.present == nil {
					out.present = map[string]string{}
				}
				out.present[key] = present
			}
		}
	}
	return meaning{fields: out}
}

// celText writes a text of CEL.
func celText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + "'"
}

// scope is what an expression sees.
type scope struct {
	here      meaning            // .
	variables map[string]meaning // $name
	reason    string             // why . has no meaning; empty: it has one
}

// reader of jq.
type reader struct {
	tokens []string
	at     int
	depth  int
}

const maxDepth = 100

type jqError string

var lexer = regexp.MustCompile(`^\s*(?:("(?:[^"\\]|\\.)*")|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(\$[A-Za-z_][A-Za-z0-9_]*)|(\.[A-Za-z_][A-Za-z0-9_]*)|([A-Za-z_][A-Za-z0-9_]*)|(==|!=|<=|>=|//|[.|()\[\]{}:,;<>+*/%-]))`)

// celOf translates an expression of jq.
func celOf(source string, s scope) (m meaning, err error) {
	r := &reader{}
	for rest := source; strings.TrimSpace(rest) != ""; {
		found := lexer.FindString(rest)
		if found == "" {
			return m, fmt.Errorf("the expression %s has at %q what is not among what crosses", source, short(rest))
		}
		r.tokens = append(r.tokens, strings.TrimSpace(found))
		rest = rest[len(found):]
	}
	defer func() {
		if e := recover(); e != nil {
			text, ok := e.(jqError)
			if !ok {
				panic(e)
			}
			err = fmt.Errorf("the expression %s cannot be written in CEL: %s", source, string(text))
		}
	}()
	m = r.pipe(s)
	if r.at < len(r.tokens) {
		r.wrong("%q is not expected", r.tokens[r.at])
	}
	return m, nil
}

func short(s string) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > 20 {
		s = string([]rune(s)[:20]) + "…"
	}
	return s
}

// wrong ends the reading; celOf makes an error of it.
func (r *reader) wrong(format string, args ...any) {
	panic(jqError(fmt.Sprintf(format, args...)))
}

func (r *reader) next() string {
	if r.at >= len(r.tokens) {
		return ""
	}
	return r.tokens[r.at]
}

func (r *reader) take(tokens ...string) string {
	for _, t := range tokens {
		if r.next() == t {
			r.at++
			return t
		}
	}
	return ""
}

func (r *reader) need(token string) {
	if r.take(token) == "" {
		r.wrong("%q is missing before %q", token, r.next())
	}
}

func (r *reader) pipe(s scope) meaning {
	if r.depth++; r.depth > maxDepth {
		r.wrong("it is nested too deep")
	}
	defer func() { r.depth-- }()
	m := r.or(s)
	for r.take("|") != "" {
		m = r.or(scope{here: m, variables: s.variables})
	}
	return m
}

func (r *reader) or(s scope) meaning {
	m := r.and(s)
	for r.take("or") != "" {
		m = meaning{cel: m.inner() + " || " + r.and(s).inner()}
	}
	return m
}

func (r *reader) and(s scope) meaning {
	m := r.compare(s)
	for r.take("and") != "" {
		m = meaning{cel: m.inner() + " && " + r.compare(s).inner()}
	}
	return m
}

func (r *reader) compare(s scope) meaning {
	m := r.sum(s)
	if op := r.take("==", "!=", "<=", ">=", "<", ">"); op != "" {
		m = meaning{cel: m.inner() + " " + op + " " + r.sum(s).inner()}
	}
	return m
}

func (r *reader) sum(s scope) meaning {
	m := r.product(s)
	for {
		switch r.take("+", "-") {
		case "+":
			m = m.plus(r.product(s))
		case "-":
			m = meaning{cel: m.inner() + " - " + r.product(s).inner()}
		default:
			return m
		}
	}
}

func (r *reader) product(s scope) meaning {
	m := r.sign(s)
	for {
		op := r.take("*", "%")
		if op == "" {
			return m
		}
		m = meaning{cel: m.inner() + " " + op + " " + r.sign(s).inner()}
	}
}

func (r *reader) sign(s scope) meaning {
	if r.take("-") != "" {
		return meaning{cel: "-" + r.path(s).inner()}
	}
	return r.path(s)
}

// path is a term and the fields behind it.
func (r *reader) path(s scope) meaning {
	m := r.term(s)
	for {
		switch t := r.next(); {
		case len(t) > 1 && t[0] == '.':
			r.at++
			m = m.field(t[1:])
		case t == "[":
			r.at++
			if key := r.next(); strings.HasPrefix(key, `"`) {
				r.at++
				m = m.field(r.unquote(key))
			} else if i := r.pipe(s); m.only != nil && i.cel == "0" {
				m = *m.only
			} else if m.fields == nil {
				m = plain(m.inner() + "[" + i.text() + "]")
			} else {
				r.wrong("an index into a map that set has made is not among what crosses")
			}
			r.need("]")
		case t == "." && r.at+1 < len(r.tokens) && strings.HasPrefix(r.tokens[r.at+1], `"`):
			r.at += 2
			m = m.field(r.unquote(r.tokens[r.at-1]))
		default:
			return m
		}
	}
}

func (r *reader) unquote(token string) string {
	if strings.Contains(token, `\(`) {
		r.wrong("an expression in a key is not among what crosses")
	}
	s, err := strconv.Unquote(token)
	if err != nil {
		r.wrong("the text %s cannot be read", token)
	}
	return s
}
