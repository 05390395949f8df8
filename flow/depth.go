package flow

import "fmt"

// Depth is bounded before the file is parsed, since the parser takes time and memory that
// grow with its square. The bounds are far above maxDepth, which is told better.
const (
	maxBrackets = 200 // open at once; those of texts count too
	maxColumns  = 400 // before a line's first word: what is indented, and dashes
)

// tooDeep finds the first line that is nested too deep to be parsed.
func tooDeep(src []byte) *Problem {
	line, column, open := 1, 0, 0
	leading := true // nothing but spaces and dashes yet
	for _, c := range src {
		column++
		switch c {
		case '\n':
			line, column, leading = line+1, 0, true
			continue
		case ' ', '-', '?', '\t':
		case '[', '{':
			open, leading = open+1, false
		case ']', '}':
			open, leading = max(open-1, 0), false
		default:
			leading = false
		}
		if open > maxBrackets || leading && column > maxColumns {
			return &Problem{Code: CodeLimit, Line: line, Column: column, Text: fmt.Sprintf("nested too deep: at most %d brackets may be open, and %d columns be before a line's first word", maxBrackets, maxColumns)}
		}
	}
	return nil
}
