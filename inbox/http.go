package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/forebayhq/forebay"
)

const (
	maxBody = 64 << 10
	maxIDs  = 1000
)

// Register adds the routes. What guard lets through may read and mark the inbox
// that the path names; it must not end a stream by a time limit, and pass on what
// http.ResponseController needs.
//
//	GET  /api/inbox/{user}?after=&limit=   a page; without after, the newest
//	POST /api/inbox/{user}/read            {"ids":[…]} or {"all":true}; "read":false undoes it
//	GET  /api/inbox/{user}/stream          server-sent events; resumes by Last-Event-ID or ?after=
//	GET  /api/inbox/{user}/socket          the same as a WebSocket; resumes by ?after=
func (b *Inbox) Register(mux *http.ServeMux, guard func(http.Handler) http.Handler) {
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /api/inbox/{user}":        b.serveList,
		"POST /api/inbox/{user}/read":  b.serveMark,
		"GET /api/inbox/{user}/stream": b.serveStream,
		"GET /api/inbox/{user}/socket": b.serveSocket,
	} {
		mux.Handle(pattern, guard(h))
	}
}

func (b *Inbox) serveList(w http.ResponseWriter, r *http.Request) {
	user, q := r.PathValue("user"), r.URL.Query()
	limit := 0
	if text := q.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > MaxPage {
			problem(w, invalid("limit", "%.20q; 1 to %d are allowed", text, MaxPage))
			return
		}
	}
	var page Page
	var err error
	if after := q.Get("after"); after != "" {
		page, err = b.After(r.Context(), user, after, limit)
	} else {
		page, err = b.Newest(r.Context(), user, limit)
	}
	answer(w, page, err)
}

type markBody struct {
	IDs  []string `json:"ids"`
	All  bool     `json:"all"`
	Read *bool    `json:"read"`
}

func (b *Inbox) serveMark(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		problem(w, forebay.Errorf(forebay.CodeTooLarge, "inbox", "the body is larger than %d bytes", maxBody))
		return
	}
	var m markBody
	if err == nil {
		err = json.Unmarshal(body, &m, json.RejectUnknownMembers(true))
	}
	switch {
	case err != nil:
		err = invalid("body", `it is not of the form {"ids":[…]} or {"all":true}: %w`, err)
	case m.All == (len(m.IDs) > 0):
		err = invalid("ids", "one of ids and all is needed, not both")
	case len(m.IDs) > maxIDs:
		err = invalid("ids", "%d ids; up to %d are allowed", len(m.IDs), maxIDs)
	}
	if err != nil {
		problem(w, err)
		return
	}
	unread, err := b.Mark(r.Context(), r.PathValue("user"), m.IDs, m.Read == nil || *m.Read)
	answer(w, unreadData{unread}, err)
}

func answer(w http.ResponseWriter, v any, err error) {
	var body []byte
	if err == nil {
		body, err = json.Marshal(v)
	}
	if err != nil {
		problem(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the client has gone: nobody is left to tell
}

// problem answers with an error as RFC 9457 says.
func problem(w http.ResponseWriter, err error) {
	code, status := forebay.CodeOf(err), http.StatusInternalServerError
	switch code {
	case forebay.CodeInvalid:
		status = http.StatusBadRequest
	case forebay.CodeTooLarge:
		status = http.StatusRequestEntityTooLarge
	case forebay.CodeLimited:
		status = http.StatusTooManyRequests
	case forebay.CodeUnsupported:
		status = http.StatusNotImplemented
	case forebay.CodeClosed, forebay.CodeFull, forebay.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code, status = forebay.CodeUnavailable, http.StatusServiceUnavailable
	}
	p := map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code, "detail": forebay.TextOf(err)}
	var e *forebay.Error
	if errors.As(err, &e) && e.Field != "" {
		p["field"] = e.Field
	}
	body, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		body = fmt.Appendf(nil, `{"status":%d}`, status)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
