package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
)

// To see payloads whole is a right of its own, once there is something to hide
// (Config.Mask): it belongs to admin keys, to keys with the scope payload, and to whoever
// needs no key. Others get "***" in place of what is hidden, wherever payloads, results,
// inputs and outputs are shown. What would get around that is refused to them: streams,
// searching by payload, and changing what they have not seen. Leases give whole payloads,
// since whoever works a job needs them.

const hidden = "***"

type wholeKey struct{}

// seesWhole tells whether a caller sees payloads as they are.
func seesWhole(ctx context.Context) bool {
	masked, _ := ctx.Value(wholeKey{}).(bool)
	return !masked
}

// withSight notes in the context what a caller may see; ticket is whether one was shown, and
// what it allows.
func (a *API) withSight(ctx context.Context, r *http.Request, ticket *ticket) context.Context {
	if len(a.cfg.Mask) == 0 {
		return ctx
	}
	masked := false
	if ticket != nil {
		masked = ticket.masked
	} else if _, refused := a.identify(r, []keyring.Scope{keyring.ScopeAdmin, keyring.ScopePayload}); refused != nil {
		masked = true
	}
	return context.WithValue(ctx, wholeKey{}, masked)
}

// wholeOnly refuses to those who may not see payloads whole.
func wholeOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !seesWhole(r.Context()) {
			refuse(w, masks("a stream shows results as they are"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func masks(why string) *Problem {
	p := newProblem(http.StatusForbidden, forebay.CodeUnauthorized, why+", and this key may see payloads masked only")
	p.Hint = "the scope payload is needed (forebay keys add --scope payload)"
	return p
}

// guarded refuses requests that would tell, or change, what is hidden, and masks all other
// answers, whoever wrote them.
func (a *API) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seesWhole(r.Context()) {
			next.ServeHTTP(w, r)
			return
		}
		changes := r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/api/jobs/") ||
			r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/api/dead/") && strings.HasSuffix(r.URL.Path, "/replay") && r.URL.Path != "/api/dead/replay"
		switch {
		case changes:
			refuse(w, masks("this changes what was sent"))
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/lease"):
			next.ServeHTTP(w, r)
		default:
			answer := &masking{header: w.Header(), status: http.StatusOK}
			next.ServeHTTP(answer, r)
			a.sendMasked(w, answer)
		}
	})
}

// masking keeps an answer until it was masked.
type masking struct {
	bytes.Buffer
	header http.Header
	status int
}

func (m *masking) Header() http.Header    { return m.header }
func (m *masking) WriteHeader(status int) { m.status = status }

func (a *API) sendMasked(w http.ResponseWriter, m *masking) {
	body := m.Bytes()
	if strings.HasPrefix(m.header.Get("Content-Type"), "application/json") && len(body) > 0 {
		var all any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber() // as they were written
		err := d.Decode(&all)
		if err == nil {
			body, err = json.Marshal(a.maskOurs(all))
		}
		if err != nil { // rather nothing than what may not be seen
			newProblem(http.StatusInternalServerError, forebay.CodeInternal, "the answer cannot be masked").write(w)
			return
		}
		m.header.Del("Content-Length")
	}
	w.WriteHeader(m.status)
	w.Write(body) // a client that has gone needs no answer
}

// payloadNames are the members of our answers that hold what was sent, and what came of it.
var payloadNames = []string{"payload", "data", "result", "input", "output", "content", "event"}

// maskOurs goes through an answer of ours and masks what is in its payloads.
func (a *API) maskOurs(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = a.maskOurs(v[i])
		}
	case map[string]any:
		ours := v["queue"] == BulkQueue
		for name, member := range v {
			if text, ok := member.(string); ok && (name == "base64" || name == "dataBase64" || name == "resultBase64") && text != "" {
				v[name] = "" // it is no JSON: nobody knows what is in it
				continue
			}
			if slices.Contains(payloadNames, name) {
				if ours {
					a.maskFilters(member)
				}
				v[name] = a.maskContent(member)
				continue
			}
			v[name] = a.maskOurs(member)
		}
	}
	return v
}

// maskContent masks a payload; Content stands around some.
func (a *API) maskContent(v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		if text, ok := m["base64"].(string); ok && text != "" {
			m["base64"] = ""
			return m
		}
		if inner, ok := m["json"]; ok {
			m["json"] = a.maskValue(inner, nil)
			return m
		}
	}
	return a.maskValue(v, nil)
}

// maskValue masks below a path.
func (a *API) maskValue(v any, path []string) any {
	if slices.ContainsFunc(a.cfg.Mask, func(mask string) bool { return hides(mask, path) }) {
		return hidden
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = a.maskValue(v[i], append(path[:len(path):len(path)], place))
		}
	case map[string]any:
		for name, member := range v {
			v[name] = a.maskValue(member, append(path[:len(path):len(path)], name))
		}
	}
	return v
}

// place stands in a path for any place of a list.
const place = "*"

// hides tells whether a mask means a path: "*" alone all of it, any other the end of the
// path, at whatever depth it stands, since the same data comes bare and inside of an
// event. A * of the mask is any name or any place of a list; a place that the mask says
// nothing of is passed over. Names are compared without case.
func hides(mask string, path []string) bool {
	if mask == "*" || len(path) == 0 {
		return mask == "*" && len(path) == 0
	}
	parts := strings.Split(mask, ".")
	n := len(parts)
	met := make([]bool, n+1) // met[i]: the path met so far is what parts[i:] mean
	met[n] = true
	for _, name := range slices.Backward(path) {
		listed, some := name == place, false
		for i, part := range parts {
			met[i] = met[i+1] && meets(part, name) || met[i] && listed
			some = some || met[i]
		}
		met[n] = false // the last name of the mask is the last of the path
		if met[0] || !some {
			return met[0]
		}
	}
	return false
}

// meets tells whether a part of a mask means a name, or a place of a list.
func meets(part, name string) bool {
	if name == place {
		_, err := strconv.Atoi(part) // which place it is, nobody notes
		return part == "*" || err == nil
	}
	return part == "*" || strings.EqualFold(part, name)
}
