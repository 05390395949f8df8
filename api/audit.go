package api

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay/audit"
)

// Auditor keeps who changed what (audit.Log).
type Auditor interface {
	Add(audit.Entry) error
	List(audit.Query) ([]audit.Entry, error)
}

// What is no change that somebody answers for, but the work itself: the history of
// jobs has it.
var unaudited = []string{
	"POST /api/jobs", "POST /api/jobs/bulk", "POST /api/flows/{name}/runs", "POST /api/flow-events",
	"POST /api/queues/{name}/lease", "POST /api/leases/extend", "POST /api/leases/progress", "POST /api/leases/settle",
}

// askedNames are what an entry keeps of a request: how things were selected and what
// was to become of them, never what was sent nor a secret.
var askedNames = []string{
	"action", "active", "approve", "attempts", "auto", "before", "canary", "code", "confirm", "count", "dailyQuota", "delay", "dryRun", "every",
	"for", "from", "group", "id", "ids", "into", "keep", "key", "keyActive", "kind", "kinds", "limit", "max", "min", "name", "origins", "paused", "priority",
	"q", "queue", "queues", "rate", "scopes", "screen", "selection", "seqs", "shared", "since", "speed", "step", "to", "types", "until", "version",
}

// doneNames are what an entry keeps of an answer.
var doneNames = []string{
	"cancelled", "changed", "code", "count", "discarded", "done", "dropped", "failed", "failedCount", "id", "jobId", "matched", "replayed", "sent", "seq", "skipped", "total", "version",
}

// Bounds of what is looked at for an entry.
const (
	auditedBytes = 64 << 10 // of a request or an answer
	auditedText  = 512      // of one value
	auditedItems = 10       // of a list
)

// audited notes every change that goes through, also one that fails.
func (a *API) audited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := a.mux.Handler(r)
		if a.cfg.Audit == nil || onlyLooks(r) || slices.Contains(unaudited, pattern) {
			next.ServeHTTP(w, r)
			return
		}
		asked := &head{}
		r.Body = teed{io.TeeReader(r.Body, asked), r.Body}
		answered := &watched{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answered, r)
		e := audit.Entry{Actor: caller(r.Context()), Via: via(r), Action: pattern, Target: r.URL.Path, Status: answered.status}
		e.Asked, e.Reason = asked.pick(askedNames, a.cfg.Now())
		for name, values := range r.URL.Query() {
			if slices.Contains(askedNames, name) {
				put(&e.Asked, name, toldFilter(values[0], a.cfg.Now()))
			}
		}
		e.Done, _ = answered.pick(doneNames, a.cfg.Now())
		if err := a.cfg.Audit.Add(e); err != nil { // the change is made: it is not undone for that
			a.cfg.Logger.Error("api: a change is missing in the audit log", "action", e.Action, "target", e.Target, "by", e.Actor, "error", err)
		}
	})
}

// via tells by what a change was made, as far as the caller says so.
func via(r *http.Request) string {
	_, shown := bearer(r)
	if _, err := r.Cookie(sessionCookie); err == nil && !shown {
		return "console"
	}
	if strings.HasPrefix(r.UserAgent(), clientAgent) {
		return "cli"
	}
	return "api"
}

// teed is a body that is seen by another as it is read.
type teed struct {
	io.Reader
	io.Closer
}

// head is the beginning of a text.
type head struct {
	bytes.Buffer
	cut bool
}

func (h *head) Write(p []byte) (int, error) {
	room := auditedBytes - h.Len()
	h.cut = h.cut || len(p) > room
	h.Buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}

// pick takes values by name from the top of a JSON object; of a filter not what is
// searched for in payloads.
func (h *head) pick(names []string, now time.Time) (picked map[string]any, reason string) {
	var all map[string]json.RawMessage
	if h.cut || json.Unmarshal(h.Bytes(), &all) != nil {
		return nil, ""
	}
	_ = json.Unmarshal(all["reason"], &reason) // no text: no reason
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "q" {
			all[name] = toldRaw(all[name], now)
		}
		if slices.Contains(names, name) {
			put(&picked, name, short(all[name]))
		}
	}
	return picked, reason[:min(len(reason), 2*auditedText)]
}

func put(m *map[string]any, name string, v any) {
	if v == nil {
		return
	}
	if *m == nil {
		*m = make(map[string]any)
	}
	(*m)[name] = v
}

// short makes a value of an entry: lists lose their ends, long texts too.
func short(raw json.RawMessage) any {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > auditedItems {
		return map[string]any{"count": len(list), "first": list[:auditedItems]}
	}
	if len(raw) > auditedText {
		return strings.ToValidUTF8(string(raw[:auditedText]), "") + "…"
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// watched is an answer whose status and beginning are seen.
type watched struct {
	http.ResponseWriter
	head
	status int
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	_, _ = w.head.Write(p) // it cannot fail
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
