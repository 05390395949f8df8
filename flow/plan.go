package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/forebayhq/forebay/internal/schema"
)

// Plan is a definition that was found sound: its graph and its compiled
// expressions. It is read-only and safe for concurrent use.
type Plan struct {
	*Definition
	language *language
	steps    []*vertex // as in the file
	byID     map[string]*vertex
	output   *template
	uses     map[string]bool // steps whose outputs somebody needs
	leaves   []string        // steps that nothing follows
}

// vertex is a step in its graph.
type vertex struct {
	*Step
	n    int
	in   []edge
	out  []int
	back bool // its goto leads to a step before it

	ancestors []int // in the order of the file
	after     []int // steps that follow it, itself among them

	when, until, match, over *program
	cases                    []*program // nil: else
	with, data, group, limit *template
	undo                     undoing
}

type undoing struct{ with, group, limit *template }

// edge leads to a step from another.
type edge struct {
	from int
	kind edgeKind
}

type edgeKind uint8

const (
	edgeNeed edgeKind = iota
	edgeCase          // of a branch
	edgeGoto          // of a failure
)

// Known is what a definition is compared with.
type Known struct {
	Handlers []string            // kinds with a handler, on whatever queue; nil: not known, so all are fine
	Queues   map[string][]string // kinds with a handler, by the queues that are worked here; nil: not known
	Flows    []string            // flows that are there; nil: not known

	// What handlers say of themselves; nil: nothing is known.
	Data   func(queue, kind string, data []byte, unknown []string) []Misfit // see schema.Partly
	Result func(queue, kind string) json.RawMessage                         // the JSON Schema of what it gives; nil: anything
}

// Misfit is what of some data does not fit.
type Misfit = schema.Misfit

// Load parses and compiles: all problems at once. The plan is nil where one of them
// is more than a warning.
func Load(src []byte, known Known) (*Plan, Problems) {
	d, problems := Parse(src)
	if d == nil || len(problems.Errors()) > 0 && len(d.Steps) == 0 {
		return nil, problems
	}
	p, more := Compile(d, known)
	problems = append(problems, more...).sorted()
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	return p, problems
}

// Compile checks what a definition means: its graph, its expressions, its names. The
// plan is nil where a problem is more than a warning.
func Compile(d *Definition, known Known) (*Plan, Problems) {
	c := &compiler{Plan: &Plan{Definition: d, byID: map[string]*vertex{}, uses: map[string]bool{}}, known: known}
	for i := range d.Steps {
		v := &vertex{Step: &d.Steps[i], n: i}
		c.steps = append(c.steps, v)
		c.byID[v.ID] = v
	}
	c.names()
	c.edges()
	c.order()
	if !c.cyclic {
		c.reach()
		c.joins()
		c.expressions()
	}
	if len(c.problems.Errors()) > 0 {
		return nil, c.problems.sorted()
	}
	return c.Plan, c.problems.sorted()
}

type compiler struct {
	*Plan
	known    Known
	problems Problems
	cyclic   bool
}

func (c *compiler) wrong(path, code, format string, args ...any) *Problem {
	at := c.places[path]
	c.problems = append(c.problems, Problem{Code: code, Line: at.line, Column: at.column, Path: path, Text: fmt.Sprintf(format, args...)})
	return &c.problems[len(c.problems)-1]
}

func (v *vertex) path(field string) string { return "steps." + v.ID + "." + field }

// names looks at handlers and sub-flows.
func (c *compiler) names() {
	handler := func(use, queue, path string) {
		if use == "" {
			return
		}
		c.worked(use, cmp.Or(queue, DefaultQueue), path)
		if c.known.Handlers != nil && !slices.Contains(c.known.Handlers, use) && !slices.Contains(c.known.Handlers, "*") {
			c.wrong(path, CodeUnknownHandler, "nobody handles %q; there are handlers for: %s%s", use, orNone(c.known.Handlers), near(use, c.known.Handlers))
		}
	}
	for _, v := range c.steps {
		handler(v.Use, v.Queue, v.path("use"))
		if v.Compensate != nil {
			handler(v.Compensate.Use, v.Compensate.Queue, v.path("compensate"))
		}
		if f := v.Flow.Name; f != "" && c.known.Flows != nil && !slices.Contains(c.known.Flows, f) {
			c.wrong(v.path("flow"), CodeUnknownFlow, "there is no flow %q; there are: %s%s", f, orNone(c.known.Flows), near(f, c.known.Flows))
		}
		if v.Flow.Name != "" && v.Flow.Name == c.Name {
			c.wrong(v.path("flow"), CodeCycle, "the flow %s runs itself as a sub-flow, and would never end", c.Name)
		}
	}
}

// worked looks whether somebody who is known works a step's queue, and handles it there.
// A queue that nobody here works may have workers elsewhere.
func (c *compiler) worked(use, queue, path string) {
	kinds, here := c.known.Queues[queue]
	switch {
	case c.known.Queues == nil || slices.Contains(kinds, use) || slices.Contains(kinds, "*"):
	case here:
		c.wrong(path, CodeUnknownHandler, "nobody handles %q on the queue %s; there are handlers there for: %s%s", use, queue, orNone(kinds), c.elsewhere(use, kinds))
	default:
		c.wrong(path, CodeUnworkedQueue, "nothing here works the queue %s; %q waits there until a worker pulls it%s", queue, use, c.elsewhere(use, nil)).Warning = true
	}
}

// elsewhere says on which queue a kind is handled, or which kind was meant.
func (c *compiler) elsewhere(use string, kinds []string) string {
	for _, queue := range slices.Sorted(maps.Keys(c.known.Queues)) {
		if slices.Contains(c.known.Queues[queue], use) {
			return fmt.Sprintf("; it is handled on the queue %s", queue)
		}
	}
	return near(use, kinds)
}

func orNone(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return quoted(all)
}

// expressions compiles all of them. A step may know what has ended before it.
func (c *compiler) expressions() {
	l, err := newLanguage(c.Input)
	if err != nil {
		c.wrong("", CodeExpression, "expressions cannot be compiled: %s", err)
		return
	}
	c.language = l
	c.results()
	if c.Input != nil && c.Input[0] != '{' && string(c.Input) != "true" {
		c.wrong("input", CodeSchema, "input is no JSON Schema; a map is wanted, such as {type: object, properties: {…}}")
	}
	for _, v := range c.steps {
		if len(v.out) == 0 {
			c.leaves = append(c.leaves, v.ID)
		}
		c.stepExpressions(v)
	}
	all := make([]string, len(c.steps))
	for i, v := range c.steps {
		all[i] = v.ID
	}
	s := scope{ancestors: all}
	if c.Output == nil {
		for _, id := range c.leaves {
			c.uses[id] = true
		}
	}
	c.output = c.template(s, c.Output)
}

func (c *compiler) stepExpressions(v *vertex) {
	s := scope{step: v.ID, ancestors: c.ids(v.ancestors), item: v.ForEach != nil}
	plain := scope{step: v.ID, ancestors: s.ancestors}
	v.when = c.program(plain, v.When, v.path("when"), types.BoolType)
	v.until = c.program(plain, v.Delay.Until, v.path("delay"), types.TimestampType, types.StringType)
	if v.ForEach != nil {
		v.over = c.program(plain, v.ForEach.In, v.path("for_each"), types.NewListType(types.DynType), types.IntType)
	}
	for i, one := range v.Cases {
		v.cases = append(v.cases, c.program(plain, one.When, fmt.Sprintf("%s[%d].when", v.path("branch"), i), types.BoolType))
	}
	event := plain
	event.event = true
	v.match = c.program(event, v.Wait.Match, v.path("wait"), types.BoolType)
	v.with = c.template(s, v.With)
	v.data = c.template(plain, v.Emit.Data)
	v.group = c.template(s, v.Group)
	v.limit = c.template(s, v.LimitKey)
	if v.Kind == KindJob {
		c.fits(v.Use, v.Queue, v.With, v.with, v.path("with"), v.path("use"))
	}
	if v.Compensate != nil {
		// What is undone has ended itself.
		own := scope{step: v.ID + "~undo", ancestors: append(slices.Clone(s.ancestors), v.ID)}
		v.undo = undoing{c.template(own, v.Compensate.With), c.template(own, v.Compensate.Group), c.template(own, v.Compensate.LimitKey)}
		c.fits(v.Compensate.Use, v.Compensate.Queue, v.Compensate.With, v.undo.with, v.path("compensate.with"), v.path("compensate"))
	}
	if c.takesContext(v) {
		for _, id := range s.ancestors {
			c.uses[id] = true
		}
	}
	if v.Compensate != nil && v.Compensate.With == nil {
		for _, id := range append(slices.Clone(s.ancestors), v.ID) {
			c.uses[id] = true
		}
	}
}

// takesContext tells whether the whole context is the payload of a step.
func (c *compiler) takesContext(v *vertex) bool {
	switch v.Kind {
	case KindJob, KindFlow, KindDead:
		return v.With == nil
	case KindEmit:
		return v.Emit.Data == nil
	}
	return false
}

func (c *compiler) ids(ns []int) []string {
	ids := make([]string, len(ns))
	for i, n := range ns {
		ids[i] = c.steps[n].ID
	}
	return ids
}

func (c *compiler) program(s scope, source, path string, want ...*types.Type) *program {
	if source == "" {
		return nil
	}
	env, err := c.language.envOf(s)
	if err != nil {
		c.wrong(path, CodeExpression, "%s", err)
		return nil
	}
	p, err := compile(env, source, want...)
	if err != nil {
		c.explain(env, s, source, path, err)
		return nil
	}
	for _, id := range p.uses {
		c.uses[id] = true
	}
	if p.all {
		for _, id := range s.ancestors {
			c.uses[id] = true
		}
	}
	return p
}

// explain says of a step that is there, but not before, what is wrong with it.
func (c *compiler) explain(env *cel.Env, s scope, source, path string, err error) {
	tree, issues := env.Parse(source)
	if issues.Err() == nil {
		names, _ := used(tree.NativeRep().Expr())
		for _, id := range names {
			switch {
			case slices.Contains(s.ancestors, id):
				continue
			case c.byID[id] == nil:
				c.wrong(path, CodeUnknownStep, "%s uses a step %q that the flow does not have%s", source, id, near(id, c.allIDs()))
			default:
				c.wrong(path, CodeNotAncestor, "%s uses the step %s, which need not have ended by then; add it to needs, or use one of: %s", source, id, orNone(s.ancestors))
			}
			return
		}
	}
	c.wrong(path, CodeExpression, "%s", err)
}

func (c *compiler) allIDs() []string {
	ids := make([]string, len(c.steps))
	for i, v := range c.steps {
		ids[i] = v.ID
	}
	return ids
}

func (c *compiler) template(s scope, v *Value) *template {
	if v == nil {
		return nil
	}
	t := &template{value: v, programs: map[string]*program{}}
	v.each(func(expr, path string) {
		if t.programs[expr] == nil {
			t.programs[expr] = c.program(s, expr, path)
		}
	})
	return t
}
