package forebay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The rules of the tree. Each test is one rule, and says why it is there. When a
// rule stands in the way of something better, change the rule in the same commit.

const module = "github.com/forebayhq/forebay"

// imports is the table of who may import whom within the module: one way, from
// the words up to the program. `*` is any one folder. Test files are free, since
// a test may use a real part from anywhere.
type importRule struct {
	pkg     string
	allowed []string
	why     string
}

var imports = []importRule{
	{".", nil, "the words must be usable everywhere, so they need nothing"},
	{"engine", []string{"."}, "the contract speaks in words only"},
	{"engine/enginetest", []string{".", "engine"}, "it judges every engine, so it may know none"},
	{"engine/*", []string{".", "engine", "internal/leases"}, "engines never import each other and never look up"},
	{"event", []string{"."}, "edge and sinks share it, so it knows neither"},
	{"keyring", []string{"."}, "a leaf"},
	{"audit", []string{"."}, "a leaf: a file of lines"},
	{"badrow", []string{".", "internal/salvage"}, "a leaf; its files are recovered as the sink's are"},
	{"estimate", []string{"."}, "arithmetic; who measures and who shows it are others"},
	{"broker", []string{".", "engine", "estimate"}, "portable: it holds for every engine"},
	{"worker", []string{".", "engine", "broker", "worker/adapt"}, "it consumes through the broker"},
	{"worker/adapt", nil, "arithmetic on calls; it knows no message"},
	{"filter", []string{".", "engine"}, "a text becomes an engine's filter; nothing is asked"},
	{"schedule", []string{".", "engine", "broker"}, "it sends jobs; who works them is not its business"},
	{"history", []string{".", "engine", "event", "filter", "worker"}, "it reads logs and hands them on; whoever wires it says where to"},
	{"projection", []string{".", "engine"}, "it reads logs; what it builds is the user's"},
	{"projection/*", []string{".", "projection"}, "a database each"},
	{"storage", []string{"."}, "a leaf: bytes by name"},
	{"catalog", []string{".", "engine", "internal/schema"}, "documents about handlers; it runs none"},
	{"flow", []string{".", "internal/schema"}, "decisions without I/O: it knows no engine and no job"},
	{"flow/*", []string{".", "engine", "broker", "worker", "flow", "internal/schema"}, "it makes jobs of decisions, and their ends events"},
	{"task", []string{".", "worker", "internal/schema"}, "handlers by kind"},
	{"task/*", []string{".", "engine", "broker", "worker", "task", "storage", "internal/jpeg"}, "a handler knows its job and where results go; handlers never import each other"},
	{"stream", []string{".", "engine", "broker"}, "it shows what the broker's watcher tells"},
	{"inbox", []string{".", "engine", "broker", "stream"}, "documents of the broker, and their routes"},
	{"images", []string{".", "engine", "broker", "storage", "stream", "task/image"}, "the routes of one service: it sends jobs and shows them"},
	{"ingest", []string{".", "event", "keyring", "badrow", "broker", "internal/schema"}, "the edge only sends; it knows no engine and no sink"},
	{"sink", []string{".", "event", "worker"}, "a sink is a handler of a worker"},
	{"sink/*", []string{".", "event", "worker", "sink", "internal/salvage"}, "sinks never import each other"},
	{"monitor", []string{".", "engine", "event", "badrow", "broker", "worker", "ingest", "sink"}, "it watches the parts; none of them knows it"},
	{"monitor/*", []string{".", "engine", "monitor", "worker"}, "they judge and show what is measured; whoever wires them says how people are told"},
	{"api", []string{".", "engine", "event", "keyring", "badrow", "broker", "worker", "ingest", "monitor", "monitor/*", "audit", "filter", "stream", "schedule", "estimate", "flow", "flow/runner", "flow/openworkflow", "history", "catalog"}, "it shows what the parts know, of any engine and any sink"},
	{"api/*", []string{".", "engine", "event", "keyring", "badrow", "broker", "ingest", "monitor", "api"}, "as api"},
	{"sqsapi/queue", []string{".", "engine"}, "what SQS means, on any engine; it knows no protocol"},
	{"sqsapi/sign", []string{"."}, "signatures and keys; what they open is the front's business"},
	{"sqsapi", []string{".", "sqsapi/queue", "sqsapi/sign"}, "the two protocols; it knows no engine"},
	{"internal/pgtest", nil, "a PostgreSQL for tests, of any package"},
	{"internal/redistest", nil, "a Redis for tests, of any package"},
	{"internal/*", []string{"."}, "private parts that several packages share"},
	{"internal/pgtest/*", []string{"internal/pgtest"}, "its command"},
	{"bench", []string{".", "engine", "event"}, "it measures what it is given"},
	{"bench/auto", []string{"worker/adapt"}, "a back end that is simulated"},
	{"bench/*", []string{"*", "*/*"}, "a program that wires what it measures"},
	{"cmd/forebay", []string{"*", "*/*", "cmd/forebay/internal/*"}, "the only program that wires engines and sinks"},
	{"cmd/forebay/internal/*", []string{".", "engine", "event", "keyring", "badrow", "broker", "worker", "ingest", "sink", "monitor", "monitor/*", "api", "bench", "filter", "schedule", "cmd/forebay/internal/*"}, "parts of the program that wire nothing concrete"},
	{"console", nil, "files; all that they show comes over the API"},
	{"deploy", nil, "it checks files"},
	{"examples/*", []string{"*", "*/*"}, "a user's program"},
	{"test/*", []string{"*", "*/*"}, "tests"},
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range packages(t) {
		rule := slices.IndexFunc(imports, func(r importRule) bool { return match(r.pkg, p.name) })
		if rule < 0 {
			t.Errorf("package %s is not in the table of imports: add it, with its reason", p.name)
			continue
		}
		for _, imported := range p.Imports {
			name, ours := within(imported)
			if !ours || name == p.name {
				continue
			}
			if !slices.ContainsFunc(imports[rule].allowed, func(a string) bool { return match(a, name) }) {
				t.Errorf("%s imports %s, but may import %v only: %s", p.name, name, imports[rule].allowed, imports[rule].why)
			}
		}
	}
}

func TestWordsNeedTheStandardLibraryOnly(t *testing.T) {
	// Why: whoever writes a handler imports these, and gets nothing else with them.
	for _, p := range packages(t) {
		if p.name != "." && p.name != "engine" {
			continue
		}
		for _, imported := range p.Imports {
			if _, ours := within(imported); !ours && thirdParty(imported) {
				t.Errorf("%s imports %s: package forebay and the engine contract import the standard library only", p.name, imported)
			}
		}
	}
}

func TestNoThirdPartyTypeCrossesEngine(t *testing.T) {
	// Why: callers that see a driver's type cannot change engines with a setting.
	for _, f := range files(t) {
		dir := path.Dir(f.name)
		if f.test || (dir != "engine" && path.Dir(dir) != "engine") {
			continue
		}
		foreign := map[string]string{} // local name → import path
		for _, spec := range f.ast.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			if !thirdParty(p) {
				continue
			}
			name := path.Base(p)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			foreign[name] = p
		}
		for _, exposed := range exposedTypes(f.ast) {
			ast.Inspect(exposed, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && foreign[x.Name] != "" {
						t.Errorf("%s: an exported name shows %s of %s", f.at(n), s.Sel.Name, foreign[x.Name])
					}
				}
				return true
			})
		}
	}
}

func TestOnlyTheProgramImportsConcreteEnginesAndSinks(t *testing.T) {
	// Why: this is what makes moving to another engine a setting, not a rewrite.
	for _, p := range packages(t) {
		if p.name == "cmd/forebay" || match("bench/*", p.name) || match("examples/*", p.name) || match("test/*", p.name) {
			continue
		}
		for _, imported := range p.Imports {
			name, ours := within(imported)
			if ours && name != "engine/enginetest" && (match("engine/*", name) || match("sink/*", name)) {
				t.Errorf("%s imports %s", p.name, name)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	// Why: a reader should not need the code to know what a package promises.
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(p.Doc) < 20 {
			t.Errorf("package %s has no package comment that says what it is for, promises and refuses", p.name)
		}
	}
}

func TestPackageNamesAreNouns(t *testing.T) {
	// Why: a helper that has no home belongs to its only caller.
	for _, p := range packages(t) {
		switch base := path.Base(p.name); base {
		case "util", "utils", "common", "helper", "helpers", "base", "misc", "shared", "types":
			t.Errorf("package %s: %q says nothing of what is in it", p.name, base)
		}
	}
}

// Sizes that a reader can hold in the head. The exceptions may only shrink: one
// that is no longer needed fails the test too.
const (
	maxFileLines     = 500
	maxFunctionLines = 70
)

var tooLarge = map[string]string{
	// "path/file.go" or "path/file.go:function": why
}

func TestFilesAndFunctionsAreSmall(t *testing.T) {
	used := map[string]bool{}
	check := func(key string, lines, most int) {
		if lines <= most {
			return
		}
		if tooLarge[key] != "" {
			used[key] = true
			return
		}
		t.Errorf("%s has %d lines; the most is %d", key, lines, most)
	}
	for _, f := range files(t) {
		check(f.name, f.set.File(f.ast.Pos()).LineCount(), maxFileLines)
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
				check(f.name+":"+fn.Name.Name, lines, maxFunctionLines)
			}
		}
	}
	for key := range tooLarge {
		if !used[key] {
			t.Errorf("%s is small now: take it off the list of exceptions", key)
		}
	}
}

func TestNoInitAndNoGlobalState(t *testing.T) {
	// Why: what a package needs is handed to its constructor, so that two of it can
	// live in one process and a test can have its own.
	for _, f := range files(t) {
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "init" && d.Recv == nil {
					t.Errorf("%s: init()", f.at(d))
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR && !f.test {
					checkVars(t, f, d)
				}
			}
		}
	}
}

// checkVars refuses package variables without a value: they are there to be set
// later, which is state. Embedded files have none either, and are fine.
func checkVars(t *testing.T, f file, d *ast.GenDecl) {
	for _, s := range d.Specs {
		spec := s.(*ast.ValueSpec)
		embedded := false
		for _, doc := range []*ast.CommentGroup{d.Doc, spec.Doc} {
			embedded = embedded || doc != nil && strings.Contains(doc.List[len(doc.List)-1].Text, "//go:embed")
		}
		if len(spec.Values) == 0 && !embedded {
			t.Errorf("%s: package variable %s without a value is state", f.at(spec), spec.Names[0].Name)
		}
	}
}

func TestTestsNeitherSleepNorSkip(t *testing.T) {
	// Why: a sleep is a race with the machine; a skipped test proves nothing.
	bubbles := bubbleMakers(t)
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		inBubble := bubblesOf(f, bubbles[path.Dir(f.name)])
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := s.X.(*ast.Ident)
			switch {
			case x != nil && x.Name == "time" && s.Sel.Name == "Sleep" && !inBubble(n):
				t.Errorf("%s: time.Sleep outside of a synctest bubble", f.at(n))
			case x != nil && (x.Name == "t" || x.Name == "b" || x.Name == "f" || x.Name == "tb") && strings.HasPrefix(s.Sel.Name, "Skip"):
				t.Errorf("%s: %s.%s", f.at(n), x.Name, s.Sel.Name)
			}
			return true
		})
	}
}

func TestDependenciesHaveAReason(t *testing.T) {
	// Why: each one is code that has to be trusted and followed for ever.
	doc, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}`, "./cmd/forebay")
	cmd.Stderr = os.Stderr
	linked, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			if thirdParty(imported) {
				direct[imported] = true
			}
		}
	}
	for _, mod := range slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(linked))))) {
		used := slices.ContainsFunc(slices.Collect(maps.Keys(direct)), func(p string) bool { return p == mod || strings.HasPrefix(p, mod+"/") })
		if used && !strings.Contains(string(doc), "`"+mod+"`") {
			t.Errorf("%s is used, and ARCHITECTURE.md has no line that says why", mod)
		}
	}
}

// ---- what the rules look at

type pkg struct {
	name                      string // within the module; "." is the root
	ImportPath, Dir, Doc      string
	Imports, GoFiles          []string
	TestGoFiles, XTestGoFiles []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-tags", "e2e", "-json=ImportPath,Dir,Doc,Imports,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		p.name, _ = within(p.ImportPath)
		all = append(all, p)
	}
	return all, nil
})

type file struct {
	name string // slash-separated, from the root
	test bool   // _test.go, or of a package that is for tests only
	set  *token.FileSet
	ast  *ast.File
}

func (f file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, f.set.Position(n.Pos()).Line)
}

func files(t *testing.T) []file {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var parsed = sync.OnceValues(func() ([]file, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	packages, err := listed()
	if err != nil {
		return nil, err
	}
	var all []file
	for _, p := range packages {
		for _, base := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, filepath.Join(p.Dir, base), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			rel, err := filepath.Rel(root, filepath.Join(p.Dir, base))
			if err != nil {
				return nil, err
			}
			test := strings.HasSuffix(base, "_test.go") || p.name == "engine/enginetest" || p.name == "internal/pgtest"
			all = append(all, file{filepath.ToSlash(rel), test, set, tree})
		}
	}
	return all, nil
})

// exposedTypes finds the type expressions that users of a package see.
func exposedTypes(f *ast.File) []ast.Node {
	var seen []ast.Node
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
				seen = append(seen, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						seen = append(seen, exportedFields(s.Type)...)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && s.Type != nil {
						seen = append(seen, s.Type)
					}
				}
			}
		}
	}
	return seen
}

func exportedReceiver(list *ast.FieldList) bool {
	typ := list.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

func exportedFields(typ ast.Expr) []ast.Node {
	s, ok := typ.(*ast.StructType)
	if !ok {
		return []ast.Node{typ}
	}
	var seen []ast.Node
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 || slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.IsExported() }) {
			seen = append(seen, field.Type)
		}
	}
	return seen
}

// within gives the name of a package inside the module.
func within(importPath string) (string, bool) {
	importPath, _, _ = strings.Cut(importPath, " ")
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func thirdParty(importPath string) bool {
	_, ours := within(importPath)
	first, _, _ := strings.Cut(importPath, "/")
	return !ours && strings.Contains(first, ".")
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
