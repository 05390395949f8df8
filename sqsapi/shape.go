package sqsapi

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// shape is how a type is written in the Query protocol. It is made from the type
// and its JSON names once per action, since the two protocols differ by rules: lists
// are flat and have the name of their items, maps are lists of pairs.
type shape struct {
	kind       shapeKind
	pointer    bool
	item       *shape // of a list, and the value of a map
	key, value string // names in a pair of a map
	fields     []field
}

type field struct {
	*shape
	index    int
	json     string
	name     string
	optional bool // not written when empty
}

type shapeKind int

const (
	textShape shapeKind = iota
	bytesShape
	numberShape
	flagShape
	listShape
	mapShape
	structShape
)

// shapeOf makes the shape of a type that the action takes or gives. All types are
// ours: one that cannot be written is a defect, found when the program starts.
func shapeOf(t reflect.Type, action string) *shape {
	s := &shape{}
	if t.Kind() == reflect.Pointer {
		s.pointer, t = true, t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		s.kind = textShape
	case reflect.Int, reflect.Int64:
		s.kind = numberShape
	case reflect.Bool:
		s.kind = flagShape
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.kind = bytesShape
			break
		}
		s.kind, s.item = listShape, shapeOf(t.Elem(), action)
	case reflect.Map:
		s.kind, s.item = mapShape, shapeOf(t.Elem(), action)
		s.key, s.value = "Name", "Value"
	case reflect.Struct:
		s.kind, s.fields = structShape, fieldsOf(t, action)
	default:
		panic(fmt.Sprintf("BUG: sqsapi: %s has no shape", t))
	}
	return s
}

func fieldsOf(t reflect.Type, action string) []field {
	var all []field
	for i := range t.NumField() {
		name, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		f := field{shapeOf(t.Field(i).Type, action), i, name, name, strings.Contains(rest, "omit")}
		if f.kind == listShape || f.kind == mapShape {
			f.name = itemName(name, action)
		}
		if f.name == "Tag" {
			f.key = "Key"
		}
		all = append(all, f)
	}
	return all
}

// itemName is the name that the items of a flat list have.
func itemName(list, action string) string {
	switch list {
	case "Entries":
		return action + "RequestEntry"
	case "Successful", "Results":
		return action + "ResultEntry"
	case "Failed":
		return "BatchResultErrorEntry"
	case "Actions":
		return "ActionName"
	}
	r := []rune(strings.TrimSuffix(list, "s"))
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "an Integer"
	case reflect.String:
		return "a String"
	case reflect.Bool:
		return "a Boolean"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a Blob (base64)"
		}
		return "a List"
	case reflect.Map:
		return "a Map"
	}
	return "a Structure"
}
