package api

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/stream"
)

// Who is let in:
//
//	a secret is shown       the token of this start, or a live admin key; else 401
//	none, but one is needed 401 (there is a key, or the listener is not loopback)
//	none is needed          only where the Host is this machine, so that a name that
//	                        somebody points at 127.0.0.1 gets nothing (DNS rebinding),
//	                        and no page of another origin changes anything (CSRF)
//
// A web page cannot show a secret that it does not know, so the first line needs
// no look at origins.

type callerKey struct{}

// caller says who makes a call, for the log.
func caller(ctx context.Context) string {
	who, _ := ctx.Value(callerKey{}).(string)
	return who
}

// guard lets those in who may do that, for as long as one call may take.
func (a *API) guard(next http.Handler) http.Handler {
	next = a.within(a.mux, next)
	timed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
	noted := a.guarded(a.audited(timed))
	look, change, rule := a.Guard(lookers...)(a.guarded(timed)), a.Guard(changers...)(noted), a.Guard(keyring.ScopeAdmin)(noted)
	keep := a.Guard(lookers...)(noted)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case rules(r):
			rule.ServeHTTP(w, r)
		case !onlyLooks(r) && keepsViews(r):
			keep.ServeHTTP(w, r)
		case onlyLooks(r):
			look.ServeHTTP(w, r)
		default:
			change.ServeHTTP(w, r)
		}
	})
}

// Who may look, and who may change things other than keys.
var (
	lookers  = []keyring.Scope{keyring.ScopeAdmin, keyring.ScopeOperate, keyring.ScopeView}
	changers = []keyring.Scope{keyring.ScopeAdmin, keyring.ScopeOperate}
)

// rules tells whether a request is for admins only: it changes who may do what or by which
// key stores are sealed, or drops all there is of a queue, or it asks who did what.
func rules(r *http.Request) bool {
	p := r.URL.Path
	return p == auditPath || r.Method != http.MethodGet && (strings.HasPrefix(p, "/api/keys") || strings.HasPrefix(p, "/api/sqs/keys") ||
		strings.HasPrefix(p, "/api/encryption") || strings.HasSuffix(p, "/purge"))
}

// onlyLooks tells whether a request changes nothing.
func onlyLooks(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	}
	switch p := r.URL.Path; p {
	case "/api/schedules/preview", "/api/stream-tickets", flowsPath + "/validate", flowsPath + "/format", flowsPath + "/edit", flowsPath + "/dry-run", flowsPath + "/preview", flowsPath + "/export", flowsPath + "/import":
		return true
	default:
		return strings.HasPrefix(p, flowsPath+"/") && strings.HasSuffix(p, "/diff")
	}
}

// Callers that show no key.
const (
	thisMachine = "this machine"
	anyoneHere  = "anyone on this machine"
)

func (a *API) isToken(secret string) bool {
	return a.cfg.Token != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(a.cfg.Token)) == 1
}

func nameOf(key keyring.Key) string { return key.ID + " (" + key.Name + ")" }

// Guard makes the guard of routes that are not the API's own, and may be streams:
// keys with any of the scopes are let in, and to a stream whoever shows a ticket that
// such a key has asked for.
func (a *API) Guard(scopes ...keyring.Scope) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, again, shown, problem := a.admit(r, scopes)
			if problem != nil {
				refuse(w, problem)
				return
			}
			careful(w.Header())
			ctx := a.withSight(context.WithValue(withHeld(r.Context(), v.key.Queues), callerKey{}, v.who), r, shown)
			ctx = context.WithValue(ctx, letKey{}, a.letting(r))
			ctx = stream.WithAccess(ctx, stream.Access{Caller: v.who, Check: again, Fail: func(w http.ResponseWriter, err error) { problemOf(err).write(w) }})
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// refuse answers whoever is not let in.
func refuse(w http.ResponseWriter, problem *Problem) {
	if problem.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="forebay"`)
	}
	problem.write(w)
}

// careful is what every answer says to browsers and proxies.
func careful(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// admit says who calls, how to ask again whether he may, and the ticket that he showed, if
// any; or why he is refused.
func (a *API) admit(r *http.Request, scopes []keyring.Scope) (v visitor, again func() error, shown *ticket, refused *Problem) {
	if text := r.URL.Query().Get("ticket"); text != "" && lasts(r) {
		t, err := a.takeTicket(text, r.URL.Path, scopes)
		if err != nil {
			return v, nil, nil, problemOf(err)
		}
		v = visitor{t.who, keyring.Key{Queues: t.held}}
		return v, func() error { return t.let(scopes) }, &t, nil
	}
	let := a.letting(r)
	v, refused = a.identify(r, scopes)
	return v, func() error { return let(scopes) }, nil, refused
}

// letting tells, whenever it is asked, whether who made a request is let in where one of
// some scopes is needed.
func (a *API) letting(r *http.Request) func([]keyring.Scope) error {
	return func(scopes []keyring.Scope) error {
		if _, refused := a.identify(r, scopes); refused != nil {
			return refused
		}
		return nil
	}
}

func (a *API) identify(r *http.Request, scopes []keyring.Scope) (visitor, *Problem) {
	if secret, shown := bearer(r); shown {
		if a.isToken(secret) {
			return visitor{who: thisMachine}, nil
		}
		var err error
		for _, scope := range scopes {
			var key keyring.Key
			if key, err = a.cfg.Ring.Authenticate(secret, scope); err == nil {
				return visitor{nameOf(key), key}, nil
			}
		}
		return visitor{}, problemOf(err)
	}
	if v, refused := a.bySession(r, scopes); v.who != "" || refused != nil {
		return v, refused
	}
	if a.cfg.Ring.Required() || !a.cfg.Loopback {
		p := newProblem(http.StatusUnauthorized, forebay.CodeUnauthorized, "an admin key is needed here")
		p.Hint = "send it as Authorization: Bearer <key>; forebay keys add --scope admin makes one (or operate, or view)"
		if slices.Contains(scopes, keyring.ScopeIngest) {
			p.Detail, p.Hint = "a key is needed here", "send it as Authorization: Bearer <key>; forebay keys add makes one"
		}
		return visitor{}, p
	}
	if !isLoopback(r.Host) {
		return visitor{}, newProblem(http.StatusForbidden, forebay.CodeUnauthorized,
			"without keys, only requests to localhost are answered, not to "+r.Host)
	}
	if a.cross.Check(r) != nil {
		return visitor{}, newProblem(http.StatusForbidden, forebay.CodeUnauthorized,
			"without keys, pages of other origins change nothing here")
	}
	return visitor{who: anyoneHere}, nil
}

// fromLoopback tells a browser of this machine, which may speak plain HTTP.
func fromLoopback(r *http.Request) bool { return isLoopback(r.RemoteAddr) }

func bearer(r *http.Request) (secret string, shown bool) {
	h := r.Header.Get("Authorization")
	scheme, secret, _ := strings.Cut(h, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", h != ""
	}
	return strings.TrimSpace(secret), true
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}
