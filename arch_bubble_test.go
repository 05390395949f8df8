package forebay_test

import (
	"go/ast"
	"path"
	"slices"
	"testing"
)

// bubbleMakers are the functions of each folder's tests that run a function they
// are given in a synctest bubble.
func bubbleMakers(t *testing.T) map[string]map[string]bool {
	makers := map[string]map[string]bool{}
	for _, f := range files(t) {
		dir := path.Dir(f.name)
		if makers[dir] == nil {
			makers[dir] = map[string]bool{"synctest.Test": true}
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.test {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && called(call) == "synctest.Test" && takesFunc(fn) {
					makers[dir][fn.Name.Name] = true
				}
				return true
			})
		}
	}
	return makers
}

func takesFunc(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		_, ok := p.Type.(*ast.FuncType)
		return ok
	})
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// bubblesOf tells of a node whether it stands in a function that is handed to one
// of the makers.
func bubblesOf(f file, makers map[string]bool) func(ast.Node) bool {
	var within []*ast.FuncLit
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && makers[called(call)] {
			for _, arg := range call.Args {
				if lit, ok := arg.(*ast.FuncLit); ok {
					within = append(within, lit)
				}
			}
		}
		return true
	})
	return func(n ast.Node) bool {
		return slices.ContainsFunc(within, func(l *ast.FuncLit) bool { return l.Pos() <= n.Pos() && n.End() <= l.End() })
	}
}
