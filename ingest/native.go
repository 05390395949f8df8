package ingest

import (
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Our own dialect:
//
//	{"eventType":"app_open","payload":{…},"userId":"u1","eventId":"…","occurredAt":"…","sentAt":"…"}
//
// eventType and payload are required. anonymousId stands in for userId in the
// order of events until there is one.

var nativeDialect = &dialect{name: "native", index: nativeField, draft: draftNative}

func nativeField(name []byte) field {
	switch string(name) {
	case "eventType":
		return fType
	case "payload":
		return fPayload
	case "userId":
		return fUser
	case "eventId":
		return fID
	case "occurredAt":
		return fOccurred
	case "sentAt":
		return fSent
	case "anonymousId":
		return fAnonymous
	case "specversion":
		return fSpec
	case "writeKey":
		return fIgnored
	}
	return fUnknown
}

func draftNative(_ *dialect, it *item, out *draft) *fault {
	var bad *fault
	if out.Type, bad = it.text(fType, "eventType"); bad != nil {
		return bad
	}
	if n := utf8.RuneCountInString(out.Type); n > maxTypeRunes {
		return &fault{codeTooLong, "/eventType", "eventType has " + strconv.Itoa(n) + " characters; at most " + strconv.Itoa(maxTypeRunes) + " are allowed"}
	}
	if bad = checkType(out.Type, "eventType"); bad != nil {
		return bad
	}
	if out.ID, bad = it.short(fID, "eventId", maxIDBytes); bad != nil {
		return bad
	}
	if bad = it.who(out); bad != nil {
		return bad
	}
	if bad = it.times(out, fOccurred, "occurredAt", "sentAt"); bad != nil {
		return bad
	}
	payload := it.value[fPayload]
	switch {
	case payload == nil:
		return &fault{codeMissing, "/payload", "payload is missing; an object is needed, {} at least"}
	case !isObject(payload):
		return &fault{codeWrongType, "/payload", "payload is " + kindOf(payload) + "; an object is needed"}
	}
	out.Payload = jsontext.Value(payload)
	out.content, out.subject, out.subjectAt = payload, payload, "/payload"
	return nil
}

// checkType is for the text that names an event's type, in every dialect.
func checkType(s, name string) *fault {
	if s == "" {
		return &fault{codeMissing, "/" + name, name + " is missing; a string that is not empty is needed"}
	}
	if !printable(s) {
		return &fault{codeInvalidText, "/" + name, name + " has control characters; plain text is allowed"}
	}
	return nil
}
