package queue

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// checkText refuses what XML 1.0 could not carry, since the Query protocol has to.
func checkText(s string) error { return checkBytes(s) }

func checkBytes[T string | []byte](s T) error {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return badContents(rune(c))
		} else if c >= utf8.RuneSelf {
			return checkRunes(string(s[i:]))
		}
	}
	return nil
}

func checkRunes(s string) error {
	for i, r := range s {
		switch {
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xFFFE, r == 0xFFFF:
			return badContents(r)
		case r == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return badContents(rune(s[i]))
			}
		}
	}
	return nil
}

func badContents(r rune) error {
	return fault("InvalidMessageContents", "Invalid character 0x%X was found in the message body; the set of allowed characters is #x9 | #xA | #xD | [#x20 to #xD7FF] | [#xE000 to #xFFFD] | [#x10000 to #x10FFFF].", r)
}

// checkAttributes looks at the attributes of a message and gives their size.
func checkAttributes(attributes map[string]Attribute) (size int, err error) {
	if len(attributes) == 0 {
		return 0, nil
	}
	if len(attributes) > maxAttributes {
		return 0, invalidValue("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(attributes), maxAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		if err := checkAttributeName(name); err != nil {
			return 0, err
		}
		n, err := checkAttribute(name, &a)
		if err != nil {
			return 0, err
		}
		size += len(name) + len(a.DataType) + n
	}
	return size, nil
}

func checkAttributeName(name string) error {
	lower := strings.ToLower(name)
	switch {
	case name == "":
		return invalidValue("The message attribute name must contain at least one character.")
	case len(name) > 256:
		return invalidValue("Length of message attribute name must be less than 256 bytes.")
	case strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon."):
		return invalidValue("You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use.")
	case name[0] == '.' || name[len(name)-1] == '.' || strings.Contains(name, ".."):
		return invalidValue("Invalid message attribute name %s: it must not begin or end with a period, or have two in a row.", name)
	}
	for i := range len(name) {
		if c := name[i]; !isWord(c) && c != '-' && c != '_' && c != '.' {
			return invalidValue("Invalid non-alphanumeric character '#x%X' was found in the message attribute name. Can only include alphanumeric characters, hyphens, underscores, or dots.", c)
		}
	}
	return nil
}

// checkAttribute looks at one attribute and gives the size of its value.
func checkAttribute(name string, a *Attribute) (int, error) {
	kind, label, labelled := strings.Cut(a.DataType, ".")
	switch {
	case a.DataType == "":
		return 0, invalidValue("The message attribute '%s' must contain a non-empty message attribute type.", name)
	case len(a.DataType) > 256:
		return 0, invalidValue("Length of message attribute type must be less than 256 bytes.")
	case kind != "String" && kind != "Number" && kind != "Binary" || labelled && label == "":
		return 0, invalidValue("The message attribute '%s' has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.", name)
	case checkText(a.DataType) != nil || strings.ContainsAny(a.DataType, "\t\r\n"):
		return 0, invalidValue("The message attribute '%s' has an invalid message attribute type.", name)
	case len(a.StringListValues) > 0 || len(a.BinaryListValues) > 0:
		return 0, fault("UnsupportedOperation", "Message attribute list values in SendMessage operation are not supported.")
	}
	empty := invalidValue("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", name, a.DataType)
	if kind == "Binary" {
		if a.StringValue != nil || len(a.BinaryValue) == 0 {
			return 0, empty
		}
		return len(a.BinaryValue), nil
	}
	if a.StringValue == nil || *a.StringValue == "" || len(a.BinaryValue) > 0 {
		return 0, empty
	}
	if err := checkText(*a.StringValue); err != nil {
		return 0, invalidValue("The message attribute '%s' has a value with a character that is not allowed.", name)
	}
	if kind == "Number" && !isNumber(*a.StringValue) {
		return 0, invalidValue("Can't cast the value of message attribute '%s' to a number.", name)
	}
	return len(*a.StringValue), nil
}

// isNumber tells whether a text is a decimal number.
func isNumber(s string) bool {
	if len(s) > 256 || strings.ContainsAny(s, "xXpP_iInN") {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil || strings.Contains(err.Error(), "out of range")
}

// checkSystem looks at the system attributes of a message, of which one may be sent.
func checkSystem(attributes map[string]Attribute) (trace string, err error) {
	for name, a := range attributes {
		if name != traceAttribute {
			return "", invalidValue("Message system attribute name '%s' is invalid. Valid message system attribute name is AWSTraceHeader.", name)
		}
		if a.DataType != "String" || a.StringValue == nil || *a.StringValue == "" {
			return "", invalidValue("The message system attribute '%s' must be a non-empty String.", name)
		}
		if trace = *a.StringValue; len(trace) > maxTrace || !plain(trace) {
			return "", invalidValue("The message system attribute '%s' must have at most %d bytes of plain text.", name, maxTrace)
		}
	}
	return trace, nil
}

const (
	traceAttribute = "AWSTraceHeader"
	maxTrace       = 1024
)

// plain tells whether a text can be the value of a header.
func plain(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// checkToken looks at a group id or a dedup id.
func checkToken(parameter, id string) error {
	ok := len(id) >= 1 && len(id) <= 128
	for i := 0; ok && i < len(id); i++ {
		ok = id[i] > ' ' && id[i] < 0x7f
	}
	if !ok {
		return badValue(parameter, id, parameter+" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
	}
	return nil
}
