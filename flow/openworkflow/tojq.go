package openworkflow

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// translator writes CEL as jq. What a step gave is in $context under its id, the run's
// input is $workflow.input.
type translator struct {
	env    *cel.Env
	event  bool     // . is the event
	caught []string // steps whose failures are handled here, the innermost last
}

func newTranslator() (*translator, error) {
	env, err := cel.NewEnv(cel.ParserExpressionSizeLimit(4<<10), cel.ParserRecursionLimit(60), ext.Strings(), ext.Lists(), ext.Math(), ext.Encoders(), ext.Sets())
	return &translator{env: env}, err
}

// jq translates; its error says what has no counterpart.
func (t *translator) jq(source string) (string, error) {
	tree, issues := t.env.Parse(source)
	if issues.Err() != nil {
		return "", fmt.Errorf("%s does not compile", source)
	}
	out, err := t.expr(tree.NativeRep().Expr())
	if err != nil {
		return "", fmt.Errorf("the expression %s cannot be written in jq: %w", source, err)
	}
	return bare(out), nil
}

// bare takes the brackets off that stand around all of an expression.
func bare(s string) string {
	if !strings.HasPrefix(s, "(") || !strings.HasSuffix(s, ")") {
		return s
	}
	depth, quoted := 0, false
	for i := range len(s) {
		switch c := s[i]; {
		case quoted && c == '\\':
			return s // not worth the care
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 && i < len(s)-1 {
				return s
			}
		}
	}
	return s[1 : len(s)-1]
}

func (t *translator) expr(e ast.Expr) (string, error) {
	switch e.Kind() {
	case ast.IdentKind:
		return t.ident(e.AsIdent())
	case ast.SelectKind:
		return t.selects(e.AsSelect())
	case ast.LiteralKind:
		return literal(e)
	case ast.CallKind:
		return t.call(e.AsCall())
	case ast.ListKind:
		parts, err := t.all(e.AsList().Elements())
		return "[" + strings.Join(parts, ", ") + "]", err
	case ast.MapKind:
		var parts []string
		for _, entry := range e.AsMap().Entries() {
			both, err := t.all([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()})
			if err != nil {
				return "", err
			}
			parts = append(parts, both[0]+": "+both[1])
		}
		return "{" + strings.Join(parts, ", ") + "}", nil
	}
	return "", fmt.Errorf("a macro over a list is not among what crosses")
}

func (t *translator) all(list []ast.Expr) ([]string, error) {
	out := make([]string, len(list))
	for i, e := range list {
		var err error
		if out[i], err = t.expr(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (t *translator) ident(name string) (string, error) {
	switch name {
	case "input":
		return "$workflow.input", nil
	case "item", "index":
		return "$" + name, nil
	case "event":
		if t.event {
			return ".", nil
		}
	}
	return "", fmt.Errorf("%s is not known there", name)
}

func (t *translator) selects(s ast.SelectExpr) (string, error) {
	of := s.Operand()
	if of.Kind() == ast.IdentKind && of.AsIdent() == "run" {
		switch s.FieldName() {
		case "id":
			return "$workflow.id", nil
		case "flow":
			return "$workflow.definition.document.name", nil
		}
		return "", fmt.Errorf("run.%s is not known there", s.FieldName())
	}
	if of.Kind() == ast.SelectKind { // steps.<id>.output
		if in := of.AsSelect(); in.Operand().Kind() == ast.IdentKind && in.Operand().AsIdent() == "steps" {
			switch s.FieldName() {
			case "output":
				return "$context." + in.FieldName(), nil
			case "state":
				return fmt.Sprintf(`(if ($context | has(%q)) then "completed" else "skipped" end)`, in.FieldName()), nil
			}
			return "", fmt.Errorf("why a step failed is known only where it is caught")
		}
		if out, err := t.failure(of.AsSelect(), s.FieldName()); out != "" || err != nil {
			return out, err
		}
	}
	from, err := t.expr(of)
	if err != nil {
		return "", err
	}
	if s.IsTestOnly() {
		return fmt.Sprintf("(%s | has(%q))", from, s.FieldName()), nil
	}
	if from == "." {
		return "." + s.FieldName(), nil
	}
	return from + "." + s.FieldName(), nil
}

// failure is steps.<id>.error.code and .message, where that step's failure is handled.
func (t *translator) failure(in ast.SelectExpr, name string) (string, error) {
	if in.FieldName() != "error" || in.Operand().Kind() != ast.SelectKind {
		return "", nil
	}
	of := in.Operand().AsSelect()
	if of.Operand().Kind() != ast.IdentKind || of.Operand().AsIdent() != "steps" {
		return "", nil
	}
	if len(t.caught) == 0 || t.caught[len(t.caught)-1] != of.FieldName() {
		return "", fmt.Errorf("why %s failed is known only where that is caught", of.FieldName())
	}
	return map[string]string{"code": "$error.type", "message": "$error.detail"}[name], nil
}

func literal(e ast.Expr) (string, error) {
	switch v := e.AsLiteral().(type) {
	case types.String:
		return jqText(string(v)), nil
	case types.Int:
		return strconv.FormatInt(int64(v), 10), nil
	case types.Double:
		text := strconv.FormatFloat(float64(v), 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0" // so that it comes back as what it was
		}
		return text, nil
	case types.Bool:
		return strconv.FormatBool(bool(v)), nil
	case types.Null:
		return "null", nil
	}
	return "", fmt.Errorf("the literal has no counterpart")
}

// jqText writes a text as jq does, which is as JSON does.
func jqText(s string) string {
	out, err := encode(s)
	if err != nil { // a text always can
		return strconv.Quote(s)
	}
	return string(out)
}

var (
	binary = map[string]string{
		operators.Equals: "==", operators.NotEquals: "!=", operators.Less: "<", operators.LessEquals: "<=", operators.Greater: ">", operators.GreaterEquals: ">=",
		operators.LogicalAnd: "and", operators.LogicalOr: "or", operators.Add: "+", operators.Subtract: "-", operators.Multiply: "*", operators.Modulo: "%",
	}
	pipes = map[string]string{"size": "length", "string": "tostring", "lowerAscii": "ascii_downcase", "upperAscii": "ascii_upcase"}
	tests = map[string]string{"startsWith": "startswith", "endsWith": "endswith", "contains": "contains", "matches": "test"}
)

func (t *translator) call(c ast.CallExpr) (string, error) {
	args, err := t.all(c.Args())
	if err != nil {
		return "", err
	}
	target := ""
	if c.IsMemberFunction() {
		if target, err = t.expr(c.Target()); err != nil {
			return "", err
		}
	}
	name := c.FunctionName()
	switch {
	case binary[name] != "":
		return fmt.Sprintf("(%s %s %s)", args[0], binary[name], args[1]), nil
	case name == operators.LogicalNot:
		return fmt.Sprintf("(%s | not)", args[0]), nil
	case name == operators.Negate:
		return fmt.Sprintf("(-%s)", args[0]), nil
	case name == operators.Conditional:
		return fmt.Sprintf("(if %s then %s else %s end)", bare(args[0]), bare(args[1]), bare(args[2])), nil
	case name == operators.Index:
		return fmt.Sprintf("%s[%s]", args[0], args[1]), nil
	case name == operators.In:
		return fmt.Sprintf("any(%s[]; . == %s)", args[1], args[0]), nil
	case pipes[name] != "" && target == "" && len(args) == 1:
		return fmt.Sprintf("(%s | %s)", args[0], pipes[name]), nil
	case pipes[name] != "" && len(args) == 0:
		return fmt.Sprintf("(%s | %s)", target, pipes[name]), nil
	case tests[name] != "" && target != "" && len(args) == 1:
		return fmt.Sprintf("(%s | %s(%s))", target, tests[name], bare(args[0])), nil
	}
	return "", fmt.Errorf("%s has no counterpart", strings.Trim(name, "_"))
}

var expression = regexp.MustCompile(`\$\{`)

// value translates data with expressions in it. A text with some is one expression.
func (t *translator) value(v any) (any, error) {
	switch v := v.(type) {
	case object:
		out := object{}
		for _, f := range v {
			inner, err := t.value(f.value)
			if err != nil {
				return nil, err
			}
			out.set(f.key, inner)
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = t.value(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		if expression.MatchString(v) {
			return t.text(v)
		}
	}
	return v, nil
}

// text is one with ${…} in it.
func (t *translator) text(s string) (string, error) {
	parts, whole := texts(s)
	if whole {
		out, err := t.jq(parts[0].expr)
		return "${ " + out + " }", err
	}
	var b strings.Builder
	for _, p := range parts {
		if p.expr == "" {
			inner := jqText(p.text)
			b.WriteString(inner[1 : len(inner)-1])
			continue
		}
		out, err := t.jq(p.expr)
		if err != nil {
			return "", err
		}
		b.WriteString(`\(` + out + `)`)
	}
	return `${ "` + b.String() + `" }`, nil
}
