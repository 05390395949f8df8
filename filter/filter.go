// Package filter is the text in which people say which jobs they mean, the same in
// the API, the CLI and the console:
//
//	state:dead state:expired queue:mail kind:email.* payload.user.id:42 since:1h error:"timed out"
//
// Terms stand side by side and must all hold; a repeated state means any of them,
// repeated tags and payload terms mean all. A value with a space or a quote stands
// in quotes, in which \" and \\ are written with a backslash; so does a part of a
// payload path that has a dot or a colon. since and until are times: RFC 3339, or a
// duration before now such as 90s, 1h30m, 7d.
//
// It promises that what it cannot read is refused with the column, the reason and
// what is allowed, that String gives a text which Parse reads as the same filter, and
// that both cost no more than the length of the text.
//
// It refuses to look at jobs: engine.JobFilter does.
package filter

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of one filter.
const (
	MaxBytes = 4096
	MaxTerms = 32
	MaxDepth = 16 // parts of one payload path
)

// keys are what a term may begin with, as errors name them.
var keys = []string{
	"state", "queue", "kind", "payload.PATH", "id", "tag", "tenant", "group", "owner", "parent", "code", "error", "since", "until",
}

// Parse reads a filter. An empty text means all jobs.
func Parse(text string, now time.Time) (engine.JobFilter, error) {
	p := &parser{text: text, now: now, seen: map[string]bool{}}
	if len(text) > MaxBytes {
		return engine.JobFilter{}, p.wrong(MaxBytes, "it has %d bytes; at most %d are allowed", len(text), MaxBytes)
	}
	if !utf8.ValidString(text) {
		return engine.JobFilter{}, p.wrong(firstInvalid(text), "it is not UTF-8")
	}
	for n := 0; ; n++ {
		p.space()
		if p.at == len(p.text) {
			return p.filter, nil
		}
		if n == MaxTerms {
			return engine.JobFilter{}, p.wrong(p.at, "there are more than %d terms", MaxTerms)
		}
		if err := p.term(); err != nil {
			return engine.JobFilter{}, err
		}
	}
}

func firstInvalid(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return i
		}
	}
	return 0
}

type parser struct {
	text   string
	at     int // byte that is next
	now    time.Time
	seen   map[string]bool
	filter engine.JobFilter
}

// wrong makes the error for a place in the text.
func (p *parser) wrong(at int, format string, args ...any) error {
	column := utf8.RuneCountInString(p.text[:min(at, len(p.text))]) + 1
	e := forebay.Errorf(forebay.CodeInvalid, "", "the filter is wrong at column %d: "+format, append([]any{column}, args...)...)
	e.Field = "q"
	e.Hint = "a filter is like: state:dead queue:mail kind:email.* payload.user.id:42 since:1h error:\"timed out\""
	return e
}

func (p *parser) space() {
	for p.at < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsSpace(r) {
			return
		}
		p.at += n
	}
}

// term reads key:value.
func (p *parser) term() error {
	start := p.at
	path, err := p.path()
	if err != nil {
		return err
	}
	if p.at == len(p.text) || p.text[p.at] != ':' {
		return p.wrong(start, "%q is not key:value; a key is one of %s", p.text[start:p.at], strings.Join(keys, ", "))
	}
	p.at++
	valueAt := p.at
	value, quoted, err := p.word(false)
	if err != nil {
		return err
	}
	if p.at < len(p.text) {
		if r, _ := utf8.DecodeRuneInString(p.text[p.at:]); !unicode.IsSpace(r) {
			return p.wrong(p.at, "a space must follow a quoted value, not %q", r)
		}
	}
	if path[0] == "payload" {
		if value == "" && !quoted {
			return p.wrong(valueAt, "the payload term has no value; for an empty text write \"\"")
		}
		p.filter.Payload = append(p.filter.Payload, engine.PayloadTerm{Path: path[1:], Value: value})
		return nil
	}
	if len(path) > 1 {
		return p.wrong(start, "%q is no key; one is one of %s", strings.Join(path, "."), strings.Join(keys, ", "))
	}
	if value == "" {
		return p.wrong(valueAt, "%s has no value", path[0])
	}
	return p.set(path[0], value, start, valueAt)
}

// path reads the parts before the colon; there is at least one.
func (p *parser) path() ([]string, error) {
	var path []string
	for {
		start := p.at
		part, quoted, err := p.word(true)
		if err != nil {
			return nil, err
		}
		if part == "" && !quoted {
			return nil, p.wrong(start, "a key, or a part of a path, is missing here; a key is one of %s", strings.Join(keys, ", "))
		}
		if quoted && len(path) == 0 {
			return nil, p.wrong(start, "a key stands in no quotes; a term is key:value, and a key one of %s", strings.Join(keys, ", "))
		}
		if path = append(path, part); len(path) > MaxDepth+1 {
			return nil, p.wrong(start, "the path has more than %d parts", MaxDepth)
		}
		if p.at == len(p.text) || p.text[p.at] != '.' {
			return path, nil
		}
		p.at++
	}
}

// word reads a quoted text, or one up to a space; a part of a key ends at a dot or
// colon too.
func (p *parser) word(key bool) (word string, quoted bool, err error) {
	if strings.HasPrefix(p.text[p.at:], `"`) {
		word, err = p.quoted()
		return word, true, err
	}
	start := p.at
	for p.at < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.at:])
		if unicode.IsSpace(r) || key && (r == '.' || r == ':') {
			break
		}
		if r == '"' {
			return "", false, p.wrong(p.at, "a quote stands within %q; put the whole in quotes, and write the one within as \\\"", p.text[start:p.at])
		}
		if unicode.IsControl(r) {
			return "", false, p.wrong(p.at, "the control character %q is not allowed", r)
		}
		p.at += n
	}
	return p.text[start:p.at], false, nil
}

func (p *parser) quoted() (string, error) {
	start := p.at
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch c {
		case '"':
			p.at++
			return b.String(), nil
		case '\\':
			p.at++
			if p.at == len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\\' {
				return "", p.wrong(p.at, `after a backslash in quotes, only " and \ are allowed`)
			}
			c = p.text[p.at]
		}
		b.WriteByte(c)
		p.at++
	}
	return "", p.wrong(start, "the quote that begins here has no end")
}

// set takes the value of any key but payload.
func (p *parser) set(key, value string, keyAt, valueAt int) error {
	f := &p.filter
	switch key {
	case "state":
		s := forebay.State(value)
		if !slices.Contains(forebay.States[:], s) {
			return p.wrong(valueAt, "%q is no state; one is %s", value, stateNames())
		}
		if !slices.Contains(f.States, s) {
			f.States = append(f.States, s)
		}
		return nil
	case "tag":
		if len(f.Tags) == forebay.MaxTags {
			return p.wrong(keyAt, "there are more than %d tags, which no job has", forebay.MaxTags)
		}
		f.Tags = append(f.Tags, value)
		return nil
	case "name": // what the API calls the kind of a job
		key = "kind"
	}
	if p.seen[key] {
		return p.wrong(keyAt, "%s stands there already; only state, tag and payload terms may be repeated", key)
	}
	p.seen[key] = true
	if key == "since" || key == "until" {
		return p.time(key, value, valueAt)
	}
	field := textOf(f, key)
	if field == nil {
		return p.wrong(keyAt, "%q is no key; one is one of %s", key, strings.Join(keys, ", "))
	}
	*field = value
	return nil
}

func textOf(f *engine.JobFilter, key string) *string {
	switch key {
	case "queue":
		return &f.Queue
	case "kind":
		return &f.Kind
	case "id":
		return &f.ID
	case "tenant":
		return &f.Tenant
	case "group":
		return &f.Group
	case "owner":
		return &f.Owner
	case "parent":
		return &f.Parent
	case "code":
		return &f.Code
	case "error":
		return &f.Error
	}
	return nil
}

func (p *parser) time(key, value string, at int) error {
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		d, err := ParseDuration(value)
		if err != nil {
			return p.wrong(at, "%s is %q; allowed are a time such as 2026-01-31T08:00:00Z, and a duration before now such as 90s, 1h30m or 7d", key, value)
		}
		t = p.now.Add(-d)
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 || t.IsZero() {
		return p.wrong(at, "%s is out of the range of times", key)
	}
	if t = t.Round(0); key == "since" {
		p.filter.Since = t
	} else {
		p.filter.Until = t
	}
	return nil
}

func stateNames() string {
	names := make([]string, len(forebay.States))
	for i, s := range forebay.States {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
