package ingest

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay/event"
)

// dialect is one form of events that clients speak. It finds what an event has;
// what becomes of it is the same for all.
type dialect struct {
	name  string // as it is told in bad rows, metrics and events' sources
	verb  string // Segment: what the route says the events are; empty: they say it themselves
	index func(name []byte) field
	draft func(d *dialect, it *item, out *draft) *fault

	// whole: the payload is the event as it came. What is no member of ours is kept
	// by that, and needs no warning.
	whole bool
}

// rowName tells a dialect, with its verb, in a bad row.
func (d *dialect) rowName() string {
	if d.verb == "" {
		return d.name
	}
	return d.name + ":" + d.verb
}

// dialectOf finds the dialect that rowName named, nil when there is none.
func dialectOf(rowName string) *dialect {
	name, verb, _ := strings.Cut(rowName, ":")
	switch name {
	case nativeDialect.name:
		return nativeDialect
	case cloudDialect.name:
		return cloudDialect
	case "segment":
		return segmentDialect(verb)
	}
	return nil
}

// pointerToken escapes a name for a JSON pointer.
var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

// draft is an event as its client means it: OccurredAt is by the client's clock.
type draft struct {
	event.Event
	group string

	content   []byte // what makes it another event, see fingerprint
	subject   []byte // what a schema looks at; nil: an empty object
	subjectAt string // its JSON pointer
	// said is the first thing that is odd and was accepted all the same.
	said fault
}

// fingerprint is of what the client says about the event itself. When it sends the
// event again, the times of sending and of arrival differ, and say nothing.
func (d *draft) fingerprint() uint64 {
	var h xxhash.Digest
	h.Reset()
	for _, s := range [...]string{d.Type, d.UserID, d.group} {
		_, _ = h.WriteString(s) // never fails
		_, _ = h.WriteString("\x00")
	}
	said := d.OriginalAt
	if said.IsZero() {
		said = d.OccurredAt
	}
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(said.UnixNano()))
	_, _ = h.Write(at[:])
	_, _ = h.Write(d.content)
	return h.Sum64()
}

// isObject tells whether a raw JSON value is an object; absent is not.
func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }

// times reads when the event occurred and was sent.
func (it *item) times(out *draft, occurred field, occurredName, sentName string) *fault {
	var bad *fault
	if out.OccurredAt, bad = it.time(occurred, occurredName); bad != nil {
		return bad
	}
	at, bad := it.time(fSent, sentName)
	if bad != nil {
		return bad
	}
	if !at.IsZero() {
		out.SentAt = at
	}
	return nil
}

// who fills the user and the group from a user id and an anonymous id.
func (it *item) who(out *draft) *fault {
	user, bad := it.short(fUser, "userId", maxIDBytes)
	if bad != nil {
		return bad
	}
	out.UserID, out.group = user, user
	if user == "" {
		out.group, bad = it.short(fAnonymous, "anonymousId", maxIDBytes)
	}
	return bad
}
