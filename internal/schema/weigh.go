package schema

import (
	"errors"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// errLoop is of a schema that can never be held against anything.
var errLoop = errors.New("a schema refers to itself without going into the data")

// scale weighs all the schemas of a compilation.
type scale struct {
	nodes   []*jsonschema.Schema
	anchors map[string][]*jsonschema.Schema // by $dynamicAnchor
	copies  bool                            // somewhere is "unevaluated…"
	chain   map[*jsonschema.Schema]int      // schemas held against one value, one within the other; -1: being looked at
}

// weigh hooks all of them up to a meter, and gives the longest chain.
func weigh(nodes []*jsonschema.Schema, m *meter) (int, error) {
	sc := scale{nodes: nodes, anchors: map[string][]*jsonschema.Schema{}, chain: map[*jsonschema.Schema]int{}}
	for _, s := range nodes {
		sc.copies = sc.copies || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
		if s.DynamicAnchor != "" {
			sc.anchors[s.DynamicAnchor] = append(sc.anchors[s.DynamicAnchor], s)
		}
	}
	longest := 0
	for _, s := range nodes {
		n, err := sc.below(s)
		if err != nil {
			return 0, err
		}
		longest = max(longest, n)
	}
	for _, s := range nodes {
		sc.weight(s, longest).hook(s, m)
		if s.UniqueItems {
			s.UniqueItems, s.Extensions = false, append(s.Extensions, unique{m})
		}
	}
	return longest, nil
}

// below is the longest chain of schemas from one on that are held against the same value.
func (sc *scale) below(s *jsonschema.Schema) (int, error) {
	switch n := sc.chain[s]; {
	case n < 0:
		return 0, errLoop
	case n > 0:
		return n, nil
	}
	sc.chain[s] = -1
	longest := 0
	for _, sub := range append(sc.here(s), sc.whenObject(s)...) {
		n, err := sc.below(sub)
		if err != nil {
			return 0, err
		}
		longest = max(longest, n)
	}
	sc.chain[s] = longest + 1
	return longest + 1, nil
}

// here are the schemas that one holds against its own value.
func (sc *scale) here(s *jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	for _, one := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			all = append(all, one)
		}
	}
	if d := s.DynamicRef; d != nil {
		all = append(all, d.Ref)
		if d.Anchor != "" {
			all = append(all, sc.anchors[d.Anchor]...)
		}
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		all = append(all, list...)
	}
	return all
}

func (sc *scale) whenObject(s *jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	for _, one := range s.DependentSchemas {
		all = append(all, one)
	}
	for _, one := range s.Dependencies {
		if one, ok := one.(*jsonschema.Schema); ok {
			all = append(all, one)
		}
	}
	return all
}

func (sc *scale) weight(s *jsonschema.Schema, chain int) *weight {
	here, deps := sc.here(s), sc.whenObject(s)
	w := &weight{any: chain / 32, member: 1, item: 1}
	for _, sub := range here {
		w.any += before(sub)
	}
	for _, sub := range deps {
		w.object += before(sub)
	}
	if sc.copies {
		w.copies = len(here) + len(deps)
	}
	w.object += len(s.Required)
	for _, list := range s.DependentRequired {
		w.object += 1 + len(list)
	}
	for _, sub := range s.Properties {
		w.object += before(sub) - 1 // which is the member's
	}
	for _, sub := range s.PatternProperties {
		w.member += before(sub)
	}
	w.member += before(asSchema(s.AdditionalProperties)) + before(s.UnevaluatedProperties) + before(s.PropertyNames)
	list, _ := s.Items.([]*jsonschema.Schema)
	for _, sub := range slices.Concat(list, s.PrefixItems) {
		w.array += before(sub) - 1
	}
	w.item += before(asSchema(s.Items)) + before(s.Items2020) + before(asSchema(s.AdditionalItems)) +
		before(s.UnevaluatedItems) + before(s.Contains)
	return w
}

func asSchema(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

// before is what a schema costs, with all that it does before its hook is asked.
func before(s *jsonschema.Schema) int {
	if s == nil {
		return 0
	}
	count := meter{left: 1 << 40}
	if s.Enum != nil {
		count.size(s.Enum.Values)
	}
	if s.Const != nil {
		count.size(*s.Const)
	}
	return 1 + (1<<40-count.left)/2
}
