package ingest

import "net/http"

// traceHeader is where a message keeps the W3C context of the request that brought it.
const traceHeader = "traceparent"

// traceOf is what the messages of a request keep of its W3C context; nil: it has none
// that is well formed. They share it: headers of messages are never changed.
func traceOf(h http.Header) map[string]string {
	v := h["Traceparent"]
	if len(v) != 1 || !isTraceparent(v[0]) {
		return nil
	}
	return map[string]string{traceHeader: v[0]}
}

// isTraceparent tells a text like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.
func isTraceparent(s string) bool {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return false
	}
	zero := [2]bool{true, true} // an id of zeros is none
	for i := 3; i < len(s); i++ {
		switch c := s[i]; {
		case i == 35 || i == 52:
		case '0' <= c && c <= '9' || 'a' <= c && c <= 'f':
			if i < 52 && c != '0' {
				zero[(i-3)/33] = false
			}
		default:
			return false
		}
	}
	return !zero[0] && !zero[1]
}
