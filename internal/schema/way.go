package schema

import (
	"bytes"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/forebayhq/forebay"
)

// way is a schema as it was compiled for one validation at a time: the steps are counted
// within it, since the library hands nothing through that could tell one from another.
type way struct {
	meter *meter
	not   *jsonschema.Schema // whether it does not fit: without saying why, which takes memory
	whole *jsonschema.Schema
	chain int // at most so many schemas lie in each other for the same value
}

const (
	notAddress = "mem:///not"
	everything = "mem:///count" // the vocabulary by which the schemas are found
)

// maxPrograms bounds the regular expressions of a schema together.
const maxPrograms = 40_000

func newWay(address string, with func(*jsonschema.Compiler) error) (w *way, err error) {
	w = &way{meter: &meter{left: maxPrograms}}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(spent); !ok {
				panic(r)
			}
			err = errors.New("its regular expressions are too long together when their repeats are written out")
		}
	}()
	if err := w.sound(address, with); err != nil {
		return nil, err
	}
	var nodes []*jsonschema.Schema
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(w.meter.pattern)
	c.AssertVocabs()
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: everything, Compile: func(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
		nodes = append(nodes, ctx.Enqueue(nil))
		return nil, nil
	}})
	if err := with(c); err != nil {
		return nil, err
	}
	if err := c.AddResource(notAddress, map[string]any{"not": map[string]any{"$ref": address}}); err != nil {
		return nil, err
	}
	w.meter.left = maxPrograms
	if w.whole, err = c.Compile(address); err != nil {
		return nil, err
	}
	if w.not, err = c.Compile(notAddress); err != nil {
		return nil, err
	}
	w.chain, err = weigh(nodes, w.meter)
	return w, err
}

// sound compiles a schema without counting anything, since the library says less of what
// is wrong, and finds less, where a vocabulary is registered.
func (w *way) sound(address string, with func(*jsonschema.Compiler) error) error {
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(w.meter.pattern)
	if err := with(c); err != nil {
		return err
	}
	_, err := c.Compile(address)
	return err
}

// maxFailed bounds the memory, in bytes, of what is told of data that does not fit.
const maxFailed = 128 << 20

// maxStack bounds how many validations lie in each other.
const maxStack = 50_000

// tooMany is said of data that does not fit in so many ways that they take too much memory.
const tooMany = "it does not fit, in more places than can be told"

// Judge gives what the library says of data; or what else is wrong with it; or an error
// (CodeTooLarge) where it takes too many steps to know. All nil: it fits.
func (s *Schema) Judge(data []byte) (*jsonschema.ValidationError, *Misfit, error) {
	depth, number, exponent := scan(data)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, &Misfit{Text: "not JSON: " + Said(err.Error())}, nil
	}
	if number > maxNumber || exponent > maxExponent {
		if at, ok := extreme(doc, nil); ok {
			return nil, &Misfit{at, numberRule}, nil
		}
	}
	w := <-s.idle
	if w == nil {
		if w, err = s.build(); err != nil {
			s.idle <- nil
			return nil, nil, err
		}
	}
	defer func() { s.idle <- w }()
	if depth*w.chain > maxStack {
		return nil, nil, forebay.Errorf(forebay.CodeTooLarge, "", "the schema is too costly for this data: %d levels deep, and up to %d schemas for each value; %d are allowed of both together",
			depth, w.chain, maxStack)
	}
	steps := stepsAtLeast + stepsPerByte*len(data)
	bad, ok := w.run(w.not, doc, steps, steps)
	if !ok {
		return nil, nil, forebay.Errorf(forebay.CodeTooLarge, "", "the schema is too costly for this data: to hold them against each other takes more than %d steps, which are %d and %d for each byte",
			steps, stepsAtLeast, stepsPerByte)
	}
	if fits(bad) {
		return nil, nil, nil
	}
	// What is wrong is told with its place, which is as long as the data is deep.
	if bad, ok = w.run(w.whole, doc, steps, maxFailed/(256+32*depth)); !ok {
		return nil, &Misfit{Text: tooMany}, nil
	}
	return bad, nil, nil
}

// run holds a schema against a document in so many steps; false: they are not enough.
func (w *way) run(s *jsonschema.Schema, doc any, steps, places int) (bad *jsonschema.ValidationError, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(spent); !ok {
				panic(r)
			}
			bad, ok = nil, false
		}
	}()
	*w.meter = meter{left: steps, places: places}
	_ = errors.As(s.Validate(doc), &bad)
	return bad, true
}

// fits tells whether it was the "not" that did not fit.
func fits(bad *jsonschema.ValidationError) bool {
	if bad == nil || len(bad.Causes) != 1 {
		return false
	}
	_, is := bad.Causes[0].ErrorKind.(*kind.Not)
	return is
}
