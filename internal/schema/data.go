package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds a schema, whose compiling takes the square of its depth; maxObjects its
// objects, for the same reason.
const (
	maxDepth   = 64
	maxObjects = 1000
)

// A number is a fraction of whole numbers to the library, which the exponent makes as long
// as it likes.
const (
	maxNumber   = 500
	maxExponent = 3
	numberRule  = "a number may have 500 characters, and an exponent of three digits"
)

// scan tells how many levels a JSON text has, its longest number and its longest exponent.
func scan(raw []byte) (deepest, number, exponent int) {
	depth, digits, after := 0, 0, -1
	for i := 0; i < len(raw); i++ {
		b := raw[i]
		if b >= '0' && b <= '9' || b == '.' {
			digits++
			number = max(number, digits)
			if after >= 0 {
				after++
				exponent = max(exponent, after)
			}
			continue
		}
		switch b {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case 'e', 'E':
			if digits > 0 {
				after = 0
				continue
			}
		case '+', '-':
			if after == 0 {
				continue
			}
		}
		digits, after = 0, -1
	}
	return deepest, number, exponent
}

// extreme finds the first number that is longer than is allowed.
func extreme(v any, at []string) ([]string, bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			if found, ok := extreme(one, append(at, k)); ok {
				return found, true
			}
		}
	case []any:
		for i, one := range v {
			if found, ok := extreme(one, append(at, strconv.Itoa(i))); ok {
				return found, true
			}
		}
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		return slices.Clone(at), len(v) > maxNumber || len(strings.TrimLeft(exponent, "+-")) > maxExponent
	}
	return nil, false
}

// objects counts the objects of a schema.
func objects(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n++
		for _, one := range v {
			n += objects(one)
		}
	case []any:
		for _, one := range v {
			n += objects(one)
		}
	}
	return n
}

// Said shortens what is said of data or of a schema, which may have much of them in it.
func Said(text string) string {
	const first, last = 300, 200
	if len(text) <= first+last {
		return text
	}
	return strings.ToValidUTF8(text[:first], "") + " … " + strings.ToValidUTF8(text[len(text)-last:], "")
}
