package openworkflow

import (
	"strconv"
	"strings"
)

// inHere gives ., where it has a meaning.
func (r *reader) inHere(s scope) meaning {
	if s.reason != "" {
		r.wrong("%s", s.reason)
	}
	return s.here
}

func (r *reader) term(s scope) meaning {
	t := r.next()
	r.at++
	switch {
	case t == "":
		r.wrong("it ends too early")
	case t == "(":
		m := r.pipe(s)
		r.need(")")
		return m
	case t == ".":
		return r.inHere(s)
	case t[0] == '.':
		return r.inHere(s).field(t[1:])
	case t[0] == '$':
		if m, ok := s.variables[t[1:]]; ok {
			return m
		}
		r.wrong("%s is not known here", t)
	case t[0] == '"':
		return r.text(t, s)
	case t[0] >= '0' && t[0] <= '9':
		return plain(t)
	case t == "[":
		return r.list(s)
	case t == "{":
		return r.object(s)
	case t == "if":
		return r.conditional(s)
	}
	return r.function(t, s)
}

// text may have \(…) in it.
func (r *reader) text(token string, s scope) meaning {
	var parts []string
	rest := token[1 : len(token)-1]
	flush := func(text string) {
		if text == "" {
			return
		}
		out, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `\/`, "/") + `"`)
		if err != nil {
			r.wrong("the text %s cannot be read", token)
		}
		parts = append(parts, celText(out))
	}
	for {
		i := strings.Index(rest, `\(`)
		if i < 0 || i > 0 && rest[i-1] == '\\' {
			break
		}
		flush(rest[:i])
		depth, end := 0, -1
		for n := i + 1; n < len(rest) && end < 0; n++ {
			switch rest[n] {
			case '(':
				depth++
			case ')':
				if depth--; depth == 0 {
					end = n
				}
			}
		}
		if end < 0 {
			r.wrong(`a \( has no end`)
		}
		m, err := celOf(strings.ReplaceAll(rest[i+2:end], `\"`, `"`), s)
		if err != nil {
			r.wrong("%s", err)
		}
		parts = append(parts, "string("+m.text()+")")
		rest = rest[end+1:]
	}
	flush(rest)
	switch len(parts) {
	case 0:
		return plain("''")
	case 1:
		return plain(parts[0])
	}
	return meaning{cel: strings.Join(parts, " + ")}
}

func (r *reader) list(s scope) meaning {
	var parts []string
	for r.take("]") == "" {
		parts = append(parts, r.pipe(s).text())
		if r.take(",") == "" {
			r.need("]")
			break
		}
	}
	return plain("[" + strings.Join(parts, ", ") + "]")
}

func (r *reader) object(s scope) meaning {
	out := &known{values: map[string]meaning{}}
	for r.take("}") == "" {
		key := r.next()
		r.at++
		var value meaning
		switch {
		case strings.HasPrefix(key, `"`):
			key = r.unquote(key)
		case strings.HasPrefix(key, "$"):
			value, key = s.variables[key[1:]], key[1:]
		case !identifier.MatchString(key):
			r.wrong("%q is no key of a map", key)
		}
		if r.take(":") != "" {
			value = r.or(s)
		} else if value.cel == "" && value.fields == nil {
			value = r.inHere(s).field(key)
		}
		out.set(key, value)
		if r.take(",") == "" {
			r.need("}")
			break
		}
	}
	return meaning{fields: out}
}

func (r *reader) conditional(s scope) meaning {
	when := r.pipe(s)
	r.need("then")
	yes := r.pipe(s)
	no := s.here
	switch r.take("else", "elif") {
	case "elif":
		no = r.conditional(s)
		return meaning{cel: when.inner() + " ? " + yes.inner() + " : " + no.inner()}
	case "else":
		no = r.pipe(s)
	}
	r.need("end")
	return meaning{cel: when.inner() + " ? " + yes.inner() + " : " + no.inner()}
}

// function is a name; what it works on is . .
func (r *reader) function(name string, s scope) meaning {
	methods := map[string]string{"startswith": "startsWith", "endswith": "endsWith", "contains": "contains", "test": "matches"}
	switch name {
	case "true", "false", "null":
		return plain(name)
	case "not":
		return meaning{cel: "!" + r.inHere(s).inner()}
	case "length":
		return plain("size(" + r.inHere(s).text() + ")")
	case "tostring":
		return plain("string(" + r.inHere(s).text() + ")")
	case "ascii_downcase":
		return plain(r.inHere(s).inner() + ".lowerAscii()")
	case "ascii_upcase":
		return plain(r.inHere(s).inner() + ".upperAscii()")
	case "has":
		return r.has(s)
	case "any":
		return r.in(s)
	}
	if method := methods[name]; method != "" {
		r.need("(")
		arg := r.pipe(s)
		r.need(")")
		return plain(r.inHere(s).inner() + "." + method + "(" + arg.text() + ")")
	}
	r.wrong("%s is not among what crosses", name)
	return meaning{}
}

func (r *reader) has(s scope) meaning {
	r.need("(")
	key := r.next()
	if !strings.HasPrefix(key, `"`) {
		r.wrong("has needs a name in quotes")
	}
	r.at++
	r.need(")")
	of := r.inHere(s)
	name := r.unquote(key)
	if of.fields != nil {
		_, there := of.fields.values[name]
		if there && of.fields.present[name] != "" {
			return meaning{cel: of.fields.present[name]}
		}
		return plain(strconv.FormatBool(there))
	}
	if !identifier.MatchString(name) {
		return meaning{cel: celText(name) + " in " + of.inner()}
	}
	return plain("has(" + of.inner() + "." + name + ")")
}

// in is any(list[]; . == x), which is how it is written there.
func (r *reader) in(s scope) meaning {
	r.need("(")
	list := r.term(s)
	for strings.HasPrefix(r.next(), ".") && len(r.next()) > 1 {
		list = list.field(r.next()[1:])
		r.at++
	}
	for _, t := range []string{"[", "]", ";", ".", "=="} {
		r.need(t)
	}
	x := r.sum(s)
	r.need(")")
	return meaning{cel: x.inner() + " in " + list.inner()}
}
