package schema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// unique stands for the library's uniqueItems, whose hashes collide where somebody wants
// them to: [[],[]] and [[[]]] have the same.
type unique struct{ meter *meter }

// Validate implements jsonschema.SchemaExt.
func (u unique) Validate(ctx *jsonschema.ValidatorContext, v any) {
	items, ok := v.([]any)
	if !ok || len(items) < 2 {
		return
	}
	seen := make(map[string]int, len(items))
	var b []byte
	for i, item := range items {
		u.meter.size(item)
		b = same(b[:0], item)
		if j, ok := seen[string(b)]; ok {
			ctx.AddError(&kind.UniqueItems{Duplicates: [2]int{j, i}})
			return
		}
		seen[string(b)] = i
	}
}

// same appends a text that two values share if, and only if, they are equal for a schema.
func same(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b = append(strconv.AppendInt(append(b, '{'), int64(len(v)), 10), ' ')
		for _, k := range keys {
			b = same(same(b, k), v[k])
		}
		return b
	case []any:
		b = append(strconv.AppendInt(append(b, '['), int64(len(v)), 10), ' ')
		for _, one := range v {
			b = same(b, one)
		}
		return b
	case string:
		b = append(strconv.AppendInt(append(b, '"'), int64(len(v)), 10), ' ')
		return append(b, v...)
	case json.Number:
		text := string(v)
		if strings.ContainsAny(text, ".eE") || text == "-0" {
			if r, ok := new(big.Rat).SetString(text); ok {
				text = r.RatString()
			}
		}
		return append(append(append(b, '#'), text...), ' ')
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, 'n')
}
