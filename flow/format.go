package flow

import (
	"bytes"
	"strings"

	"github.com/forebayhq/forebay"
)

// Format writes a file the usual way: two spaces a level, no blanks at the ends of
// lines, no two empty lines in a row. Comments, order and the way in which values are
// written stay. A file that is formatted stays as it is.
func Format(src []byte) ([]byte, error) {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(src), "\ufeff"))
	root, problems := tree([]byte(text))
	if len(problems) > 0 {
		return nil, problems
	}
	f := &formatter{lines: strings.Split(text, "\n"), target: map[int]int{}, literal: map[int]bool{}}
	f.node(root, 0)
	out := f.write()
	after, problems := tree(out)
	if len(problems) > 0 || !bytes.Equal(root.json(), after.json()) {
		e := forebay.Errorf(forebay.CodeUnsupported, "", "the file has a form that cannot be formatted without changing what it says")
		e.Hint = "write it without lists in lists, tabs and ? keys"
		return nil, e
	}
	return out, nil
}

// formatter knows of the lines on which a key or an item begins how far they are to
// be indented.
type formatter struct {
	lines   []string
	target  map[int]int
	literal map[int]bool // what follows the line is a block of text
}

func (f *formatter) node(n *node, depth int) {
	if n.flow {
		return
	}
	for _, e := range n.entries {
		f.begins(e.line, depth)
		f.literal[e.line] = f.literal[e.line] || e.value.literal
		if e.value.line > e.line { // what stands on the line of its key is not a block
			f.node(e.value, depth+1)
		}
	}
	for _, item := range n.items {
		f.begins(item.line, depth)
		f.literal[item.line] = f.literal[item.line] || item.literal
		f.node(item, depth+1)
	}
}

// begins is for the first on a line only: the key after a dash is not.
func (f *formatter) begins(line, depth int) {
	if _, known := f.target[line]; !known {
		f.target[line] = 2 * depth
	}
}

func (f *formatter) write() []byte {
	var out []string
	shift, owner := 0, 0 // of the last line on which something began
	for i, line := range f.lines {
		line = strings.TrimRight(line, " \t")
		indent := indentOf(line)
		inText := f.literal[owner] && (line == "" || indent > indentOf(f.lines[owner-1]))
		want, begins := f.target[i+1]
		switch {
		case begins:
			owner, shift = i+1, want-indent
			line = strings.Repeat(" ", want) + tight(line[indent:])
		case inText:
			line = f.lines[i] // every blank of it may count
			if strings.TrimSpace(line) != "" {
				line = moved(line, shift)
			} else {
				line = ""
			}
		case line == "":
			if len(out) == 0 || out[len(out)-1] == "" {
				continue
			}
		case line[indent] == '#':
			line = moved(line, f.comment(i)-indent)
		default:
			line = moved(line, shift)
		}
		out = append(out, line)
	}
	return []byte(strings.TrimRight(strings.Join(out, "\n"), "\n ") + "\n")
}

// comment goes with what follows it, unless it stands as far in as something before
// it, and further than that.
func (f *formatter) comment(at int) int {
	indent, next := indentOf(f.lines[at]), 0
	for i := at + 1; i < len(f.lines); i++ {
		if want, begins := f.target[i+1]; begins {
			if indentOf(f.lines[i]) >= indent {
				return want
			}
			next = want
			break
		}
	}
	for i := at - 1; i >= 0; i-- {
		want, begins := f.target[i+1]
		switch {
		case !begins:
		case indentOf(f.lines[i]) == indent:
			return want
		case indentOf(f.lines[i]) < indent:
			return next
		}
	}
	return next
}

// tight leaves one blank after a dash.
func tight(s string) string {
	if rest, ok := strings.CutPrefix(s, "- "); ok {
		return "- " + strings.TrimLeft(rest, " ")
	}
	return s
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func moved(line string, shift int) string {
	return strings.Repeat(" ", max(0, indentOf(line)+shift)) + strings.TrimLeft(line, " ")
}
