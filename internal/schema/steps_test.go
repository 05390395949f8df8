package schema_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/schema"
)

// doubling is a schema of which each step holds the next twice, at the place named.
func doubling(at string, n int, last string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"a%d":`+at+`,`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"a%d":%s}}`, n, last)
	return b.String()
}

// A schema that costs too much is refused by whoever registers it where any data shows it;
// else the validation ends with an error that names the schema.
func TestAValidationHasABudget(t *testing.T) {
	t.Parallel()
	const every = `{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`
	trees := shapes(8) // 1,430 lists of the same size, all different
	for name, c := range map[string]struct{ schema, data, compile, check, misfit string }{
		"doubling":               {schema: doubling(every, 26, "true"), compile: "too costly"},
		"doubling of what fails": {schema: doubling(`{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, 26, "false"), compile: "too costly"},
		"doubling in draft 7":    {schema: `{"$schema":"http://json-schema.org/draft-07/schema#",` + doubling(every, 26, `{"type":"array"}`)[1:], compile: "too costly"},
		"doubling in a property": {schema: doubling(`{"properties":{"x":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}}}`, 26, "true"),
			data: strings.Repeat(`{"x":`, 26) + "1" + strings.Repeat("}", 26), check: "too costly"},
		"itself twice": {schema: `{"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}],"unevaluatedItems":false}}`,
			data: strings.Repeat("[", 40) + strings.Repeat("]", 40), check: "too costly"},
		"a dynamic reference twice": {schema: `{"$dynamicAnchor":"n","properties":{"x":{"allOf":[{"$dynamicRef":"#n"},{"$dynamicRef":"#n"}]}}}`,
			data: strings.Repeat(`{"x":`, 40) + "1" + strings.Repeat("}", 40), check: "too costly"},
		"an anchor that only a dynamic reference finds": {schema: `{"$id":"https://x/a","$ref":"b","$defs":{"n":{"$dynamicAnchor":"n","items":{"allOf":[{"$dynamicRef":"b#n"},{"$dynamicRef":"b#n"}]}},
			"b":{"$id":"b","items":{"$dynamicRef":"#n"},"$defs":{"n":{"$dynamicAnchor":"n"}}}}}`, data: strings.Repeat("[", 40) + strings.Repeat("]", 40), check: "too costly"},
		"itself at once": {schema: `{"allOf":[{"$ref":"#"}]}`, compile: "without going into the data"},
		"unevaluated properties": {schema: `{"unevaluatedProperties":false,"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/a"},`, 300) + `true],"$defs":{"a":{"anyOf":[{"required":["x"]},true]}}}`,
			data: members(20_000), check: "too costly"},
		"copies for unevaluated ones": {schema: `{"unevaluatedProperties":true,"allOf":[` + strings.Repeat(`{},`, 300) + `{}]}`, data: members(20_000), check: "too costly"},
		"a costly item":               {schema: `{"items":{"enum":[` + numbers(3_000) + `]}}`, data: numbers(20_000), check: "too costly"},
		"costly expressions":          {schema: `{"patternProperties":{"(a?){500}a{500}":true,"(a|aa)*(a|aa)*(a|aa)*b{300}$":true}}`, data: `{"` + strings.Repeat("a", 200_000) + `":1}`, check: "too costly"},
		"a long expression":           {schema: `{"pattern":"` + strings.Repeat("a{1000}", 500) + `"}`, compile: "is not valid regex"},
		"long expressions":            {schema: `{"patternProperties":{` + many(20) + `"x":true}}`, compile: "too long together"},
		"100,000 different":           {schema: `{"uniqueItems":true}`, data: numbers(100_000)},
		"the same at last":            {schema: `{"uniqueItems":true}`, data: `[{"a":[]},` + trees[1:len(trees)-1] + `,{"a" : []}]`, misfit: "items at 0 and 1,431 are equal"},
		"equal in value":              {schema: `{"uniqueItems":true}`, data: `[1,{"b":2,"a":10},{"a":1e1,"b":2.0}]`, misfit: "items at 1 and 2 are equal"},
		"not equal":                   {schema: `{"uniqueItems":true}`, data: `["1",1,[1],-1,"",[],{},null,false,[[],[]],[[[]]],["a","b"],["ab"],0]`},
		"a long number":               {schema: `{"minimum":0}`, data: `{"a":[1e9999999]}`, misfit: "500 characters"},
		"many digits":                 {schema: `{"type":"integer"}`, data: strings.Repeat("9", 501), misfit: "500 characters"},
		"a number of ours":            {schema: `{"minimum":1e9999}`, compile: "500 characters"},
		"deep with a chain": {schema: doubling(`{"allOf":[{"$ref":"#/$defs/a%d"},{"$id":"x%d"}]}`, 300, `{"items":{"$ref":"#"}}`),
			data: strings.Repeat("[", 9000) + strings.Repeat("]", 9000), check: "levels deep"},
		"many objects": {schema: `{"enum":[` + strings.Repeat("{},", 1000) + `0]}`, compile: "1000 are allowed"},
		"many misfits": {schema: `{"items":{"allOf":[` + strings.Repeat(`{"type":"string"},`, 14) + `{"type":"string"}]}}`, data: "[" + strings.Repeat("1,", 3_500) + strings.Repeat("[", 100) + strings.Repeat("]", 101), misfit: "more places than can be told"},
		"some misfits": {schema: `{"items":{"type":"string"}}`, data: numbers(3_000), misfit: "got number"},
		"much that fits": {schema: `{"items":{"type":"object","required":["a"],"properties":{"a":{"oneOf":[{"type":"integer","minimum":0},{"type":"string","pattern":"^a"}]}}}}`,
			data: "[" + strings.Repeat(`{"a":1},`, 6_000) + `{"a":"ab"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Compile([]byte(c.schema))
			if c.compile != "" || err != nil {
				if c.compile == "" || err == nil || !strings.Contains(err.Error(), c.compile) {
					t.Errorf("compile: %v; want %q", err, c.compile)
				}
				return
			}
			misfits, err := s.Check([]byte(c.data))
			if c.check == "" && err != nil || c.check != "" && (forebay.CodeOf(err) != forebay.CodeTooLarge || !strings.Contains(err.Error(), c.check)) {
				t.Errorf("%v; want %q", err, c.check)
			}
			if (c.misfit == "") != (len(misfits) == 0) || len(misfits) > 100 || len(misfits) > 0 && !strings.Contains(misfits[0].Text, c.misfit) {
				t.Errorf("%d misfits, %.200v; want %q", len(misfits), misfits, c.misfit)
			}
		})
	}
}

// One that costs too much does not spoil those beside it, nor those after it.
func TestValidationsBesideEachOther(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(`{"properties":{"x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]},"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	costly := []byte(strings.Repeat(`{"x":`, 30) + "1" + strings.Repeat("}", 30))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				if bad, err := s.Check([]byte(`{"x":{"n":"a"}}`)); err != nil || len(bad) == 0 {
					t.Error(bad, err)
				}
				if bad, err := s.Check([]byte(`{"x":{"n":1}}`)); err != nil || len(bad) > 0 {
					t.Error(bad, err)
				}
			}
			if i < 2 {
				if _, err := s.Check(costly); err == nil {
					t.Error("it has no end")
				}
			}
		})
	}
	all.Wait()
}

// shapes are all the lists of so many brackets below one.
func shapes(n int) string {
	memo := map[int][]string{0: {""}}
	for k := 1; k <= n; k++ {
		for i := range k {
			for _, a := range memo[i] {
				for _, b := range memo[k-1-i] {
					sep := ""
					if b != "" {
						sep = ","
					}
					memo[k] = append(memo[k], "["+a+"]"+sep+b)
				}
			}
		}
	}
	return "[[" + strings.Join(memo[n], "],[") + "]]"
}

func numbers(n int) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, ",%d", i)
	}
	return "[" + b.String()[1:] + "]"
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d(a{30}){30}":true,`, i)
	}
	return b.String()
}

func members(n int) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return "{" + b.String()[1:] + "}"
}
