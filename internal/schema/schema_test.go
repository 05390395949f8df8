package schema_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/internal/schema"
)

const mail = `{"type":"object","required":["to"],"additionalProperties":false,"properties":{
 "to":{"type":"string","minLength":3},"plan":{"enum":["free","pro"]},"tries":{"type":"integer","maximum":5},
 "parts":{"type":"array","minItems":1,"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}},
 "when":{"oneOf":[{"type":"integer"},{"type":"object","required":["at"],"properties":{"at":{"type":"string"}}}]}}}`

func TestWhatDoesNotFitIsToldWithItsPlaceAndWhatIsNotKnownIsNotJudged(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(mail))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ data, unknown, want string }{
		{`{"to":"ann"}`, "", ""},
		{`{"to":7}`, "", "to: "},
		{`{"to":null}`, "to", ""},
		{`{}`, "", ": missing"},
		{`{"plan":"gold","to":null}`, "to", "plan: "},
		{`{"plan":null,"to":null}`, "to plan", ""},
		{`{"x":null,"to":null}`, "to x", ": additional"},
		{`{"to":null,"parts":[]}`, "to", "parts: minItems"},
		{`{"to":null,"parts":[null]}`, "to parts/0", ""},
		{`{"to":null,"parts":[{"name":null},{"title":null}]}`, "to parts/0/name parts/1/title", "parts/1: missing"},
		{`{"to":"ann","when":{"at":7}}`, "", "when/at: "},
		{`{"to":"ann","when":{"at":null}}`, "when/at", ""},
		{`{"to":"ann","tries":6}`, "", "tries: maximum"},
		{`null`, "root", ""},
		{`{"to":"","tries":""}`, "to tries", "tries: got string, want integer"},
		{`{"to":"","plan":0,"when":"","parts":[0]}`, "to plan when parts/0/name", "parts/0: got number"},
		{`{"to":"","plan":0,"when":""}`, "to plan when", ""},
		{`{`, "", ": not JSON"},
	} {
		var unknown, got []string
		for _, u := range strings.Fields(c.unknown) {
			unknown = append(unknown, strings.TrimPrefix(strings.ReplaceAll(u, "/", "\x00"), "root"))
		}
		misfits, err := s.Partly([]byte(c.data), unknown)
		if err != nil {
			t.Error(c.data, err)
		}
		for _, m := range misfits {
			got = append(got, strings.Join(m.Path, "/")+": "+m.Text)
		}
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, c.want) }) {
			t.Errorf("%s without %q: %q; want %q", c.data, c.unknown, got, c.want)
		}
	}
}

func TestASchemaIsWholeAndSaysWhetherItIsEnforced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"$ref":"https://example.com/x.json"}`: "cannot refer to",
		`{"type":"strung"}`:                     "at /type: value must be one of",
		`[`:                                     "not JSON",
	} {
		if _, err := schema.Compile([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for text, want := range map[string]bool{`{"x-enforce":true}`: true, `{"x-enforce":"yes"}`: false, `{}`: false, `true`: false, ``: false} {
		s, err := schema.Compile([]byte(text))
		if err != nil || s.Enforced() != want {
			t.Errorf("%s: %v, %v", text, s.Enforced(), err)
		}
		if bad, err := s.Check([]byte(`{}`)); len(bad) > 0 || err != nil {
			t.Errorf("%s: %v, %v", text, bad, err)
		}
	}
	hard, err := schema.Compile([]byte(`{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	without, err1 := hard.Partly([]byte(`{"a":null}`), []string{"a"})
	if with, err2 := hard.Check([]byte(`{"a":1}`)); errors.Join(err1, err2) != nil || len(without) > 0 || len(with) != 1 {
		t.Error("a condition on what is not known is judged, or one on what is known is not", err)
	}
}

// A schema may be 64 levels deep, wherever brackets stand in its texts.
func TestDepth(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`{"description":"[{\"[{","items":`, n) + "true" + strings.Repeat("}", n))
	}
	if _, err := schema.Compile(nested(64)); err != nil {
		t.Errorf("64 levels: %v", err)
	}
	if _, err := schema.Compile(nested(65)); err == nil {
		t.Error("65 levels are taken")
	}
}
