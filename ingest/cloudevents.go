package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// CloudEvents 1.0 in its JSON form; binary ones are put into it first. The payload
// is the whole event, so that its attributes and extensions are kept. Its identity
// is source and id together, as the specification says.

var cloudDialect = &dialect{name: "cloudevents", index: cloudField, draft: draftCloud, whole: true}

func cloudField(name []byte) field {
	switch string(name) {
	case "id":
		return fID
	case "source":
		return fSource
	case "type":
		return fType
	case "specversion":
		return fSpec
	case "time":
		return fOccurred
	case "userid":
		return fUser
	case "partitionkey":
		return fPartition
	case "data":
		return fPayload
	}
	return fIgnored
}

func draftCloud(_ *dialect, it *item, out *draft) *fault {
	version, bad := it.text(fSpec, "specversion")
	if bad != nil {
		return bad
	}
	if version != "1.0" {
		return &fault{codeUnknownType, "/specversion", `specversion is "` + shorten(version) + `"; "1.0" is needed`}
	}
	if out.Type, bad = it.short(fType, "type", maxTypeBytes); bad != nil {
		return bad
	}
	if bad = checkType(out.Type, "type"); bad != nil {
		return bad
	}
	if bad = it.cloudIdentity(out); bad != nil {
		return bad
	}
	if out.UserID, bad = it.short(fUser, "userid", maxIDBytes); bad != nil {
		return bad
	}
	if out.group = out.UserID; out.group == "" {
		if out.group, bad = it.short(fPartition, "partitionkey", maxIDBytes); bad != nil {
			return bad
		}
	}
	if out.OccurredAt, bad = it.time(fOccurred, "time"); bad != nil {
		return bad
	}
	out.Payload = jsontext.Value(it.raw)
	out.content, out.subject, out.subjectAt = it.raw, it.value[fPayload], "/data"
	return nil
}

// cloudIdentity makes one id of source and id: "source#id" where that is short and
// cannot be read in two ways, else a hash of both.
func (it *item) cloudIdentity(out *draft) *fault {
	var part [2]string
	for i, f := range []field{fID, fSource} {
		name := [2]string{"id", "source"}[i]
		s, bad := it.short(f, name, 2048)
		if bad != nil {
			return bad
		}
		if s == "" {
			return &fault{codeMissing, "/" + name, name + " is missing; a string that is not empty is needed"}
		}
		part[i] = s
	}
	id, source := part[0], part[1]
	if out.ID = source + "#" + id; len(out.ID) > maxIDBytes || strings.Contains(source, "#") {
		sum := sha256.Sum256([]byte(source + "\x00" + id))
		out.ID = "cloudevent-" + hex.EncodeToString(sum[:])
	}
	return nil
}
