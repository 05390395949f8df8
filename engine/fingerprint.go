package engine

import (
	"hash/fnv"
	"strings"

	"github.com/forebayhq/forebay"
)

// maxCauseText bounds the text of a group.
const maxCauseText = 512

// DeadFingerprint tells dead letters of one cause from others: those of one queue and
// kind with one code, and with texts that differ in numbers, ids and quoted values only.
// text is what they have in common.
func DeadFingerprint(queue, kind string, c forebay.Cause) (fingerprint uint64, text string) {
	text = CauseText(c.Message)
	return fingerprintOf(queue, kind, c.Code, text), text
}

// DeadFingerprintRest is that of the group for what has no other (MaxDeadGroups).
func DeadFingerprintRest(queue, kind, code string) uint64 {
	return fingerprintOf(queue, kind, code, "\x00")
}

func fingerprintOf(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // never fails
		_, _ = h.Write([]byte{0})
	}
	if sum := h.Sum64(); sum != 0 {
		return sum
	}
	return 1 // 0 means none
}

// CauseText is the text of a cause without what differs each time: a quoted value is
// …, a number, a UUID or another id with digits in it is #.
func CauseText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < maxCauseText; {
		if n := quoted(s, i); n > 0 {
			b.WriteString("…")
			i += n
			continue
		}
		n := word(s[i:])
		switch {
		case n == 0:
			b.WriteByte(s[i])
			n = 1
		case isID(s[i : i+n]):
			b.WriteByte('#')
		default:
			withoutDigits(&b, s[i:i+n])
		}
		i += n
	}
	text := strings.ToValidUTF8(b.String(), "")
	if len(text) > maxCauseText {
		text = strings.ToValidUTF8(text[:maxCauseText], "")
	}
	return text
}

// quoted is the length of a quoted value that begins at a place; 0: none does. The
// sign in "don't" begins none, since a letter stands before it.
func quoted(s string, at int) int {
	if s[at] != '"' && s[at] != '\'' && s[at] != '`' || at > 0 && isWord(s[at-1]) {
		return 0
	}
	for end := at + 1; end < len(s); end++ {
		if s[end] == s[at] && (end+1 == len(s) || !isWord(s[end+1])) {
			return end + 1 - at
		}
	}
	return 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '-'
}

func word(s string) (n int) {
	for n < len(s) && isWord(s[n]) {
		n++
	}
	return n
}

// isID tells a word that names one thing, such as a UUID, a hash or a ULID, from a
// word with a number in it: it is long, and a good part of it is digits.
func isID(w string) bool {
	digits, hex := 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case isDigit(c):
			digits++
			hex++
		case 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' || c == '-':
			hex++
		}
	}
	return digits > 0 && (len(w) >= 8 && hex == len(w) || len(w) >= 16 && 4*digits >= len(w))
}

func withoutDigits(b *strings.Builder, w string) {
	for i := 0; i < len(w); i++ {
		if !isDigit(w[i]) {
			b.WriteByte(w[i])
			continue
		}
		for i+1 < len(w) && isDigit(w[i+1]) {
			i++
		}
		b.WriteByte('#')
	}
}
