package ingest

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const maxPointer = 256

func shorten(s string) string {
	if len(s) <= maxPointer {
		return s
	}
	return cutText(s, maxPointer) + "…"
}

// cutText gives at most so many bytes of s, whole characters only.
func cutText(s string, most int) string {
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// text gives a member as text, empty when it is absent.
func (it *item) text(f field, name string) (string, *fault) {
	v := it.value[f]
	if v == nil {
		return "", nil
	}
	if v[0] != '"' {
		return "", &fault{codeWrongType, "/" + name, name + " is " + kindOf(v) + "; a string is needed"}
	}
	return unquote(v), nil
}

// unquote gives the text of a JSON string that is known to be valid.
func unquote(v []byte) string {
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return string(v[1 : len(v)-1])
	}
	return string(b)
}

// short gives a member as text that can be an id or a name.
func (it *item) short(f field, name string, most int) (string, *fault) {
	s, bad := it.text(f, name)
	if bad == nil {
		bad = checkShort(s, name, most)
	}
	return s, bad
}

func checkShort(s, name string, most int) *fault {
	if len(s) > most {
		return &fault{codeTooLong, "/" + name, name + " has " + strconv.Itoa(len(s)) + " bytes; at most " + strconv.Itoa(most) + " are allowed"}
	}
	if !printable(s) {
		return &fault{codeInvalidText, "/" + name, name + " has control characters; plain text is allowed"}
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if r < ' ' || r >= 0x7f && unicode.IsControl(r) {
			return false
		}
	}
	return true
}

func kindOf(v []byte) string {
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
