package sign

import "net/url"

const upperHex = "0123456789ABCDEF"

// appendEscaped appends s with all but unreserved characters, and those that are kept,
// in percent encoding.
func appendEscaped(b []byte, s, kept string) []byte {
	if s == "" && kept == "/" {
		return append(b, '/') // a path is never empty
	}
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '~'
		if plain || kept != "" && c == kept[0] {
			b = append(b, c)
			continue
		}
		b = append(b, '%', upperHex[c>>4], upperHex[c&15])
	}
	return b
}

// encodedAgain brings a part of a query to the one encoding that is signed. What
// cannot be decoded is taken as it is.
func encodedAgain(s string) string {
	decoded, err := url.QueryUnescape(s)
	if err != nil {
		decoded = s
	}
	return string(appendEscaped(nil, decoded, ""))
}
