package sqlite

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/forebayhq/forebay/engine"
)

// sieve holds back most of what a filter does not mean, without decoding it.
type sieve struct {
	raw     [][]byte // that a body must have
	payload [][]byte // likewise, unless something in it is escaped
	live    []uint64 // terms of jobs that have not finished
	kept    []uint64 // of others
	inside  int      // the last so many of both are of payloads
}

func newSieve(f *engine.JobFilter) (s sieve) {
	texts := append([]string{f.Group, f.Tenant, f.Owner, f.Parent}, f.Tags...)
	if !strings.Contains(f.Kind, "*") {
		texts = append(texts, f.Kind)
	}
	for _, text := range texts {
		if text != "" {
			s.raw = append(s.raw, []byte(text))
		}
	}
	for _, t := range f.Payload {
		if t.Value != "" && !strings.ContainsRune(t.Value, utf8.RuneError) {
			s.payload = append(s.payload, []byte(t.Value))
		}
	}
	s.live, s.inside = asked(f, true)
	s.kept, _ = asked(f, false)
	return s
}

// may tells whether the job of a body may be meant.
func (s *sieve) may(body []byte) bool {
	for _, n := range s.raw {
		if !bytes.Contains(body, n) {
			return false
		}
	}
	for _, n := range s.payload {
		if !bytes.Contains(body, n) {
			return bytes.IndexByte(body, '\\') >= 0
		}
	}
	return true
}

// mayBe tells whether one of the jobs of a signature may be meant.
func (s *sieve) mayBe(kind int64, bits []byte, open bool) bool {
	all := s.kept
	if kind == signLive {
		all = s.live
	}
	if open { // not all of its payloads' terms are there
		all = all[:len(all)-s.inside]
	}
	for _, h := range all {
		if !inBloom(bits, h) {
			return false
		}
	}
	return true
}
