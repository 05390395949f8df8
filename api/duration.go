package api

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/filter"
)

// Duration is a length of time, in JSON always a text such as 250ms, 30s, 1h30m or
// 7d. Only fields whose names end in Seconds are numbers.
type Duration time.Duration

// UnmarshalText reads it as filters and the command line do.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := filter.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// MarshalText writes it as UnmarshalText reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Schema is for the OpenAPI document.
func (Duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{"30s"}, Description: "A duration: 250ms, 30s, 1h30m, 7d."}
}

// Moment is a time, or a duration from now.
type Moment struct {
	At time.Time
	In time.Duration // where At is zero
}

// UnmarshalText reads either.
func (m *Moment) UnmarshalText(text []byte) error {
	if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
		*m = Moment{At: at}
		return nil
	}
	d, err := filter.ParseDuration(string(text))
	if err != nil {
		return forebay.Errorf(forebay.CodeInvalid, "", "%q is neither a time such as 2026-01-31T08:00:00Z nor a duration from now such as 90s, 1h30m or 7d", text)
	}
	*m = Moment{In: d}
	return nil
}

// MarshalText writes it as UnmarshalText reads it.
func (m Moment) MarshalText() ([]byte, error) {
	if m.At.IsZero() {
		return []byte(m.In.String()), nil
	}
	return m.At.AppendFormat(nil, time.RFC3339Nano), nil
}

// Schema is for the OpenAPI document.
func (Moment) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{"10m"}, Description: "A time as RFC 3339, or a duration from now."}
}

func (m *Moment) time(now time.Time) time.Time {
	switch {
	case m == nil:
		return time.Time{}
	case m.At.IsZero():
		return now.Add(m.In)
	}
	return m.At
}

// waitOf reads ?wait=.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := filter.ParseDuration(text)
	if err != nil || d > maxWait {
		return 0, wrong("wait", "wait is %q; a duration from 0s to %s is allowed", text, maxWait)
	}
	return d, nil
}

// maxWait of a call is shorter than callTimeout, so that the wait ends with an answer.
const maxWait = 50 * time.Second

func wrong(field, format string, args ...any) *forebay.Error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}
