package ingest

import (
	"github.com/go-json-experiment/json/jsontext"
)

// Segment's dialect, as its SDKs and RudderStack's speak it. The payload is the
// whole call, so that nothing of it is lost: properties, traits and context are
// members of it. The type is the name of a tracked event, else the verb.

// segmentVerbs are Segment's routes below /v1/. A batch's items name their own.
var segmentVerbs = map[string]string{
	"batch": "", "b": "", "import": "",
	"track": "track", "t": "track",
	"identify": "identify", "i": "identify",
	"page": "page", "p": "page",
	"screen": "screen", "s": "screen",
	"group": "group", "g": "group",
	"alias": "alias", "a": "alias",
}

func segmentDialect(verb string) *dialect {
	return &dialect{name: "segment", verb: verb, index: segmentField, draft: draftSegment, whole: true}
}

func segmentField(name []byte) field {
	switch string(name) {
	case "type":
		return fType
	case "event":
		return fName
	case "messageId":
		return fID
	case "userId":
		return fUser
	case "anonymousId":
		return fAnonymous
	case "timestamp":
		return fOccurred
	case "originalTimestamp":
		return fOriginal
	case "sentAt":
		return fSent
	case "properties":
		return fProperties
	case "traits":
		return fTraits
	}
	return fIgnored
}

func draftSegment(d *dialect, it *item, out *draft) *fault {
	verb, bad := it.text(fType, "type")
	if bad != nil {
		return bad
	}
	if verb == "" {
		verb = d.verb
	}
	switch verb {
	case "track":
		if out.Type, bad = it.short(fName, "event", maxTypeBytes); bad != nil {
			return bad
		}
		if bad = checkType(out.Type, "event"); bad != nil {
			return bad
		}
	case "identify", "page", "screen", "group", "alias":
		out.Type = verb
	case "":
		return &fault{codeMissing, "/type", "type is missing; track, identify, page, screen, group or alias is needed"}
	default:
		return &fault{codeUnknownType, "/type", "the type " + shorten(verb) + " is not known; track, identify, page, screen, group and alias are"}
	}
	if out.ID, bad = it.short(fID, "messageId", maxIDBytes); bad != nil {
		return bad
	}
	it.numberAsText(fUser)
	it.numberAsText(fAnonymous)
	if bad = it.who(out); bad != nil {
		return bad
	}
	occurred, name := fOccurred, "timestamp"
	if it.value[fOriginal] != nil {
		occurred, name = fOriginal, "originalTimestamp"
	}
	if bad = it.times(out, occurred, name, "sentAt"); bad != nil {
		return bad
	}
	out.Payload = jsontext.Value(it.raw)
	out.subject, out.subjectAt = it.value[fProperties], "/properties"
	if verb == "identify" || verb == "group" {
		out.subject, out.subjectAt = it.value[fTraits], "/traits"
	}
	out.content = out.subject
	return nil
}

// numberAsText lets a number be an id, as Segment does.
func (it *item) numberAsText(f field) {
	v := it.value[f]
	if v == nil || kindOf(v) != "a number" {
		return
	}
	it.value[f] = append(append([]byte{'"'}, v...), '"')
}
