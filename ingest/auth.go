package ingest

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay/keyring"
)

// secretOf finds a write key where SDKs put it: X-Write-Key, Basic (as the user,
// with no password), Bearer, or the query, which is all that sendBeacon can do.
func secretOf(r *http.Request) string {
	if v := r.Header["X-Write-Key"]; len(v) > 0 {
		return v[0]
	}
	if v := r.Header["Authorization"]; len(v) > 0 {
		if scheme, token, _ := strings.Cut(v[0], " "); strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(token)
		}
		if user, password, ok := r.BasicAuth(); ok {
			if user == "" {
				return password
			}
			return user
		}
	}
	if r.URL.RawQuery != "" {
		return r.URL.Query().Get("writeKey")
	}
	return ""
}

// authenticate checks a key. Without one it says not known, since the body may
// have it, unless no key is needed at all.
func (c *call) authenticate(secret string) (known bool, p *problem) {
	keys := c.edge.cfg.Keys
	if keys == nil || !keys.Required() {
		return true, nil
	}
	if secret == "" {
		return false, nil
	}
	key, err := keys.Authenticate(secret, keyring.ScopeIngest)
	if err != nil {
		return false, keyProblem(err, 0)
	}
	c.key = key
	if origin := c.r.Header["Origin"]; len(origin) > 0 && !key.AllowsOrigin(origin[0]) {
		return false, &problem{status: http.StatusForbidden, code: "origin", detail: "this key may not be used by pages of " + shorten(origin[0])}
	}
	return true, c.onHold()
}

// authenticateBody looks for the key in the body: of the envelope, or of a single
// event. SDKs that cannot set headers put it there.
func (c *call) authenticateBody() *problem {
	raw := c.env.writeKey
	if raw == nil && c.single {
		frameObject(c.items[0].raw, 0, func(name, value []byte) {
			if string(name) == "writeKey" {
				raw = value
			}
		})
	}
	secret := ""
	if len(raw) > 1 && raw[0] == '"' {
		secret = unquote(raw)
	}
	known, p := c.authenticate(secret)
	if p == nil && !known {
		_, err := c.edge.cfg.Keys.Authenticate("", keyring.ScopeIngest)
		p = keyProblem(err, 0)
	}
	return p
}

// hold is until when a key that went over its rate is answered 429 before its
// body is read. Some SDKs come again at once whatever they are told.
type hold struct{ until atomic.Int64 }

const longestHold = time.Second

func (c *call) spend(events int) *problem {
	if c.key.ID == "" {
		return nil
	}
	wait, err := c.edge.cfg.Keys.Spend(c.key.ID, events)
	if err == nil {
		return nil
	}
	h, _ := c.edge.holds.LoadOrStore(c.key.ID, new(hold))
	h.(*hold).until.Store(c.received.Add(min(wait, longestHold)).UnixNano())
	return keyProblem(err, wait)
}

// refund gives back what was spent for a request that is told to come again.
func (c *call) refund(p *problem) *problem {
	if c.key.ID != "" && p.status == http.StatusServiceUnavailable {
		c.edge.cfg.Keys.Refund(c.key.ID, len(c.items))
	}
	return p
}

// onHold answers a key that has just been over its rate. A smaller batch might
// pass, so it is held for a moment only.
func (c *call) onHold() *problem {
	h, ok := c.edge.holds.Load(c.key.ID)
	if !ok {
		return nil
	}
	wait := time.Duration(h.(*hold).until.Load() - c.received.UnixNano())
	if wait <= 0 {
		return nil
	}
	return &problem{status: http.StatusTooManyRequests, code: "limited", detail: "the key is over its rate or quota; nothing was read", wait: wait}
}

// allowOrigin lets a browser read the answer, whatever it will be. Cookies and
// other credentials of the browser are never asked for.
func (e *Edge) allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header["Origin"]
	if len(origin) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	keys := e.cfg.Keys
	if keys != nil && keys.Required() && !keys.AllowsOrigin(origin[0], keyring.ScopeIngest) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin[0])
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Forebay-Rejected")
	return true
}

// preflight answers what a browser asks before it posts.
func (e *Edge) preflight(w http.ResponseWriter, r *http.Request) {
	if e.allowOrigin(w, r) {
		h := w.Header()
		h.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS")
		h.Set("Access-Control-Max-Age", "86400")
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			h.Set("Access-Control-Allow-Headers", asked)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
