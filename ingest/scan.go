package ingest

// Framing. A batch is cut into items by one pass that knows strings, brackets and
// numbers only. It does not check the grammar: each item is checked by itself
// afterwards, so that an item which is not JSON costs its neighbours nothing as
// long as its brackets and quotes are balanced.

// Bounds of a number in a payload. What is longer is legal JSON, but a store may
// refuse it, or write out its zeros: 1e100000 is 8 bytes here and 100,000 there.
// 1e400, which is no float64 any more, passes and is kept as it was written.
const (
	maxNumberBytes = 500
	maxExponent    = 500
)

// facts is what the framing pass notices on its way over one value.
type facts struct {
	depth     int  // deepest nesting; 1 for a flat object
	nul       bool // a string has \u0000
	badNumber int  // 1 + where a number is out of bounds; 0: none
}

// Classes of bytes outside of strings.
const (
	classOther = iota
	classSpace
	classQuote
	classOpen
	classClose
	classComma
	classDigit
)

var classOf = [256]uint8{
	' ': classSpace, '\t': classSpace, '\n': classSpace, '\r': classSpace,
	'"': classQuote, '{': classOpen, '[': classOpen, '}': classClose, ']': classClose, ',': classComma,
	'-': classDigit, '0': classDigit, '1': classDigit, '2': classDigit, '3': classDigit, '4': classDigit,
	'5': classDigit, '6': classDigit, '7': classDigit, '8': classDigit, '9': classDigit,
}

// scanValue finds the end of the value that begins at i: after its last bracket
// or quote, or before the comma, bracket or end of input that ends a scalar. It is
// -1 when the input ends inside the value.
func (f *facts) scanValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch classOf[b[i]] {
		case classQuote:
			if i = f.scanString(b, i); i < 0 || depth == 0 {
				return i
			}
			continue
		case classOpen:
			depth++
			f.depth = max(f.depth, depth)
		case classClose:
			if depth--; depth <= 0 {
				return i + 1 + min(depth, 0) // a scalar ends before the bracket of its container
			}
		case classComma:
			if depth == 0 {
				return i
			}
		case classDigit:
			i = f.scanNumber(b, i)
			continue
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	return i
}

// scanString gives the end of the string that begins at i, or -1.
func (f *facts) scanString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
			if i+4 < len(b) && b[i] == 'u' && string(b[i+1:i+5]) == "0000" {
				f.nul = true
			}
		}
	}
	return -1
}

func (f *facts) scanNumber(b []byte, i int) int {
	start, exponent := i, -1
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c >= '0' && c <= '9':
			if exponent >= 0 && exponent <= maxExponent {
				exponent = exponent*10 + int(c-'0')
			}
		case c == 'e' || c == 'E':
			exponent = 0
		case c != '.' && c != '-' && c != '+':
			f.checkNumber(start, i-start, exponent)
			return i
		}
	}
	f.checkNumber(start, i-start, exponent)
	return i
}

func (f *facts) checkNumber(start, length, exponent int) {
	if f.badNumber == 0 && (length > maxNumberBytes || exponent > maxExponent) {
		f.badNumber = start + 1
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && classOf[b[i]] == classSpace {
		i++
	}
	return i
}

// frameArray gives each element of the array that begins at i to visit and the
// place after its end, or -1 when it has none. It stops early, with the place
// where it was, when visit says so.
func frameArray(b []byte, i int, visit func(item []byte, f facts) bool) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for i < len(b) {
		var f facts
		start := i
		end := f.scanValue(b, i)
		if end < 0 {
			return -1
		}
		i = end
		// Anything between the value and the next comma is the item's own fault.
		for i < len(b) && b[i] != ',' && b[i] != ']' {
			if classOf[b[i]] != classSpace {
				if end = f.scanValue(b, i); end <= i {
					return -1
				}
				i = end
				continue
			}
			i++
		}
		if i == len(b) {
			return -1
		}
		if !visit(trimSpace(b[start:i]), f) {
			return i
		}
		if b[i] == ']' {
			return i + 1
		}
		i = skipSpace(b, i+1)
	}
	return -1
}

// frameObject gives each member of the object that begins at i to visit, the name
// without its quotes and unescaped only where it needs to be, and the place after
// its end; -1 when its framing is broken.
func frameObject(b []byte, i int, visit func(name, value []byte)) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	var f facts
	for i < len(b) {
		if b[i] != '"' {
			return -1
		}
		end := f.scanString(b, i)
		if end < 0 {
			return -1
		}
		name := b[i+1 : end-1]
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i = skipSpace(b, i+1)
		if end = f.scanValue(b, i); end <= i {
			return -1
		}
		visit(name, trimSpace(b[i:end]))
		i = skipSpace(b, end)
		switch {
		case i >= len(b):
			return -1
		case b[i] == '}':
			return i + 1
		case b[i] != ',':
			return -1
		}
		i = skipSpace(b, i+1)
	}
	return -1
}

func trimSpace(b []byte) []byte {
	b = b[skipSpace(b, 0):]
	for len(b) > 0 && classOf[b[len(b)-1]] == classSpace {
		b = b[:len(b)-1]
	}
	return b
}
