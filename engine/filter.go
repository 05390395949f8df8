package engine

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// JobFilter says which jobs are meant. All of it must hold; zero fields hold for
// all. Match is its definition; engines may find the same faster.
type JobFilter struct {
	States  []forebay.State // any of them
	Queue   string
	ID      string
	Kind    string // with * for any run of characters
	Group   string
	Tenant  string
	Owner   string
	Parent  string
	Tags    []string // all of them
	Code    string   // of the cause, or of the last failure
	Error   string   // in the text of the cause or the last failure, in any case
	Since   time.Time
	Until   time.Time // sent in [Since, Until)
	Payload []PayloadTerm
}

// PayloadTerm holds for payloads that have the value at the path. Through arrays
// every element is tried.
type PayloadTerm struct {
	Path  []string
	Value string // text of a string, a number as it is written, true, false, null
}

// Match tells whether a job is meant.
func (f *JobFilter) Match(j *forebay.Job) bool {
	o := j.Job
	if o == nil {
		o = &forebay.JobOptions{}
	}
	same := func(want, have string) bool { return want == "" || want == have }
	return (len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
		same(f.Queue, j.Queue) && same(f.ID, j.ID) && same(f.Group, j.Group) &&
		same(f.Tenant, o.Tenant) && same(f.Owner, o.Owner) && same(f.Parent, o.Parent) &&
		(f.Kind == "" || matchStar(f.Kind, j.Kind)) &&
		(f.Since.IsZero() || !j.SentAt.Before(f.Since)) && (f.Until.IsZero() || j.SentAt.Before(f.Until)) &&
		f.matchTags(o.Tags) && f.matchError(j) && f.matchPayload(j.Payload)
}

func (f *JobFilter) matchTags(tags []string) bool {
	for _, t := range f.Tags {
		if !slices.Contains(tags, t) {
			return false
		}
	}
	return true
}

func (f *JobFilter) matchError(j *forebay.Job) bool {
	if f.Code == "" && f.Error == "" {
		return true
	}
	c := j.Cause
	if c.Code == "" && c.Message == "" && len(j.Failures) > 0 {
		c = j.Failures[len(j.Failures)-1]
	}
	return (f.Code == "" || f.Code == c.Code) &&
		(f.Error == "" || strings.Contains(strings.ToLower(c.Message), strings.ToLower(f.Error)))
}

func (f *JobFilter) matchPayload(payload []byte) bool {
	if len(f.Payload) == 0 {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return false
	}
	for _, t := range f.Payload {
		if !hasTerm(v, t.Path, t.Value) {
			return false
		}
	}
	return true
}

func hasTerm(v any, path []string, want string) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return hasTerm(one, path, want) })
	}
	if len(path) > 0 {
		object, ok := v.(map[string]any)
		if !ok {
			return false
		}
		next, ok := object[path[0]]
		return ok && hasTerm(next, path[1:], want)
	}
	switch v := v.(type) {
	case string:
		return v == want
	case json.Number:
		return v.String() == want
	case bool:
		return want == "true" && v || want == "false" && !v
	case nil:
		return want == "null"
	}
	return false
}

// matchStar matches a pattern in which * stands for any run of characters.
func matchStar(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		s, rest = s[at+len(part):], next
	}
}
