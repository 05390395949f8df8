// Package keyring holds the keys that callers show: write keys of apps that send
// events, and admin keys of people and scripts that look at the queues.
//
// It promises that a secret is never stored, only its SHA-256; that a key which is
// revoked stops working with the call that revokes it; that the file of keys is
// replaced as a whole or not at all; and that checking a key takes no lock.
//
// A secret is rotated without a gap: the old one is good for a time that is stated, and
// no longer. A key that holds for some queues only says which.
//
// It refuses to guess: a key without a scope does not get it, and a ring that has
// had a live key stays closed until the next start, so that revoking the last key
// never opens a server.
package keyring

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
)

// Scope is what a key is good for.
type Scope string

const (
	ScopeIngest Scope = "ingest" // send events
	ScopeAdmin  Scope = "admin"  // see and change everything under /api

	ScopeView    Scope = "view"    // see everything under /api
	ScopeOperate Scope = "operate" // that, and change everything but keys
	ScopePayload Scope = "payload" // together with one of those: see payloads whole, where parts are hidden
)

// Key is what is known of a key. Its secret is not.
type Key struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"` // how the secret begins, so that people can tell keys apart
	Scopes     []Scope   `json:"scopes"`
	Rate       float64   `json:"rate,omitzero"`       // events per second; 0: no limit
	Burst      int       `json:"burst,omitzero"`      // events at once; 0: the rate, at least 1
	DailyQuota int64     `json:"dailyQuota,omitzero"` // events per UTC day; 0: no limit
	Origins    []string  `json:"origins,omitempty"`   // browser origins that may use it; empty: all
	Queues     []string  `json:"queues,omitempty"`    // that it holds for, with * for any run of characters; empty: all
	CreatedAt  time.Time `json:"createdAt"`
	RotatedAt  time.Time `json:"rotatedAt,omitzero"` // when it got its secret, where that is not its first
	OldUntil   time.Time `json:"oldUntil,omitzero"`  // until when the secret before that is good too
	RevokedAt  time.Time `json:"revokedAt,omitzero"`
}

// Live tells whether the key still works.
func (k Key) Live() bool { return k.RevokedAt.IsZero() }

// Has tells whether the key is good for a scope.
func (k Key) Has(s Scope) bool { return slices.Contains(k.Scopes, s) }

// Holds tells whether the key holds for a queue.
func (k Key) Holds(queue string) bool {
	return len(k.Queues) == 0 || slices.ContainsFunc(k.Queues, func(pattern string) bool { return queueMatches(pattern, queue) })
}

// queueMatches compares a queue with a name that may have * for any run of characters.
func queueMatches(pattern, queue string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == queue
	}
	queue, ok := strings.CutPrefix(queue, first)
	for ok && rest != "" {
		var part string
		if part, rest, wild = strings.Cut(rest, "*"); !wild {
			return strings.HasSuffix(queue, part)
		}
		_, queue, ok = strings.Cut(queue, part)
	}
	return ok
}

// AllowsOrigin tells whether a browser page of this origin may use the key.
func (k Key) AllowsOrigin(origin string) bool {
	if len(k.Origins) == 0 {
		return true
	}
	return slices.ContainsFunc(k.Origins, func(allowed string) bool { return originMatches(allowed, origin) })
}

// originMatches compares an origin with "*", "https://app.example.com" or
// "https://*.example.com".
func originMatches(allowed, origin string) bool {
	if allowed == "*" || strings.EqualFold(allowed, origin) {
		return true
	}
	scheme, domain, wild := strings.Cut(allowed, "://*.")
	if !wild {
		return false
	}
	host, ok := strings.CutPrefix(strings.ToLower(origin), strings.ToLower(scheme)+"://")
	return ok && strings.HasSuffix(host, "."+strings.ToLower(domain))
}

// Config of a ring. The zero value works.
type Config struct {
	Now       func() time.Time // default time.Now
	SaveEvery time.Duration    // how often counted events are saved, default 5 s
	Logger    *slog.Logger     // default: nothing is logged
}

// Ring is a set of keys, kept in a file. All methods may be called concurrently.
type Ring struct {
	path string
	cfg  Config

	// view is what Authenticate and Spend read; it is replaced, never changed.
	view     atomic.Pointer[view]
	required atomic.Bool

	mu sync.Mutex // serialises Add, Rotate, Revoke and the writing of the file

	dirty chan struct{} // capacity 1: counters changed since they were saved
	stop  chan struct{} // closed by Close
	saved chan struct{} // closed by saveLoop when it has ended
	last  error         // of the saving at the end; to be read once saved is closed
	once  sync.Once
}

type entry struct {
	Key
	hash  [sha256.Size]byte
	old   [sha256.Size]byte // the secret before, good until OldUntil; zero: none
	meter *meter
}

type view struct {
	all    []*entry // in the order in which they were added
	byID   map[string]*entry
	byHash map[uint64][]*entry // by the first 8 bytes of the hash
}

func newView(all []*entry) *view {
	v := &view{all: all, byID: make(map[string]*entry, len(all)), byHash: make(map[uint64][]*entry, len(all))}
	for _, e := range all {
		v.byID[e.ID] = e
		for _, sum := range [][sha256.Size]byte{e.hash, e.old} {
			if sum != ([sha256.Size]byte{}) {
				h := binary.LittleEndian.Uint64(sum[:])
				v.byHash[h] = append(v.byHash[h], e)
			}
		}
	}
	return v
}

// Open reads the keys at path; a file that does not exist is an empty ring. A file
// that cannot be read whole is CodeDamaged and is left as it is. Close the ring.
func Open(path string, cfg Config) (*Ring, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.SaveEvery <= 0 {
		cfg.SaveEvery = 5 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	all, err := load(path)
	if err != nil {
		return nil, err
	}
	r := &Ring{
		path: path, cfg: cfg,
		dirty: make(chan struct{}, 1), stop: make(chan struct{}), saved: make(chan struct{}),
	}
	r.loadUsage(all)
	r.view.Store(newView(all))
	r.required.Store(slices.ContainsFunc(all, func(e *entry) bool { return e.Live() }))
	go r.saveLoop()
	return r, nil
}

// Close saves what was counted and ends the ring's goroutine.
func (r *Ring) Close() error {
	r.once.Do(func() { close(r.stop) })
	<-r.saved
	return r.last
}

// Required tells whether callers need a key: there is a live one, or there was one
// since this ring was opened.
func (r *Ring) Required() bool { return r.required.Load() }

// Authenticate finds the live key of a secret and checks that it has the scope.
// The slices of the key are shared and must not be changed.
//
// The secret is hashed first, and candidates are compared in constant time: how
// long a refusal takes tells nothing about the secrets that exist, since nobody can
// steer the bytes of a SHA-256.
func (r *Ring) Authenticate(secret string, scope Scope) (Key, error) {
	const op = "keyring: authenticate"
	if secret == "" {
		return Key{}, forebay.Errorf(forebay.CodeUnauthorized, op, "no key was given")
	}
	sum := sha256.Sum256([]byte(secret))
	var found *entry
	old := false
	for _, e := range r.view.Load().byHash[binary.LittleEndian.Uint64(sum[:])] {
		if subtle.ConstantTimeCompare(e.hash[:], sum[:]) == 1 {
			found, old = e, false
		} else if subtle.ConstantTimeCompare(e.old[:], sum[:]) == 1 {
			found, old = e, true
		}
	}
	switch {
	case found == nil:
		return Key{}, forebay.Errorf(forebay.CodeUnauthorized, op, "the key is not known here")
	case !found.Live():
		return Key{}, forebay.Errorf(forebay.CodeUnauthorized, op, "the key %s (%s) is revoked", found.ID, found.Name)
	case old && !r.cfg.Now().Before(found.OldUntil):
		return Key{}, forebay.Errorf(forebay.CodeUnauthorized, op, "the key %s (%s) has another secret since %s", found.ID, found.Name, found.RotatedAt.Format(time.RFC3339))
	case !found.Has(scope):
		return Key{}, forebay.Errorf(forebay.CodeUnauthorized, op, "the key %s (%s) lacks the scope %q", found.ID, found.Name, scope)
	}
	return found.Key, nil
}

// AllowsOrigin tells whether any live key with the scope may be used by a browser
// page of this origin: the answer to a preflight, which carries no key.
func (r *Ring) AllowsOrigin(origin string, scope Scope) bool {
	return slices.ContainsFunc(r.view.Load().all, func(e *entry) bool {
		return e.Live() && e.Has(scope) && e.AllowsOrigin(origin)
	})
}

// List gives all keys, revoked ones too, in the order in which they were added.
func (r *Ring) List() []Key {
	all := r.view.Load().all
	keys := make([]Key, len(all))
	for i, e := range all {
		keys[i] = e.Key
	}
	return keys
}
