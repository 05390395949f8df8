package runner

import (
	"encoding/json"
	"strings"

	"github.com/forebayhq/forebay/internal/schema"
)

// CheckInput says where an input does not fit the schema of a flow's input, as the start
// of a run does. Without a schema any JSON fits.
func CheckInput(raw, input json.RawMessage) error {
	compiled, err := schema.Compile(raw)
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
	misfits, err := v.schema.Check(input)
	if err != nil {
		return err
	}
	for _, bad := range misfits {
		return wrong(strings.Join(append([]string{"input"}, bad.Path...), "."), "the input does not fit the flow: %s", bad.Text)
	}
	return nil
}
