package engine

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/forebayhq/forebay"
)

// The most that a message may ask for.
const (
	MaxAttempts   = 1000
	MaxDeliveries = 10_000
)

func invalid(field, format string, args ...any) *forebay.Error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}

// CheckMessage finds the first thing that is wrong with a message that is to be
// sent now. Engines refuse by it, item for item, and so does whoever asks earlier.
func CheckMessage(m *forebay.Message, now time.Time) error {
	var err error
	first := func(e error) {
		if err == nil {
			err = e
		}
	}
	first(CheckQueue(m.Queue))
	if m.ID == "" {
		first(invalid("id", "the message has no id; each needs one"))
	}
	first(checkName("id", m.ID, forebay.MaxIDBytes))
	first(checkName("kind", m.Kind, forebay.MaxKindBytes))
	first(checkName("group", m.Group, forebay.MaxIDBytes))
	first(checkName("dedupKey", m.DedupKey, forebay.MaxIDBytes))
	first(checkName("limitKey", m.LimitKey, forebay.MaxIDBytes))
	first(checkHeaders(m.Headers))
	first(checkNumbers(m, now))
	first(checkJob(m, now))
	first(checkPayload(m.Payload))
	return err
}

func checkPayload(payload []byte) error {
	if n := len(payload); n > forebay.MaxPayloadBytes {
		e := invalid("payload", "the payload has %d bytes; at most %d are allowed", n, forebay.MaxPayloadBytes)
		e.Code = forebay.CodeTooLarge
		return e
	}
	return nil
}

// CheckQueue looks at the name of a queue. It allows what SQS allows, so that a queue can move there by a setting.
func CheckQueue(name string) error {
	const allowed = "allowed are 1 to %d of A-Z a-z 0-9 - _ and then, perhaps, .fifo"
	if name == "" {
		return invalid("queue", "the queue has no name; "+allowed, forebay.MaxQueueBytes)
	}
	if len(name) > forebay.MaxQueueBytes {
		return invalid("queue", "the queue name has %d bytes; "+allowed, len(name), forebay.MaxQueueBytes)
	}
	stem := strings.TrimSuffix(name, ".fifo")
	for _, r := range stem {
		ok := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
		if !ok {
			return invalid("queue", "the queue name %q has the character %q; "+allowed, name, r, forebay.MaxQueueBytes)
		}
	}
	if stem == "" {
		return invalid("queue", "the queue name %q is only an ending; "+allowed, name, forebay.MaxQueueBytes)
	}
	return nil
}

// checkName is for ids, keys and kinds, which end in logs, URLs and text columns.
func checkName(field, s string, most int) error {
	if len(s) > most {
		return invalid(field, "the %s has %d bytes; at most %d are allowed", field, len(s), most)
	}
	if !plain(s, false) {
		return invalid(field, "the %s %q is not plain text; UTF-8 without control characters is allowed", field, s)
	}
	return nil
}

func checkHeaders(h map[string]string) error {
	if len(h) == 0 {
		return nil
	}
	if len(h) > forebay.MaxHeaders {
		return invalid("headers", "there are %d headers; at most %d are allowed", len(h), forebay.MaxHeaders)
	}
	size := 0
	for name, value := range h {
		size += len(name) + len(value)
		switch {
		case name == "":
			return invalid("headers", "a header has no name; each needs one")
		case !plain(name, false):
			return invalid("headers", "the header name %q is not plain text; UTF-8 without control characters is allowed", name)
		case !plain(value, true):
			return invalid("headers", "the value of header %q is not plain text; UTF-8 without control characters other than tab is allowed", name)
		}
	}
	if size > forebay.MaxHeaderBytes {
		return invalid("headers", "the headers have %d bytes; at most %d are allowed for all names and values together", size, forebay.MaxHeaderBytes)
	}
	return nil
}

func plain(s string, tab bool) bool {
	ascii := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < ' ' && (c != '\t' || !tab) || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if ascii {
		return true
	}
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) && (r != '\t' || !tab) }) == -1
}

func checkNumbers(m *forebay.Message, now time.Time) error {
	if !m.NotBefore.IsZero() && m.NotBefore.After(now.Add(forebay.MaxDelay)) {
		return invalid("notBefore", "the message waits until %s; at most %s from now is allowed",
			m.NotBefore.UTC().Format(time.RFC3339), days(forebay.MaxDelay))
	}
	if m.Priority > forebay.At(9) {
		return invalid("priority", "the priority %d is not a level; 0 to 9 are allowed", m.Priority.Level())
	}
	if m.DedupWindow < 0 || m.DedupWindow > forebay.MaxDelay {
		return invalid("dedupWindow", "the dedup window is %s; 0 (the default) to %s are allowed", m.DedupWindow, days(forebay.MaxDelay))
	}
	if n := m.Limits.Attempts; n < 0 || n > MaxAttempts {
		return invalid("limits.attempts", "%d attempts; 0 (the default) to %d are allowed", n, MaxAttempts)
	}
	if n := m.Limits.Deliveries; n < 0 || n > MaxDeliveries {
		return invalid("limits.deliveries", "%d deliveries; 0 (the default) to %d are allowed", n, MaxDeliveries)
	}
	return nil
}

func days(d time.Duration) string { return fmt.Sprintf("%d days", d/(24*time.Hour)) }
