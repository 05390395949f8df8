package ingest

import "unicode/utf8"

const replacement = `\ufffd`

// repair replaces, within the strings of raw, what JSON or a store cannot hold by
// U+FFFD: \u0000, surrogates without their other half, and bytes that are not
// UTF-8. It tells whether there was any; raw itself is not changed, since the
// bytes belong to the request.
func (it *item) repair() bool {
	b, out, kept := it.raw, []byte(nil), 0
	replace := func(from, to int) {
		out = append(append(out, b[kept:from]...), replacement...)
		kept = to
	}
	inString := false
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c == '"':
			inString = !inString
			i++
		case !inString || c < utf8.RuneSelf && c != '\\':
			i++
		case c != '\\':
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				replace(i, i+1)
			}
			i += n
		default:
			n := escapeLength(b[i:])
			if n == 0 { // unpaired or NUL
				replace(i, i+6)
				n = 6
			}
			i += n
		}
	}
	if kept == 0 {
		return false
	}
	it.raw, it.repaired = append(out, b[kept:]...), true
	return true
}

// escapeLength is the length of the escape that b begins with, with both halves of
// a surrogate pair; 0 for one that stands for no character.
func escapeLength(b []byte) int {
	r, ok := hexEscape(b)
	switch {
	case !ok:
		return min(2, len(b)) // \n, or wrong: not ours to mend
	case r == 0:
		return 0
	case r < 0xd800 || r > 0xdfff:
		return 6
	case r >= 0xdc00:
		return 0
	}
	if low, ok := hexEscape(b[6:]); ok && low >= 0xdc00 && low <= 0xdfff {
		return 12
	}
	return 0
}

// hexEscape reads \uhhhh.
func hexEscape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
