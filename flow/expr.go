package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// Expressions see:
//
//	input          the run's input
//	steps.<id>     of steps that have ended before: state, output, error {code, message}
//	run            id, flow, version, started (a timestamp)
//	item, index    within a for_each
//	event          in the match of a wait
//
// besides the functions of CEL and its strings, lists, math, encoders and sets.
type language struct {
	env   *cel.Env // made when the first expression needs it
	run   *types.Type
	types *objects
	input *types.Type
	known map[string]*types.Type // per step, what steps is to it
}

func newLanguage(input []byte) (*language, error) {
	base, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	l := &language{types: newObjects(base), known: map[string]*types.Type{}, input: types.DynType}
	if input != nil {
		l.input = l.types.ofSchema(input, "input", 0)
	}
	fault := l.types.add("error", map[string]*types.Type{"code": types.StringType, "message": types.StringType})
	l.types.add("step", map[string]*types.Type{"state": types.StringType, "output": types.DynType, "error": fault})
	l.run = l.types.add("run", map[string]*types.Type{
		"id": types.StringType, "flow": types.StringType, "version": types.IntType, "started": types.TimestampType,
	})
	return l, nil
}

func (l *language) base() (*cel.Env, error) {
	if l.env != nil {
		return l.env, nil
	}
	env, err := cel.NewEnv(
		cel.CustomTypeProvider(l.types), cel.ParserExpressionSizeLimit(MaxExprBytes), cel.ParserRecursionLimit(60),
		cel.Variable("input", l.input), cel.Variable("run", l.run),
		ext.Strings(), ext.Lists(), ext.Math(), ext.Encoders(), ext.Sets(),
	)
	if err != nil {
		return nil, err
	}
	options, err := bounded(env)
	if err != nil {
		return nil, err
	}
	l.env, err = env.Extend(options...)
	return l.env, err
}

// scope is what an expression may use.
type scope struct {
	step      string   // whose it is; empty: the output's
	ancestors []string // steps that it may know
	item      bool
	event     bool
}

func (l *language) envOf(s scope) (*cel.Env, error) {
	known := l.known[s.step]
	if known == nil {
		fields := make(map[string]*types.Type, len(s.ancestors))
		for _, id := range s.ancestors {
			fields[id] = cel.ObjectType(l.step(id))
		}
		known = l.types.add("steps before "+s.step, fields)
		l.known[s.step] = known
	}
	options := []cel.EnvOption{cel.Variable("steps", known)}
	if s.item {
		options = append(options, cel.Variable("item", types.DynType), cel.Variable("index", types.IntType))
	}
	if s.event {
		options = append(options, cel.Variable("event", types.DynType))
	}
	env, err := l.base()
	if err != nil {
		return nil, err
	}
	return env.Extend(options...)
}

// program is an expression that can be run.
type program struct {
	source string
	run    cel.Program
	uses   []string // steps that it names
	gives  *types.Type
	all    bool // it takes steps as a whole
}

// compile checks an expression; want: allowed types of its value, none: any. The
// problem is a sentence and the steps that it names and must not.
func compile(env *cel.Env, source string, want ...*types.Type) (*program, error) {
	tree, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, celError(source, issues)
	}
	if t := tree.OutputType(); len(want) > 0 && t.Kind() != types.DynKind &&
		!slices.ContainsFunc(want, func(w *types.Type) bool { return w.Kind() == t.Kind() }) {
		names := make([]string, len(want))
		for i, w := range want {
			names[i] = w.String()
		}
		return nil, fmt.Errorf("%s gives %s; %s is wanted", source, t, quoted(names))
	}
	run, err := env.Program(tree, cel.CostLimit(maxExprCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	p := &program{source: source, run: run, gives: tree.OutputType()}
	p.uses, p.all = used(tree.NativeRep().Expr())
	return p, nil
}

func celError(source string, issues *cel.Issues) error {
	e := issues.Errors()[0]
	text := strings.TrimPrefix(e.Message, "Syntax error: ")
	where := ""
	if strings.Contains(source, "\n") || len(source) > 20 {
		where = fmt.Sprintf(" at character %d", e.Location.Column()+1)
	}
	return fmt.Errorf("%s does not compile%s: %s", source, where, text)
}

// used finds the steps that an expression names, as steps.<id>.
func used(e ast.Expr) (names []string, all bool) {
	found := map[string]bool{}
	bare, selected := 0, 0
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if e.AsIdent() == "steps" {
				bare++
			}
		case ast.SelectKind:
			if s := e.AsSelect(); s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == "steps" {
				found[s.FieldName()] = true
				selected++
			}
		}
	}))
	return slices.Sorted(maps.Keys(found)), bare > selected
}

// eval runs a program. Its errors are sentences.
func (p *program) eval(vars map[string]any) (ref.Val, error) {
	v, _, err := p.run.Eval(vars)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.source, err)
	}
	return v, nil
}

func (p *program) bool(vars map[string]any) (bool, error) {
	v, err := p.eval(vars)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%s gives %s; true or false is wanted", p.source, v.Type().TypeName())
	}
	return bool(b), nil
}

// time is a timestamp, or a text that is one.
func (p *program) time(vars map[string]any) (time.Time, error) {
	v, err := p.eval(vars)
	if err != nil {
		return time.Time{}, err
	}
	switch v := v.(type) {
	case types.Timestamp:
		return v.Time, nil
	case types.String:
		t, err := time.Parse(time.RFC3339, string(v))
		if err != nil {
			return time.Time{}, fmt.Errorf("%s gives %q; a time such as 2026-01-02T15:04:05Z is wanted", p.source, string(v))
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%s gives %s; a time is wanted", p.source, v.Type().TypeName())
}
