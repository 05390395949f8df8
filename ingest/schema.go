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
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/schema"
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
	byType map[string]*schema.Schema
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
	loader := jsonschema.SchemeURLLoader{"file": &folder{root: root, read: map[string]any{}}}
	with := func(c *jsonschema.Compiler) error {
		c.AssertFormat()
		c.UseLoader(loader)
		return nil
	}
	s := &Schemas{mode: mode, byType: map[string]*schema.Schema{}}
	var problems []error
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || f.IsDir() {
			continue
		}
		eventType, err := url.PathUnescape(name)
		if err == nil {
			address := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(root, f.Name()))}
			s.byType[eventType], err = schema.Load(address.String(), with)
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

// folder loads files below one folder only, and each once: what is checked is what was
// there at the start.
type folder struct {
	root string
	mu   sync.Mutex
	read map[string]any // guarded by mu
}

// Load implements jsonschema.URLLoader.
func (dir *folder) Load(address string) (any, error) {
	path, err := jsonschema.FileLoader{}.ToFile(address)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(dir.root, path)
	if err != nil || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s is outside of the schemas' folder", path)
	}
	dir.mu.Lock()
	defer dir.mu.Unlock()
	if doc, ok := dir.read[path]; ok {
		return doc, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err == nil {
		dir.read[path] = doc
	}
	return doc, err
}

// check judges what an event carries. In the mode warn it leaves its fault with
// the draft.
func (s *Schemas) check(out *draft) *fault {
	if s == nil {
		return nil
	}
	of := s.byType[out.Type]
	if of == nil {
		return nil
	}
	bad := validate(of, out.subject, out.subjectAt)
	if bad == nil || s.mode == Enforce {
		return bad
	}
	bad.code = codeSchemaWarning
	out.said = *bad
	return nil
}

func validate(of *schema.Schema, subject []byte, at string) *fault {
	if subject == nil {
		subject = []byte("{}")
	}
	bad, other, err := of.Judge(subject)
	switch {
	case err != nil:
		return &fault{codeSchema, at, forebay.TextOf(err)}
	case other != nil:
		for _, token := range other.Path {
			at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
		}
		return &fault{codeSchema, shorten(at), other.Text}
	case bad == nil:
		return nil
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
