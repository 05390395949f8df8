package front

import (
	"bufio"
	"bytes"
	"net/http"
	"strconv"
	"strings"
)

// A plain request is
//
//	POST <a route's path, with no query> HTTP/1.1
//	one Host, of letters, digits and . - : [ ]
//	one Content-Length, of at most four digits
//	no Transfer-Encoding, Trailer, Expect or Upgrade; Connection: keep-alive or none
//	names of letters, digits, - and _; values of printable ASCII; CRLF, nothing folded
//
// and is at most maxRequest long. What net/http would refuse is not plain; what is not
// plain is not necessarily wrong.
const maxRequest = 8 << 10

// found says what is at the beginning of the bytes that came.
type found int

const (
	nothing found = iota
	some          // what may become a plain request
	odd           // no plain request
	whole         // a plain request with its body
)

// heads parses heads of requests of one connection. Most are the same as the one
// before, perhaps with another Content-Length, and are not parsed again.
type heads struct {
	routes  map[string]http.Handler
	before  []byte // of the last head: up to the digits of its Content-Length
	after   []byte // and what follows them
	length  int
	request *http.Request // of that head, without a body
	handler http.Handler
}

// find looks what is at the beginning of b; if it is a whole request, head is the
// length of its head, and the other fields tell of it.
func (h *heads) find(b []byte) (what found, head int) {
	head = h.same(b)
	if head == 0 {
		if what, head = h.parse(b); what != whole {
			return what, 0
		}
	}
	switch size := head + h.length; {
	case size > maxRequest:
		return odd, 0
	case size > len(b):
		return some, 0
	}
	return whole, head
}

// same gives the length of the head of b, if it is like the last one; else 0.
func (h *heads) same(b []byte) int {
	if h.request == nil || !bytes.HasPrefix(b, h.before) {
		return 0
	}
	length, digits := number(b[len(h.before):])
	end := len(h.before) + digits
	if digits == 0 || !bytes.HasPrefix(b[end:], h.after) {
		return 0
	}
	if length != h.length {
		h.length, h.request.ContentLength = length, int64(length)
		h.request.Header["Content-Length"] = []string{strconv.Itoa(length)}
	}
	return end + len(h.after)
}

// number reads digits that strconv writes in the same way.
func number(b []byte) (n, digits int) {
	for digits < len(b) && '0' <= b[digits] && b[digits] <= '9' {
		n = 10*n + int(b[digits]-'0')
		if digits++; digits > 4 {
			return 0, 0
		}
	}
	if digits > 1 && b[0] == '0' {
		return 0, 0
	}
	return n, digits
}

const endOfHead = "\r\n\r\n"

// parse looks whether b begins with a plain head, and reads it.
func (h *heads) parse(b []byte) (found, int) {
	const method, version = "POST ", " HTTP/1.1"
	if n := min(len(b), len(method)); string(b[:n]) != method[:n] {
		return odd, 0
	}
	end := bytes.Index(b, []byte(endOfHead))
	if end < 0 {
		return some, 0
	}
	head := b[:end+len(endOfHead)]
	line, fields, _ := strings.Cut(string(head[:end+2]), "\r\n")
	path, proto := strings.CutSuffix(strings.TrimPrefix(line, method), version)
	handler := h.routes[path]
	at, plain := plainFields(fields)
	if !proto || handler == nil || !plain {
		return odd, 0
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil || r.RequestURI != path || r.ContentLength < 0 {
		return odd, 0
	}
	at += len(line) + 2
	length, digits := number(head[at:])
	h.before = append(h.before[:0], head[:at]...)
	h.after = append(h.after[:0], head[at+digits:]...)
	h.length, h.request, h.handler = length, r, handler
	return whole, len(head)
}

// plainFields looks through the lines of a head, and tells where the digits of its
// Content-Length begin.
func plainFields(fields string) (at int, plain bool) {
	hosts, lengths := 0, 0
	for rest := fields; rest != ""; {
		line, next, _ := strings.Cut(rest, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		if !ok || !all(name, inName) || !all(value, inValue) {
			return 0, false
		}
		switch http.CanonicalHeaderKey(name) {
		case "Host":
			hosts++
			ok = value != "" && all(value, inHost)
		case "Content-Length":
			lengths++
			at = len(fields) - len(rest) + len(line) - len(value)
			_, digits := number([]byte(value))
			ok = digits > 0 && digits == len(value)
		case "Connection":
			ok = strings.EqualFold(value, "keep-alive")
		case "Transfer-Encoding", "Trailer", "Expect", "Upgrade":
			ok = false
		}
		if !ok {
			return 0, false
		}
		rest = next
	}
	return at, hosts == 1 && lengths == 1
}

func all(s string, in func(c byte) bool) bool {
	for i := range len(s) {
		if !in(s[i]) {
			return false
		}
	}
	return true
}

func inName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

func inValue(c byte) bool { return ' ' <= c && c <= '~' }

func inHost(c byte) bool {
	return inName(c) && c != '_' || c == '.' || c == ':' || c == '[' || c == ']'
}
