package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/internal/schema"
)

// known says what two handlers take, and what one of them gives.
func known(t *testing.T) flow.Known {
	t.Helper()
	takes, err := schema.Compile([]byte(`{"type":"object","required":["to"],"additionalProperties":false,"properties":{
		"to":{"type":"string"},"tries":{"type":"integer"},"plan":{"enum":["free","pro"]},"parts":{"type":"array","items":{"type":"object","required":["name"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return flow.Known{
		Data: func(queue, kind string, data []byte, unknown []string) []schema.Misfit {
			if queue+"/"+kind != "mail/welcome" {
				return nil
			}
			bad, err := takes.Partly(data, unknown)
			if err != nil {
				t.Error(err)
			}
			return bad
		},
		Result: func(queue, kind string) json.RawMessage {
			if queue+"/"+kind != "default/make" {
				return nil
			}
			return json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"size":{"type":"number"},"ok":{"type":"boolean"}}}`)
		},
	}
}

func TestWhatAStepGivesIsComparedWithWhatItsHandlerTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ step, path, text string }{ // of one problem; none: it is sound
		{`{use: welcome, queue: mail, needs: made, with: {to: "${input.name}"}}`, "", ""},
		{`{use: welcome, queue: mail, needs: made, with: {to: "to ${input.n}", tries: "${input.n}"}}`, "", ""},
		{`{use: welcome, queue: mail, needs: made, with: "${input}"}`, "", ""},
		{`{use: welcome, queue: other, needs: made, with: 7}`, "", ""},
		{`{use: welcome, queue: mail, needs: made, with: {to: "${input.n}"}}`, "with.to", "to does not fit what welcome says that it takes: got number, want string"},
		{`{use: welcome, queue: mail, needs: made, with: {plan: pro}}`, "with", "the data does not fit what welcome says that it takes: missing property 'to'"},
		{`{use: welcome, queue: mail, needs: made, with: {to: x, plan: gold}}`, "with.plan", "plan does not fit"},
		{`{use: welcome, queue: mail, needs: made, with: {to: x, parts: [{name: a}, {title: "${input.name}"}]}}`, "with.parts[1]", "parts.1 does not fit"},
		{`{use: welcome, queue: mail, needs: made}`, "use", "the data does not fit what welcome says that it takes: missing property 'to'"},
		{`{use: welcome, queue: mail, needs: made, with: {to: "${steps.made.output.id}"}}`, "", ""},
		{`{use: welcome, queue: mail, needs: made, with: {to: x, tries: "${steps.made.output.id}"}}`, "with.tries", "got string, want integer"},
		{`{use: x, needs: made, with: "${steps.made.output.sise}"}`, "with", "sise"},
		{`{use: x, needs: made, when: "steps.made.output.id > 1"}`, "when", "no matching overload"},
		{`{use: x, needs: made, when: "steps.made.output.size > 2.5"}`, "", ""},
		{`{use: x, needs: made, compensate: {use: welcome, queue: mail, with: {tries: 1}}}`, "compensate.with", "missing property 'to'"},
	} {
		src := fmt.Sprintf("flow: a\ninput: {type: object, properties: {name: {type: string}, n: {type: integer}}}\nsteps:\n  made: {use: make}\n  one: %s\n", c.step)
		_, problems := flow.Load([]byte(src), known(t))
		if c.path == "" {
			if len(problems) > 0 {
				t.Errorf("%s:\n%v", c.step, problems)
			}
			continue
		}
		if len(problems) == 0 || problems[0].Path != "steps.one."+c.path || !strings.Contains(problems[0].Text, c.text) || problems[0].Line != 5 {
			t.Errorf("%s:\n%v\nwant %s at %s", c.step, problems, c.text, c.path)
		}
		if _, problems := flow.Load([]byte(src), flow.Known{}); len(problems) > 0 { // a run knows nothing of handlers
			t.Errorf("%s without what handlers say:\n%v", c.step, problems)
		}
	}
}
