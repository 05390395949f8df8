package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// objects are the types of maps whose fields are known: the input, by its JSON
// Schema, and what an expression may know of earlier steps. To the checker they are
// types with fields; while running they are plain maps.
type objects struct {
	types.Provider
	fields map[string]map[string]*types.Type
	loose  bool // a number may be a whole one, which is of another type while running
}

func newObjects(base types.Provider) *objects {
	return &objects{Provider: base, fields: map[string]map[string]*types.Type{}}
}

// add makes a type, under a name that error messages show.
func (o *objects) add(name string, fields map[string]*types.Type) *types.Type {
	o.fields[name] = fields
	return cel.ObjectType(name)
}

func (o *objects) FindStructType(name string) (*types.Type, bool) {
	if _, ok := o.fields[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return o.Provider.FindStructType(name)
}

func (o *objects) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ok := o.fields[name]; ok {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return o.Provider.FindStructFieldNames(name)
}

func (o *objects) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields, ok := o.fields[name]; ok {
		t, ok := fields[field]
		return &types.FieldType{Type: t}, ok
	}
	return o.Provider.FindStructFieldType(name, field)
}

// jsonSchema is the part of a JSON Schema that gives types.
type jsonSchema struct {
	Type       any                        `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Additional json.RawMessage            `json:"additionalProperties"`
}

const maxSchemaDepth = 16

// ofSchema is the type of what a schema describes; what it leaves open is dyn.
func (o *objects) ofSchema(raw json.RawMessage, name string, depth int) *types.Type {
	var s jsonSchema
	if depth > maxSchemaDepth || json.Unmarshal(raw, &s) != nil {
		return types.DynType
	}
	word, _ := s.Type.(string) // several types: dyn
	switch word {
	case "string":
		return types.StringType
	case "integer":
		return types.IntType
	case "number":
		if o.loose {
			return types.DynType
		}
		return types.DoubleType
	case "boolean":
		return types.BoolType
	case "array":
		return types.NewListType(o.ofSchema(s.Items, name+"[]", depth+1))
	case "object", "":
		return o.ofObject(&s, word, name, depth)
	}
	return types.DynType
}

func (o *objects) ofObject(s *jsonSchema, word, name string, depth int) *types.Type {
	if len(s.Properties) == 0 {
		if word == "" {
			return types.DynType
		}
		return types.NewMapType(types.StringType, o.ofSchema(s.Additional, name+".*", depth+1))
	}
	fields := make(map[string]*types.Type, len(s.Properties))
	for key, sub := range s.Properties {
		fields[key] = o.ofSchema(sub, name+"."+key, depth+1)
	}
	return o.add(name, fields)
}

// decode reads JSON as CEL has it: whole numbers are int, others double, and where a
// type is known, of that type.
func (o *objects) decode(raw json.RawMessage, t *types.Type) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return o.shape(v, t), nil
}

func (o *objects) shape(v any, t *types.Type) any {
	switch v := v.(type) {
	case json.Number:
		return number(v, t)
	case []any:
		of := types.DynType
		if t.Kind() == types.ListKind && len(t.Parameters()) == 1 {
			of = t.Parameters()[0]
		}
		for i := range v {
			v[i] = o.shape(v[i], of)
		}
	case map[string]any:
		fields := o.fields[t.TypeName()]
		for key := range v {
			of := fields[key]
			if t.Kind() == types.MapKind && len(t.Parameters()) == 2 {
				of = t.Parameters()[1]
			}
			if of == nil {
				of = types.DynType
			}
			v[key] = o.shape(v[key], of)
		}
	}
	return v
}

func number(n json.Number, t *types.Type) any {
	if t.Kind() != types.DoubleKind && !strings.ContainsAny(n.String(), ".eE") {
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return f
}
