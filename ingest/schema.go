package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/forebayhq/forebay"
)

// Mode says what a schema's verdict does.
type Mode string

const (
	Off     Mode = "off"     // nothing is checked
	Warn    Mode = "warn"    // the event is accepted, and its result says what is wrong
	Enforce Mode = "enforce" // the event is rejected
)

// Schemas checks what events carry: payload of native ones, properties or traits
// of Segment's, data of CloudEvents. Types without a schema pass.
type Schemas struct {
	mode   Mode
	byType map[string]*jsonschema.Schema
}

// maxProblems bounds what one event's verdict lists.
const maxProblems = 5

// LoadSchemas compiles the JSON Schemas (2020-12 unless they say otherwise) of a
// folder: "purchase.json" is for events of the type purchase; characters that a
// file name cannot have are percent-encoded. They may refer to each other, and to
// nothing else. All problems are named at once.
func LoadSchemas(dir string, mode Mode) (*Schemas, error) {
	const op = "ingest: load schemas"
	switch mode {
	case Off:
		return nil, nil
	case Warn, Enforce:
	default:
		return nil, forebay.Errorf(forebay.CodeInvalid, op, "the mode is %q; off, warn and enforce are allowed", mode)
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, op, "%w", err)
	}
	files, err := os.ReadDir(root)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, op, "%w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseLoader(jsonschema.SchemeURLLoader{"file": folder(root)})
	s := &Schemas{mode: mode, byType: map[string]*jsonschema.Schema{}}
	var problems []error
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || f.IsDir() {
			continue
		}
		eventType, err := url.PathUnescape(name)
		if err == nil {
			address := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(root, f.Name()))}
			s.byType[eventType], err = compiler.Compile(address.String())
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", f.Name(), err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, op, "%w", err)
	}
	return s, nil
}

// folder loads files below one folder only.
type folder string

func (dir folder) Load(address string) (any, error) {
	path, err := jsonschema.FileLoader{}.ToFile(address)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(string(dir), path)
	if err != nil || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s is outside of the schemas' folder", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(b))
}

// check judges what an event carries. In the mode warn it leaves its fault with
// the draft.
func (s *Schemas) check(out *draft) *fault {
	if s == nil {
		return nil
	}
	schema := s.byType[out.Type]
	if schema == nil {
		return nil
	}
	bad := validate(schema, out.subject, out.subjectAt)
	if bad == nil || s.mode == Enforce {
		return bad
	}
	bad.code = codeSchemaWarning
	out.said = *bad
	return nil
}

func validate(schema *jsonschema.Schema, subject []byte, at string) *fault {
	value := any(map[string]any{})
	if subject != nil {
		var err error
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(subject)); err != nil {
			return &fault{codeSchema, at, err.Error()}
		}
	}
	err := schema.Validate(value)
	if err == nil {
		return nil
	}
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return &fault{codeSchema, at, err.Error()}
	}
	var leaves []jsonschema.OutputUnit
	collect(bad.DetailedOutput(), &leaves)
	slices.SortStableFunc(leaves, func(a, b jsonschema.OutputUnit) int { return strings.Compare(a.InstanceLocation, b.InstanceLocation) })
	f := &fault{code: codeSchema, pointer: shorten(at + leaves[0].InstanceLocation), message: shorten(leaves[0].Error.String())}
	for i, u := range leaves[1:] {
		if i+1 == maxProblems {
			f.message += fmt.Sprintf("; and %d more", len(leaves)-maxProblems)
			break
		}
		f.message += "; " + shorten(at+u.InstanceLocation) + ": " + shorten(u.Error.String())
	}
	return f
}

// collect finds the problems that have no causes of their own.
func collect(u *jsonschema.OutputUnit, leaves *[]jsonschema.OutputUnit) {
	if len(u.Errors) == 0 {
		*leaves = append(*leaves, *u)
		return
	}
	for i := range u.Errors {
		collect(&u.Errors[i], leaves)
	}
}
