package ingest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
)

// problem is why a whole request is refused. Nothing of it was stored.
type problem struct {
	status int
	code   string
	detail string
	wait   time.Duration // 429 and 503: when to come again
}

func unreadable(detail string) *problem {
	return &problem{status: http.StatusBadRequest, code: "unreadable", detail: detail}
}

func tooLarge(code, detail string) *problem {
	return &problem{status: http.StatusRequestEntityTooLarge, code: code, detail: detail}
}

// keyProblem is for what the key ring says.
func keyProblem(err error, wait time.Duration) *problem {
	p := &problem{status: http.StatusUnauthorized, code: string(forebay.CodeOf(err)), detail: err.Error(), wait: wait}
	if forebay.CodeOf(err) == forebay.CodeLimited {
		p.status = http.StatusTooManyRequests
	}
	return p
}

// storeProblem is for what the queue or the bad rows say. Their own words, with
// paths and addresses of the server, are for the log.
func storeProblem(err error, wait time.Duration) *problem {
	p := &problem{status: http.StatusServiceUnavailable, code: string(forebay.CodeOf(err)), wait: wait}
	switch forebay.CodeOf(err) {
	case forebay.CodeFull:
		p.detail = "there is no room for the events just now; send them again"
	case forebay.CodeClosed:
		p.detail = "the server is shutting down; send the events again"
	default:
		p.code, p.detail = string(forebay.CodeUnavailable), "the events could not be stored just now; send them again"
	}
	return p
}

// retrySeconds is what goes into Retry-After: whole seconds, since SDKs read no
// other form, and at least one.
func retrySeconds(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}

// write answers with RFC 9457 on our own routes; SDKs of other dialects get the
// same members as plain JSON, since some look at the media type.
func (p *problem) write(w http.ResponseWriter, own bool) {
	h := w.Header()
	h["Content-Type"] = jsonType
	if own {
		h["Content-Type"] = problemType
	}
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	b := append([]byte(`{"type":"about:blank","title":`), '"')
	b = append(append(b, http.StatusText(p.status)...), `","status":`...)
	b = append(strconv.AppendInt(b, int64(p.status), 10), `,"code":"`...)
	b = append(append(b, p.code...), `","detail":`...)
	b = quote(b, p.detail)
	if p.status == http.StatusTooManyRequests || p.status == http.StatusServiceUnavailable {
		seconds := retrySeconds(p.wait)
		h.Set("Retry-After", strconv.Itoa(seconds))
		b = strconv.AppendInt(append(b, `,"retryAfter":`...), int64(seconds), 10)
	}
	b = append(b, "}\n"...)
	w.WriteHeader(p.status)
	_, _ = w.Write(b) // a client that has gone needs no answer
}

// Values of headers that every answer has; net/http does not change them.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
)

// quote appends text as a JSON string, whatever bytes it has.
func quote(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, s)
	if err == nil {
		return out
	}
	out, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\ufffd")) // cannot fail now
	return out
}
