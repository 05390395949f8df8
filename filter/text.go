package filter

import (
	"strings"
	"time"
	"unicode"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// String writes a filter as Parse reads it.
func String(f engine.JobFilter) string {
	var b strings.Builder
	term := func(key, value string) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(key)
		b.WriteByte(':')
		b.WriteString(quote(value, false))
	}
	for _, s := range f.States {
		term("state", string(s))
	}
	for _, key := range []string{"queue", "kind", "id", "group", "tenant", "owner", "parent"} {
		if v := *textOf(&f, key); v != "" {
			term(key, v)
		}
	}
	for _, t := range f.Tags {
		term("tag", t)
	}
	for _, p := range f.Payload {
		key := "payload"
		for _, part := range p.Path {
			key += "." + quote(part, true)
		}
		term(key, p.Value)
	}
	for _, key := range []string{"code", "error"} {
		if v := *textOf(&f, key); v != "" {
			term(key, v)
		}
	}
	if !f.Since.IsZero() {
		term("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		term("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	return b.String()
}

// quote puts quotes where a word needs them; a part of a key needs them more often.
func quote(s string, key bool) string {
	special := func(r rune) bool {
		return r == '"' || unicode.IsSpace(r) || unicode.IsControl(r) || key && (r == '.' || r == ':')
	}
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// ParseDuration reads a duration as the API, the CLI and filters write it: as Go
// does, and days before that: 250ms, 90s, 1h30m, 7d, 1d12h. It is never negative.
func ParseDuration(s string) (time.Duration, error) {
	var days time.Duration
	rest := s
	if n, after, ok := strings.Cut(s, "d"); ok && n != "" && strings.Trim(n, "0123456789") == "" && len(n) <= 6 {
		for _, digit := range n {
			days = days*10 + time.Duration(digit-'0')
		}
		if days > maxDays {
			return 0, wrongDuration(s)
		}
		if days, rest = days*24*time.Hour, after; rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d > maxDays*24*time.Hour || strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-") {
		return 0, wrongDuration(s)
	}
	return days + d, nil
}

const maxDays = 36_500

func wrongDuration(s string) error {
	return forebay.Errorf(forebay.CodeInvalid, "", "%q is no duration; one is like 250ms, 90s, 1h30m or 7d, and at most %d days", s, maxDays)
}
