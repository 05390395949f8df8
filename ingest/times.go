package ingest

import (
	"bytes"
	"strconv"
	"time"
)

// Clock skew. A phone's clock may be minutes, hours or ten years off. It stamps
// the event and, with the same clock, the request; the edge stamps the arrival.
// received - sent is how far the clock is off, plus the time on the way. The way
// must not move events: it differs by request and would change the order of one
// phone's events. So the difference counts in steps, and small ones not at all.
const (
	skewStep   = 5 * time.Minute            // less than half of it counts as none
	skewMost   = 100 * 365 * 24 * time.Hour // more is no clock, it is nonsense
	futureMost = 24 * time.Hour
)

// correct gives the time at which an event occurred by the server's clock, and the
// client's own word where that differs.
func correct(said, sent, received time.Time) (occurred, original time.Time) {
	if said.IsZero() {
		return time.Time{}, time.Time{}
	}
	occurred = said
	if !sent.IsZero() {
		occurred = said.Add(skew(sent, received))
	}
	if occurred.After(received.Add(futureMost)) || occurred.Year() < 1 {
		occurred = received
	}
	if !occurred.Equal(said) {
		original = said
	}
	return occurred, original
}

func skew(sent, received time.Time) time.Duration {
	d := received.Sub(sent)
	if d.Abs() > skewMost {
		return 0
	}
	return d.Round(skewStep)
}

// time gives a member as a time, zero when it is absent.
func (it *item) time(f field, name string) (time.Time, *fault) {
	v := it.value[f]
	if v == nil {
		return time.Time{}, nil
	}
	t, ok := readTime(v)
	if !ok {
		return time.Time{}, &fault{codeInvalidTime, "/" + name,
			name + ` is no time; RFC 3339 text like "2026-01-31T12:00:00Z" or milliseconds since 1970 are allowed`}
	}
	return t, nil
}

// latestMilli is the end of the year 9999, the last one that RFC 3339 can write.
const latestMilli = 253402300799999

func readTime(v []byte) (time.Time, bool) {
	if v[0] != '"' {
		ms, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || ms < 0 || ms > latestMilli {
			return time.Time{}, false
		}
		return time.UnixMilli(ms).UTC(), true
	}
	text := v[1 : len(v)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		text = []byte(unquote(v))
	}
	var t time.Time
	if t.UnmarshalText(text) != nil { // strict RFC 3339
		return time.Time{}, false
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t, true
}
