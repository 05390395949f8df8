package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
)

// Rename gives a step another id, wherever the file names it: in needs, branches,
// parallels and gotos, and in expressions as steps.<id>. All else stays as it is written.
// What cannot be changed surely is refused with CodeUnsupported.
func Rename(src []byte, from, to string) ([]byte, error) {
	root, problems := tree(src)
	if len(problems) > 0 {
		return nil, problems
	}
	steps := root.get("steps")
	if steps == nil || steps.get(from) == nil {
		return nil, forebay.Errorf(forebay.CodeNotFound, "", "there is no step %s in the file", from)
	}
	if text := badStepID(to); text != "" {
		return nil, forebay.Errorf(forebay.CodeInvalid, "", "%s", text)
	}
	if steps.get(to) != nil {
		return nil, forebay.Errorf(forebay.CodeConflict, "", "there is a step %s already", to)
	}
	use := regexp.MustCompile(fmt.Sprintf(`((?:^|[^\w.])steps\s*\.\s*)%s\b`, regexp.QuoteMeta(from)))
	r := &renamer{src: newText(src), from: from, to: to, use: use}
	r.file(root)
	out := r.write()
	after, problems := tree(out)
	if len(problems) > 0 || !bytes.Equal(root.json(), after.json()) { // root was renamed too
		return nil, forebay.Errorf(forebay.CodeUnsupported, "", "%s cannot be renamed without touching what is around its name; do it by hand", from)
	}
	return out, nil
}

// renamer changes the nodes, and books where the same is to be done in the text.
type renamer struct {
	src      *text
	from, to string
	use      *regexp.Regexp // of the step, in an expression
	splices  []splice
}

type splice struct {
	from, to int
	text     string
}

func (r *renamer) write() []byte {
	slices.SortFunc(r.splices, func(a, b splice) int { return b.from - a.from })
	out := r.src.b
	for _, s := range r.splices {
		out = slices.Concat(out[:s.from], []byte(s.text), out[s.to:])
	}
	return out
}

func (r *renamer) file(root *node) {
	r.key(root.get("steps"))
	r.layout(root.get("layout"))
	r.values(root.get("output"))
	for _, step := range root.get("steps").entries {
		for _, e := range step.value.entries {
			r.field(e.key, e.value)
		}
	}
}

// layout names steps as keys, and in its groups.
func (r *renamer) layout(n *node) {
	if n == nil {
		return
	}
	r.key(n.get("steps"))
	if groups := n.get("groups"); groups != nil {
		for _, e := range groups.entries {
			if steps := e.value.get("steps"); steps != nil {
				r.names(steps)
			}
		}
	}
}

func (r *renamer) field(name string, n *node) {
	switch name {
	case "needs", "parallel", "to", "goto":
		r.names(n)
	case "when", "in", "until", "match":
		r.expression(n)
	case "with", "data", "group", "limit_key":
		r.values(n)
	case "for_each":
		if n.kind != isMap {
			r.expression(n)
			return
		}
		r.fields(n)
	case "delay", "event", "wait", "emit", "compensate", "on_failure", "on_timeout":
		r.fields(n)
	case "branch":
		for _, item := range n.items {
			r.fields(item)
		}
	}
}

func (r *renamer) fields(n *node) {
	for _, e := range n.entries {
		r.field(e.key, e.value)
	}
}

// key renames a step where it is a key of a map.
func (r *renamer) key(n *node) {
	if n == nil {
		return
	}
	for i, e := range n.entries {
		if e.key != r.from {
			continue
		}
		n.entries[i].key = r.to
		at := r.src.offset(e.place)
		if strings.IndexByte(`"'`, r.src.b[at]) >= 0 {
			at++
		}
		r.splices = append(r.splices, splice{at, at + len(r.from), r.to})
	}
}

// names are of one step, or of a list.
func (r *renamer) names(n *node) {
	for _, item := range n.items {
		r.names(item)
	}
	if n.text == r.from {
		r.scalar(n, func(string) string { return r.to })
	}
}

// values are data with expressions in it.
func (r *renamer) values(n *node) {
	if n == nil {
		return
	}
	for _, e := range n.entries {
		r.values(e.value)
	}
	for _, item := range n.items {
		r.values(item)
	}
	r.scalar(n, r.inTemplate)
}

func (r *renamer) expression(n *node) { r.scalar(n, r.inExpression) }

// inTemplate renames in what stands in ${…}.
func (r *renamer) inTemplate(s string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		end := closing(s[i+2:])
		if end < 0 || i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i+2])
			s = s[i+2:]
			continue
		}
		out.WriteString(s[:i+2] + r.inExpression(s[i+2:i+2+end]))
		s = s[i+2+end:]
	}
	return out.String() + s
}

// inExpression renames in CEL, but not in its texts.
func (r *renamer) inExpression(s string) string {
	var out strings.Builder
	for len(s) > 0 {
		i := strings.IndexAny(s, `"'`)
		if i < 0 {
			i = len(s)
		}
		out.WriteString(r.use.ReplaceAllString(s[:i], "${1}"+r.to))
		end := i
		for quote := byte(0); end < len(s); end++ { // to the end of the text
			if quote == 0 {
				quote = s[end]
			} else if s[end] == '\\' {
				end++
			} else if s[end] == quote {
				end++
				break
			}
		}
		end = min(end, len(s))
		out.WriteString(s[i:end])
		s = s[end:]
	}
	return out.String()
}

// scalar changes a text where it stands, in the quotes in which it is written.
func (r *renamer) scalar(n *node, change func(string) string) {
	was := n.text
	if n.kind != isString || change(was) == was {
		return
	}
	n.text = change(was)
	from, b := r.src.offset(n.place), r.src.b
	if from < len(b) && (b[from] == '"' || b[from] == '\'') {
		if strings.HasPrefix(string(b[from+1:]), was) {
			r.splices = append(r.splices, splice{from + 1, from + 1 + len(was), n.text})
			return
		}
		text := "'" + strings.ReplaceAll(n.text, "'", "''") + "'"
		if b[from] == '"' {
			text = quote(n.text)
		}
		r.splices = append(r.splices, splice{from, r.src.quoted(from), text})
		return
	}
	to := min(len(b), from+len(was))
	if n.literal {
		line := string(b[r.src.starts[n.line-1]:from])
		to = r.src.deeper(from, len(line)-len(strings.TrimLeft(line, " -")))
	}
	r.splices = append(r.splices, splice{from, to, change(string(b[from:to]))})
}

// quote writes a text in quotes that both YAML and JSON read.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a text always can
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
