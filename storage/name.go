package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxName    = 512
	maxSegment = 128
)

// CheckName tells what is wrong with a name. One is made of segments with a slash
// between them; each has letters, digits, '-', '_' and '.', and begins with none of
// the last. So a name is the same on every system, needs no escape in a URL, and
// leads nowhere else. The file driver keeps notes in names that end in `.attrs`.
func CheckName(name string) error {
	switch {
	case name == "":
		return invalid("name", "the name is empty")
	case len(name) > maxName:
		return invalid("name", "the name has %d bytes; at most %d are allowed", len(name), maxName)
	case strings.HasSuffix(name, ".attrs"):
		return invalid("name", "%q ends in .attrs, which the store uses itself", name)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if !plain(segment) {
			return invalid("name", "%q is not a name: letters, digits, '-', '_', '.' (not first) and '/' between them are allowed", name)
		}
	}
	return nil
}

// Segment makes of any id something that a name may contain: itself where it is
// plain, else its hash.
func Segment(id string) string {
	if plain(id) && !strings.HasSuffix(id, ".attrs") {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "x-" + hex.EncodeToString(sum[:16])
}

func plain(segment string) bool {
	if segment == "" || len(segment) > maxSegment || segment[0] == '.' {
		return false
	}
	for i := range len(segment) {
		c := segment[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !(c >= '0' && c <= '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return !strings.Contains(segment, "..") // the file driver escapes these
}
