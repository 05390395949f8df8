package sqlite

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// A term is the hash of one thing that a job can be found by: its kind, a tag, a
// value in its payload. What a filter asks for must be among a job's terms; whether
// the job is meant, engine.JobFilter.Match says.

// What a term is about. It begins what is hashed.
const (
	termQueue   = 'q'
	termKind    = 'k'
	termGroup   = 'g'
	termTenant  = 't'
	termOwner   = 'o'
	termParent  = 'u'
	termTag     = 'a'
	termCode    = 'c'
	termPayload = 'p'
)

// terms gathers those of some jobs.
type terms struct {
	set   map[uint64]struct{}
	open  bool   // of some payload not all are here
	path  []byte // of the value that is read
	left  int    // terms that the payload may still give
	depth int
}

func (s *terms) add(about byte, text string) {
	if text != "" {
		s.path = append(append(s.path[:0], about), text...)
		s.set[xxhash.Sum64(s.path)] = struct{}{}
	}
}

// job adds the terms of a job that its message tells.
func (s *terms) job(m *forebay.Message) {
	s.add(termQueue, m.Queue)
	s.add(termKind, m.Kind)
	s.add(termGroup, m.Group)
	if o := m.Job; o != nil {
		s.add(termTenant, o.Tenant)
		s.add(termOwner, o.Owner)
		s.add(termParent, o.Parent)
		for _, tag := range o.Tags {
			s.add(termTag, tag)
		}
	}
	s.payload(m.Payload)
}

// asked gives the terms that a job must have to be meant by a filter. live: what is
// said of failures is not among them. The last ones, inside, are of the payload.
func asked(f *engine.JobFilter, live bool) (all []uint64, inside int) {
	s := terms{set: map[uint64]struct{}{}}
	s.add(termQueue, f.Queue)
	if !strings.Contains(f.Kind, "*") {
		s.add(termKind, f.Kind)
	}
	s.add(termGroup, f.Group)
	s.add(termTenant, f.Tenant)
	s.add(termOwner, f.Owner)
	s.add(termParent, f.Parent)
	for _, tag := range f.Tags {
		s.add(termTag, tag)
	}
	if !live {
		s.add(termCode, f.Code)
	}
	for h := range s.set {
		all = append(all, h)
	}
	for _, t := range f.Payload {
		s.path = append(s.path[:0], termPayload)
		for _, name := range t.Path {
			s.path = append(append(s.path, name...), 0)
		}
		all = append(all, xxhash.Sum64(append(append(s.path, '='), t.Value...)))
	}
	return all, len(f.Payload)
}

// maxTermDepth is how deep a payload is read; what lies deeper is found by reading.
const maxTermDepth = 64

// payload adds the terms of a payload: its scalar members, those of arrays under the
// path of the array. It reads what is valid JSON as encoding/json does; of what is
// not, nothing can be meant, so it does not matter what is added.
func (s *terms) payload(b []byte) {
	s.path, s.left, s.depth = append(s.path[:0], termPayload), engine.MaxTerms, 0
	if s.value(b) == nil && len(b) > 0 && json.Valid(b) {
		s.open = true // our own reading is at fault: the job is to be found all the same
	}
}

func (s *terms) scalar(text []byte) {
	if s.left == 0 {
		s.open = true
		return
	}
	s.left--
	n := len(s.path)
	s.path = append(append(s.path, '='), text...)
	s.set[xxhash.Sum64(s.path)] = struct{}{}
	s.path = s.path[:n]
}

// value reads one value and gives what comes after it; nil: that is no JSON.
func (s *terms) value(b []byte) []byte {
	if b = space(b); len(b) == 0 {
		return nil
	}
	switch b[0] {
	case '{', '[':
		if s.depth++; s.depth > maxTermDepth {
			s.open = true
			return nil
		}
		rest := s.members(b[1:], b[0] == '{')
		s.depth--
		return rest
	case '"':
		text, rest := stringAt(b)
		if rest != nil {
			s.scalar(text)
		}
		return rest
	}
	n := literalAt(b)
	if n == 0 {
		return nil
	}
	s.scalar(b[:n])
	return b[n:]
}

// literalAt gives the length of the number or word that b begins with; 0: there is none.
func literalAt(b []byte) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return len(word)
		}
	}
	n := 0
	digits := func() {
		for n < len(b) && '0' <= b[n] && b[n] <= '9' {
			n++
		}
	}
	is := func(chars string) bool {
		if n < len(b) && strings.IndexByte(chars, b[n]) >= 0 {
			n++
			return true
		}
		return false
	}
	is("-")
	if !is("0") { // after which no digit belongs to it
		digits()
	}
	if is(".") {
		digits()
	}
	if is("eE") {
		is("+-")
		digits()
	}
	return n
}

// members reads those of an object or an array, after its first character.
func (s *terms) members(b []byte, object bool) []byte {
	closing := byte(']')
	if object {
		closing = '}'
	}
	if b = space(b); len(b) > 0 && b[0] == closing {
		return b[1:]
	}
	for {
		at := len(s.path)
		if object {
			var name []byte
			if b = space(b); len(b) == 0 || b[0] != '"' {
				return nil
			}
			if name, b = stringAt(b); b == nil {
				return nil
			}
			if b = space(b); len(b) == 0 || b[0] != ':' {
				return nil
			}
			b = b[1:]
			s.path = append(append(s.path, name...), 0)
		}
		b = s.value(b)
		s.path = s.path[:at]
		if b = space(b); len(b) == 0 {
			return nil
		}
		switch b[0] {
		case closing:
			return b[1:]
		case ',':
			b = b[1:]
		default:
			return nil
		}
	}
}

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// stringAt reads a string and gives what comes after it; nil: that is none.
func stringAt(b []byte) (text, rest []byte) {
	plain := true
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\':
			plain = false
			i++
		case c == '"':
			text, rest = b[1:i], b[i+1:]
			if rest == nil {
				rest = []byte{}
			}
			if plain && utf8.Valid(text) {
				return text, rest
			}
			var s string
			if json.Unmarshal(b[:i+1], &s) != nil {
				return nil, nil
			}
			return []byte(s), rest
		}
	}
	return nil, nil
}
