package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Codes of problems.
const (
	CodeSyntax         = "syntax"          // not YAML, or a form of it that a flow does not need
	CodeUnknownField   = "unknown_field"   // no such field there
	CodeType           = "type"            // another type is wanted
	CodeValue          = "value"           // not one of the allowed values
	CodeMissing        = "missing"         // a field that is needed
	CodeLimit          = "limit"           // more than is allowed
	CodeDuplicate      = "duplicate"       // named twice
	CodeKind           = "kind"            // none, or several, of the kinds of a step
	CodeUnknownStep    = "unknown_step"    // no such step
	CodeUnknownHandler = "unknown_handler" // nobody handles jobs of that kind
	CodeUnworkedQueue  = "unworked_queue"  // warning: nobody here works that queue
	CodeUnknownFlow    = "unknown_flow"    // no such sub-flow
	CodeCycle          = "cycle"           // steps that wait for each other
	CodeUnreachable    = "unreachable"     // nothing can lead there
	CodeExpression     = "expression"      // CEL that does not compile, or has the wrong type
	CodeNotAncestor    = "not_ancestor"    // an expression uses a step that need not have ended
	CodeExclusive      = "exclusive_join"  // a join of steps of which only one can run
	CodeNoTimeout      = "no_timeout"      // a wait that could last for ever
	CodeUnboundedGoto  = "unbounded_goto"  // a loop without max
	CodeNoDefault      = "no_default"      // warning: a branch without else
	CodeSchema         = "schema"          // a JSON Schema that is none
	CodeData           = "data"            // what a step gives its handler is not what that takes
)

// Problem is one thing that is wrong with a definition.
type Problem struct {
	Code    string `json:"code"`
	Warning bool   `json:"warning,omitempty"` // it would run all the same
	Line    int    `json:"line"`              // from 1; 0: of no place in the file
	Column  int    `json:"column"`
	Path    string `json:"path"` // such as steps.welcome.retry.attempts
	Text    string `json:"text"`
}

func (p Problem) String() string {
	kind := ""
	if p.Warning {
		kind = "warning: "
	}
	return fmt.Sprintf("%d:%d: %s%s (%s, %s)", p.Line, p.Column, kind, p.Text, p.Path, p.Code)
}

// Problems of a definition, in the order of the file.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Errors leaves the warnings out.
func (ps Problems) Errors() Problems {
	return slices.DeleteFunc(slices.Clone(ps), func(p Problem) bool { return p.Warning })
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool { return a == b })
}

// quoted names the allowed values in a sentence.
func quoted[T ~string](all []T) string {
	var b strings.Builder
	for i, s := range all {
		switch {
		case i == 0:
		case i == len(all)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}

// near finds what somebody may have meant.
func near(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is how many characters are to be put in, left out or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			last, row[j] = row[j], min(row[j]+1, row[j-1]+1, last+cost)
		}
	}
	return row[len(b)]
}
