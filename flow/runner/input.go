package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compileSchema(raw json.RawMessage) (*jsonschema.Schema, error) {
	if raw == nil {
		return nil, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("input.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("input.json")
}

// noLoader reads nothing from elsewhere: a schema is whole.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema cannot refer to " + url)
}

// CheckInput says where an input does not fit the schema of a flow's input, as the start
// of a run does. Without a schema any JSON fits.
func CheckInput(schema, input json.RawMessage) error {
	compiled, err := compileSchema(schema)
	if err != nil {
		return wrong("input", "the input of the flow is no JSON Schema: %v", err)
	}
	return (&version{schema: compiled}).checkInput(input)
}

// checkInput says where an input does not fit the schema.
func (v *version) checkInput(input json.RawMessage) error {
	if !json.Valid(input) {
		return wrong("input", "the input is not JSON")
	}
	if v.schema == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(input))
	if err == nil {
		err = v.schema.Validate(doc)
	}
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return err
	}
	for len(bad.Causes) > 0 {
		bad = bad.Causes[0]
	}
	at := strings.Join(append([]string{"input"}, bad.InstanceLocation...), ".")
	text := bad.Error()
	return wrong(at, "the input does not fit the flow: %s", text[strings.LastIndex(text, ": ")+1:])
}
