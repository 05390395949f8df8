package flow

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxExprBytes is how long a value of an expression may be: more than any payload. CEL
// counts ten bytes of text as one of its cost.
const maxExprBytes = 10 * maxExprCost

// large tells whether a call would do, or give, more than an expression may. CEL counts
// the cost of a call once it is made: a text of 100 KiB in which each letter is replaced
// by another such text would have taken all memory by then, and a list of 100,000 without
// its duplicates minutes.
type large func(args []ref.Val) bool

func costly() map[string]large {
	return map[string]large{
		"replace": replacesMuch, "join": joinsMuch, "distinct": comparesMuch, "flatten": flattensMuch,
		"sets.contains": comparesMuch, "sets.equivalent": comparesMuch, "sets.intersects": comparesMuch,
	}
}

// bounded are these functions of an environment, asked before they are called.
func bounded(env *cel.Env) (options []cel.EnvOption, err error) {
	for name, tooLarge := range costly() {
		decl := env.Functions()[name]
		all, err := decl.Bindings()
		if err != nil {
			return nil, err
		}
		byID := map[string]*functions.Overload{}
		for _, o := range all {
			byID[o.Operator] = o
		}
		for _, o := range decl.OverloadDecls() {
			of := cel.Overload
			if o.IsMemberFunction() {
				of = cel.MemberOverload
			}
			options = append(options, cel.Function(name, of(o.ID(), o.ArgTypes(), o.ResultType(), bind(byID[o.ID()], name, tooLarge))))
		}
	}
	return options, nil
}

func bind(o *functions.Overload, name string, tooLarge large) cel.OverloadOpt {
	ask := func(call func() ref.Val, args ...ref.Val) ref.Val {
		if tooLarge(args) {
			return types.NewErr("%s of so much costs more than an expression may", name)
		}
		return call()
	}
	switch {
	case o.Unary != nil:
		return cel.UnaryBinding(func(a ref.Val) ref.Val { return ask(func() ref.Val { return o.Unary(a) }, a) })
	case o.Binary != nil:
		return cel.BinaryBinding(func(a, b ref.Val) ref.Val { return ask(func() ref.Val { return o.Binary(a, b) }, a, b) })
	}
	return cel.FunctionBinding(func(args ...ref.Val) ref.Val {
		return ask(func() ref.Val { return o.Function(args...) }, args...)
	})
}

func replacesMuch(args []ref.Val) bool {
	text, old, by := textOf(args[0]), textOf(args[1]), textOf(args[2])
	times := strings.Count(text, old)
	if len(args) > 3 {
		if n, ok := args[3].(types.Int); ok && n >= 0 {
			times = min(times, int(n))
		}
	}
	return len(text)+times*len(by) > maxExprBytes
}

// joinsMuch looks at each item, for many may be one and the same long text.
func joinsMuch(args []ref.Val) bool {
	between, size := 0, 0
	if len(args) > 1 {
		between = len(textOf(args[1]))
	}
	for it := args[0].(traits.Lister).Iterator(); it.HasNext() == types.True && size <= maxExprBytes; {
		size += between + len(textOf(it.Next()))
	}
	return size > maxExprBytes
}

// comparesMuch is for what compares each item of a list with each one of another list, or
// of itself.
func comparesMuch(args []ref.Val) bool {
	return lengthOf(args[0])*lengthOf(args[len(args)-1]) > 2*maxExprCost
}

// flattensMuch counts the items of the lists in a list, but for those that are deeper.
func flattensMuch(args []ref.Val) bool {
	depth := types.Int(1)
	if len(args) > 1 {
		depth, _ = args[1].(types.Int)
	}
	return leaves(args[0], depth, maxExprCost) > maxExprCost
}

func leaves(v ref.Val, depth types.Int, most int) (n int) {
	list, ok := v.(traits.Lister)
	if !ok || depth < 0 {
		return 1
	}
	for it := list.Iterator(); it.HasNext() == types.True && n <= most; {
		n += leaves(it.Next(), depth-1, most-n)
	}
	return n
}

func textOf(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

func lengthOf(v ref.Val) int {
	list, ok := v.(traits.Sizer)
	if !ok {
		return 0
	}
	n, _ := list.Size().(types.Int)
	return int(n)
}
