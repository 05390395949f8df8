package sqlite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func termsOf(payload string) *terms {
	s := &terms{set: map[uint64]struct{}{}}
	s.payload([]byte(payload))
	return s
}

// may tells whether the terms allow that a filter for the value at the path holds.
func (s *terms) may(path []string, value string) bool {
	want, _ := asked(&engine.JobFilter{Payload: []engine.PayloadTerm{{Path: path, Value: value}}}, true)
	_, has := s.set[want[0]]
	return has || s.open
}

// scalars are all paths and values of a payload, as Match reads them.
func scalars(v any, path []string, f func(path []string, value string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			scalars(member, append(path[:len(path):len(path)], name), f)
		}
	case []any:
		for _, member := range v {
			scalars(member, path, f)
		}
	case string:
		f(path, v)
	case json.Number:
		f(path, v.String())
	case nil:
		f(path, "null")
	case bool:
		f(path, fmt.Sprint(v))
	}
}

func checkTerms(t *testing.T, payload string) {
	d := json.NewDecoder(strings.NewReader(payload))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return
	}
	s := termsOf(payload)
	job := forebay.Job{Message: forebay.Message{Payload: []byte(payload)}}
	scalars(v, nil, func(path []string, value string) {
		f := engine.JobFilter{Payload: []engine.PayloadTerm{{Path: path, Value: value}}}
		if f.Match(&job) && !s.may(path, value) {
			t.Fatalf("the terms of %q do not have %q at %q", payload, value, path)
		}
	})
}

var payloads = []string{
	`{"user":{"id":42,"name":"Zoë","tags":["a","b",{"c":[1,2.50,-3e7]}]},"ok":true,"none":null,"":""}`,
	` [1, "two", [3], {"four": 4}] `, `"text"`, `-0.5e+3`, `true`, `{}`, `[]`, ``, `{"a":1} and more`,
	`{"a\u0041\n":"\ud83d\ude00 \"quoted\""}`, "{\"bad\":\"\xff\xfe\"}", `{"a":{"a":1,"a":2}}`, `{"a":1,}`, `{"a"`, `[1`, `nul`, `{"a":"\q"}`,
	strings.Repeat("[", 100) + "1" + strings.Repeat("]", 100), "\t{\r\n\"a\" : [ ] , \"b\":{ } }",
}

func FuzzTerms(f *testing.F) {
	for _, p := range payloads {
		f.Add(p)
	}
	f.Fuzz(checkTerms)
}

func TestTerms(t *testing.T) {
	s := termsOf(payloads[0])
	if s.open || len(s.set) != 10 {
		t.Fatalf("%d terms, open: %t", len(s.set), s.open)
	}
	if s.may([]string{"user", "id"}, "43") || s.may([]string{"id"}, "42") || !s.may([]string{"user", "tags", "c"}, "2.50") {
		t.Fatal("not the terms of the payload")
	}
	many := make([]string, engine.MaxTerms+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	if s := termsOf("{" + strings.Join(many[1:], ",") + "}"); s.open {
		t.Fatalf("%d terms are too many", engine.MaxTerms)
	}
	if s := termsOf("{" + strings.Join(many, ",") + "}"); !s.open {
		t.Fatalf("%d terms are not too many", engine.MaxTerms+1)
	}
}

func BenchmarkTerms(b *testing.B) {
	payload := []byte(`{"user":{"id":1234567,"name":"somebody"},"action":"resize","file":"a/b/c/photo.jpg","width":1200,"quality":80,"tags":["x","y"]}`)
	s := terms{set: map[uint64]struct{}{}}
	for b.Loop() {
		s.payload(payload)
	}
}
