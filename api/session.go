package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/keyring"
)

// A session lets the pages of this server in without their keeping a key: the key is
// exchanged once for a cookie that no script can read and no other site can send. It
// is good for as long as the key is, at most for sessionLife, and on this server until
// its next start.
const (
	sessionCookie = "forebay_session"
	sessionLife   = 12 * time.Hour
	maxSessions   = 10_000
	keySessions   = 100 // of one key; a further one ends its oldest
)

// Role is what a caller may do.
type Role string

// Roles: a viewer looks, an operator changes what is in queues too, an admin also keys.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// roles are what scopes mean, the highest first.
var roles = []struct {
	role  Role
	scope keyring.Scope
}{{RoleAdmin, keyring.ScopeAdmin}, {RoleOperator, keyring.ScopeOperate}, {RoleViewer, keyring.ScopeView}}

// Session is who the caller is, as far as this server knows.
type Session struct {
	Role      Role      `json:"role,omitempty" enum:"viewer,operator,admin" doc:"Absent: nobody; sign in."`
	Who       string    `json:"who,omitempty"`
	Queues    []string  `json:"queues,omitempty" doc:"That the key holds for, with * for any run of characters; absent: all."`
	Open      bool      `json:"open,omitempty" doc:"There are no keys: everyone on this machine is let in."`
	ExpiresAt time.Time `json:"expiresAt,omitzero" doc:"Of a cookie."`
}

// SignIn is a key that is exchanged for a cookie.
type SignIn struct {
	Key string `json:"key" minLength:"1" maxLength:"256"`
}

type session struct {
	keyID string // of the ring; empty: by the token of this start
	who   string
	at    time.Time // when it began
}

// bySession says who shows a cookie. Cookies come by themselves, so a change must
// come from a page of this server.
func (a *API) bySession(r *http.Request, scopes []keyring.Scope) (v visitor, refused *Problem) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return v, nil
	}
	one, _, ok := a.sessions.find(cookie.Value, a.cfg.Now())
	if !ok {
		return v, nil // as if there were none
	}
	if one.keyID != "" {
		if v.key, refused = a.keyMay(&one, scopes); refused != nil {
			return visitor{}, refused
		}
	}
	if a.cross.Check(r) != nil {
		return visitor{}, newProblem(http.StatusForbidden, forebay.CodeUnauthorized, "with a session, pages of other origins change nothing here")
	}
	v.who = one.who
	return v, nil
}

// keyMay tells why a key may not do what needs one of these scopes; nil: it may.
func (a *API) keyMay(s *session, scopes []keyring.Scope) (keyring.Key, *Problem) {
	for _, k := range a.cfg.Ring.List() {
		if k.ID != s.keyID || !k.Live() || s.at.Before(k.RotatedAt) && !a.cfg.Now().Before(k.OldUntil) {
			continue
		}
		if slices.ContainsFunc(scopes, k.Has) {
			return k, nil
		}
		return k, newProblem(http.StatusForbidden, forebay.CodeUnauthorized, fmt.Sprintf("the key of this session has not the scope %s, which is needed here", scopes[len(scopes)-1]))
	}
	return keyring.Key{}, newProblem(http.StatusUnauthorized, forebay.CodeUnauthorized, "the key of this session is good no longer")
}

// registerSession puts the routes on a mux. They are outside of the guard: who asks
// is not signed in yet.
func (a *API) registerSession(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/session", a.getSession)
	mux.HandleFunc("POST /api/session", a.signIn)
	mux.HandleFunc("DELETE /api/session", a.signOut)
}

func (a *API) getSession(w http.ResponseWriter, r *http.Request) {
	careful(w.Header())
	w.Header().Set("Content-Type", "application/json")
	v := Session{Open: !a.cfg.Ring.Required() && a.cfg.Loopback}
	for _, may := range roles {
		if who, refused := a.identify(r, []keyring.Scope{may.scope}); refused == nil {
			v.Role, v.Who, v.Queues = may.role, who.who, who.key.Queues
			break
		}
	}
	if cookie, err := r.Cookie(sessionCookie); err == nil && v.Role != "" {
		_, v.ExpiresAt, _ = a.sessions.find(cookie.Value, a.cfg.Now())
	}
	encode(w, v)
}

func (a *API) signIn(w http.ResponseWriter, r *http.Request) {
	careful(w.Header())
	if a.cross.Check(r) != nil {
		newProblem(http.StatusForbidden, forebay.CodeUnauthorized, "pages of other origins do not sign in here").write(w)
		return
	}
	var in SignIn
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4096))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil || in.Key == "" {
		problemOf(wrong("key", `the body must be {"key":"…"}`)).write(w)
		return
	}
	one, role, err := a.sessionOf(in.Key)
	if err != nil {
		refuse(w, problemOf(err))
		return
	}
	now := a.cfg.Now()
	one.at = now
	expires := now.Add(sessionLife)
	text, err := a.sessions.add(one.who, one, expires, now)
	if err != nil {
		problemOf(err).write(w)
		return
	}
	a.cfg.Logger.Info("api: signed in", "by", one.who)
	a.setCookie(w, r, text, int(sessionLife.Seconds()))
	w.Header().Set("Content-Type", "application/json")
	encode(w, Session{Role: role, Who: one.who, ExpiresAt: expires})
}

func (a *API) sessionOf(secret string) (one session, role Role, err error) {
	if a.isToken(secret) {
		one.who = thisMachine
		return one, RoleAdmin, nil
	}
	for _, may := range roles {
		var key keyring.Key
		if key, err = a.cfg.Ring.Authenticate(secret, may.scope); err == nil {
			one.keyID, one.who = key.ID, nameOf(key)
			return one, may.role, nil
		}
	}
	return one, "", err
}

func (a *API) signOut(w http.ResponseWriter, r *http.Request) {
	careful(w.Header())
	if cookie, err := r.Cookie(sessionCookie); err == nil && a.cross.Check(r) == nil {
		a.sessions.end(cookie.Value)
	}
	a.setCookie(w, r, "", -1)
	w.WriteHeader(http.StatusNoContent)
}

func (a *API) setCookie(w http.ResponseWriter, r *http.Request, text string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: text, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: a.cfg.TLS && !fromLoopback(r) || r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

func (a *API) sessionDocs(h huma.API) {
	get := operation(http.MethodGet, "/api/session", "get-session", "Tell who the caller is")
	document[Session](h, get, http.StatusOK, "application/json")
	add := operation(http.MethodPost, "/api/session", "sign-in", "Exchange a key for a cookie")
	add.Description = "The cookie is HttpOnly and SameSite=Strict, and good for 12 hours on this server. With it, changes are taken from pages of this server only."
	add.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: h.OpenAPI().Components.Schemas.Schema(typeOf[SignIn](), true, "")},
	}}
	document[Session](h, add, http.StatusOK, "application/json")
	end := operation(http.MethodDelete, "/api/session", "sign-out", "End the session of a cookie")
	end.Responses["204"] = &huma.Response{Description: "It is over"}
	h.OpenAPI().AddOperation(&end)
}
