package ingest

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Codes of what is wrong with one event. They are part of the API.
const (
	codeInvalidJSON    = "invalid_json"
	codeDuplicateName  = "duplicate_member"
	codeNotObject      = "not_an_object"
	codeMissing        = "missing"
	codeWrongType      = "wrong_type"
	codeInvalidText    = "invalid_text"
	codeInvalidTime    = "invalid_time"
	codeTooLong        = "too_long"
	codeTooLarge       = "too_large"
	codeTooDeep        = "too_deep"
	codeNumber         = "number_out_of_range"
	codeUnknownType    = "unknown_type"
	codeSchema         = "schema_violation"
	codeRefused        = "refused" // by the queue; our own checks should have found it
	codeRepaired       = "repaired"
	codeUnknownMember  = "unknown_member"
	codeConflict       = "conflict"
	codeSchemaWarning  = "schema_warning"
	codeTooManyMembers = "too_many_members"
)

// fault says what is wrong with one event: what, where, and what is allowed.
type fault struct {
	code, pointer, message string
}

// field is a member that a dialect knows. The same meaning has the same field in
// all dialects.
type field uint8

const (
	fUnknown field = iota
	fIgnored       // known, and not for us: the write key in an event's own body
	fID
	fType
	fName // Segment: the name of a tracked event
	fUser
	fAnonymous
	fPayload
	fOccurred
	fOriginal
	fSent
	fSource
	fSpec
	fPartition
	fProperties
	fTraits
	fieldCount
)

// maxMembers bounds the members of one event's top level, so that a hostile one
// costs no more than its bytes.
const maxMembers = 1000

// item is one event on its way through a dialect.
type item struct {
	raw      []byte             // one JSON value, or what was found in its place
	value    [fieldCount][]byte // raw JSON values; nil: absent or null
	unknown  []byte             // the name of the first unknown member
	repaired bool

	dec *jsontext.Decoder
	src bytes.Buffer
}

func newItem() *item {
	it := &item{}
	it.dec = jsontext.NewDecoder(&it.src)
	return it
}

// drop forgets the bytes of the request.
func (it *item) drop() {
	it.raw, it.unknown, it.src = nil, nil, bytes.Buffer{}
	clear(it.value[:])
}

// read checks that raw is one strict JSON object within the limits and finds the
// members that index knows. Text that JSON or a store cannot hold (NUL, lone
// surrogates, bytes that are not UTF-8) is replaced by U+FFFD.
func (it *item) read(raw []byte, f facts, l *Limits, index func(name []byte) field) *fault {
	it.raw, it.repaired, it.unknown = raw, false, nil
	clear(it.value[:])
	switch {
	case len(raw) > l.EventBytes:
		return &fault{codeTooLarge, "", "the event has " + strconv.Itoa(len(raw)) + " bytes; at most " + strconv.Itoa(l.EventBytes) + " are allowed"}
	case f.depth > l.Depth:
		return &fault{codeTooDeep, "", "the event is nested " + strconv.Itoa(f.depth) + " deep; at most " + strconv.Itoa(l.Depth) + " are allowed"}
	case len(raw) == 0:
		return &fault{codeInvalidJSON, "", "there is nothing here; a JSON object is needed"}
	case f.nul:
		it.repair()
	}
	err := it.walk(index)
	if err != nil && !it.repaired && it.repair() {
		err = it.walk(index)
	}
	if err != nil {
		return faultOf(err)
	}
	if len(it.raw) > l.EventBytes {
		return &fault{codeTooLarge, "", "the event has " + strconv.Itoa(len(it.raw)) + " bytes once its text is repaired; at most " + strconv.Itoa(l.EventBytes) + " are allowed"}
	}
	if f.badNumber > 0 {
		return &fault{codeNumber, it.pointerAt(int64(it.badNumberAt())),
			"a number has at most " + strconv.Itoa(maxNumberBytes) + " characters and an exponent of at most " + strconv.Itoa(maxExponent)}
	}
	return nil
}

// walk reads the members of raw; it is strict about everything in it.
func (it *item) walk(index func(name []byte) field) error {
	clear(it.value[:])
	it.unknown = nil
	it.src = *bytes.NewBuffer(it.raw)
	d := it.dec
	d.Reset(&it.src)
	if d.PeekKind() != '{' {
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		return &fault{codeNotObject, "", "this is " + kindOf(v) + "; an object is needed"}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for n := 0; d.PeekKind() != '}'; n++ {
		if n == maxMembers {
			return &fault{codeTooManyMembers, "", "the event has more than " + strconv.Itoa(maxMembers) + " members; put them into its payload"}
		}
		name, err := it.next()
		if err != nil {
			return err
		}
		value, err := it.next()
		if err != nil {
			return err
		}
		known := index(plainName(name))
		if known == fUnknown && it.unknown == nil {
			it.unknown = name
		}
		if value[0] != 'n' { // null is absent
			it.value[known] = value
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		if err == nil {
			err = &fault{codeInvalidJSON, "", "more follows after the event's closing brace"}
		}
		return err
	}
	return nil
}

// next reads one value as a part of raw, which stays valid.
func (it *item) next() ([]byte, error) {
	v, err := it.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := it.dec.InputOffset()
	return it.raw[end-int64(len(v)) : end : end], nil
}

// plainName takes the quotes off a name, and escapes where it has some.
func plainName(quoted []byte) []byte {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	plain, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return name
	}
	return plain
}

func (f *fault) Error() string { return f.message }

// faultOf says in our words what the decoder found.
func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) {
		return &fault{codeInvalidJSON, "", "the event ends early"}
	}
	where := " at byte " + strconv.FormatInt(s.ByteOffset, 10) + " of the event"
	pointer := shorten(string(s.JSONPointer))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return &fault{codeDuplicateName, pointer, "the member appears twice" + where + "; each name may appear once in an object"}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &fault{codeInvalidJSON, pointer, "the event ends early," + where}
	}
	return &fault{codeInvalidJSON, pointer, shorten(s.Err.Error()) + where}
}

// anyID is the id of an event that was refused, where it can be read.
func (it *item) anyID() string {
	id, bad := it.text(fID, "id")
	if bad != nil {
		return ""
	}
	return shorten(id)
}

// badNumberAt finds the number again, since repair may have moved it.
func (it *item) badNumberAt() int {
	var f facts
	f.scanValue(it.raw, 0)
	return max(f.badNumber-1, 0)
}

// pointerAt names the value that begins at an offset of raw, which is valid JSON.
func (it *item) pointerAt(offset int64) string {
	it.src = *bytes.NewBuffer(it.raw)
	it.dec.Reset(&it.src)
	for {
		if _, err := it.dec.ReadToken(); err != nil {
			return ""
		}
		if it.dec.InputOffset() > offset {
			return shorten(string(it.dec.StackPointer()))
		}
	}
}
