package sign

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
)

// Bounds of what a file of keys holds.
const (
	MaxKeys    = 10_000
	MaxName    = 64
	MaxRights  = 64
	maxPattern = 128
	maxStars   = 16

	idPrefix  = "FBK"
	idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	idLength  = 20

	secretLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	secretLength  = 40
)

// Config of Keys.
type Config struct {
	Skew time.Duration    // how far a client's clock may be off; default 5 min
	Now  func() time.Time // default time.Now
}

// Key is an access key, without its secret.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Rights    []Right   `json:"rights"`
	CreatedAt time.Time `json:"createdAt"`
	RevokedAt time.Time `json:"revokedAt,omitzero"` // of a key that ended
}

// Live tells whether a key works.
func (k *Key) Live() bool { return k.RevokedAt.IsZero() }

// Spec says what key to add.
type Spec struct {
	Name   string
	Rights []Right // empty: all, on all queues
}

// entry is a key with its secret, which never leaves this package but in Add. It is
// not changed once it is in a view.
type entry struct {
	Key
	secret string
}

// view is what requests look at, without a lock.
type view struct {
	all  []*entry // in the order of their making
	byID map[string]*entry
}

// Keys are the access keys of a server, kept in a file. Its methods may be called
// concurrently.
type Keys struct {
	path string
	cfg  Config
	view atomic.Pointer[view]
	mu   sync.Mutex // one change at a time

	derived cache
}

// Open reads a file of keys; one that does not exist is empty, and is made by the
// first Add.
func Open(path string, cfg Config) (*Keys, error) {
	if cfg.Skew <= 0 {
		cfg.Skew = 5 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	all, err := load(path)
	if err != nil {
		return nil, err
	}
	k := &Keys{path: path, cfg: cfg}
	k.show(all)
	return k, nil
}

func (k *Keys) show(all []*entry) {
	v := &view{all: all, byID: make(map[string]*entry, len(all))}
	for _, e := range all {
		v.byID[e.ID] = e
	}
	k.view.Store(v)
}

// Empty tells whether no key was ever added.
func (k *Keys) Empty() bool { return len(k.view.Load().all) == 0 }

// List lists all keys, those that ended too.
func (k *Keys) List() []Key {
	all := k.view.Load().all
	keys := make([]Key, len(all))
	for i, e := range all {
		keys[i] = e.copy()
	}
	return keys
}

// Lookup finds a key by its id, one that ended too.
func (k *Keys) Lookup(id string) (Key, error) {
	e := k.view.Load().byID[id]
	if e == nil {
		return Key{}, notFound("lookup", id)
	}
	return e.copy(), nil
}

func (e *entry) copy() Key {
	c := e.Key
	c.Rights = slices.Clone(c.Rights)
	for i := range c.Rights {
		c.Rights[i].Actions = slices.Clone(c.Rights[i].Actions)
	}
	return c
}

func notFound(op, id string) error {
	return forebay.Errorf(forebay.CodeNotFound, "sqsapi/sign: "+op, "no access key has the id %q", id)
}

// Add makes a key and gives its secret, which cannot be had again. When it returns,
// the key is stored and works.
func (k *Keys) Add(s Spec) (Key, string, error) {
	const op = "sqsapi/sign: add"
	if len(s.Rights) == 0 {
		s.Rights = []Right{{Queues: "*", Actions: (Send | Receive | Manage).Names()}}
	}
	if p := problems(s.Name, s.Rights); len(p) > 0 {
		return Key{}, "", forebay.Errorf(forebay.CodeInvalid, op, "%s", strings.Join(p, "; "))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.view.Load().all
	if len(all) >= MaxKeys {
		return Key{}, "", forebay.Errorf(forebay.CodeFull, op, "there are %d access keys already, the most a file takes", len(all))
	}
	for _, other := range all {
		if other.Name == s.Name && other.Live() {
			return Key{}, "", forebay.Errorf(forebay.CodeInvalid, op, "the live key %s has the name %q already", other.ID, s.Name)
		}
	}
	made := &entry{
		Key: Key{
			ID:   idPrefix + random(idLetters, idLength-len(idPrefix)),
			Name: s.Name, Rights: s.Rights, CreatedAt: k.cfg.Now().UTC(),
		},
		secret: random(secretLetters, secretLength),
	}
	made.Key = made.copy() // the rights of s are the caller's
	all = append(slices.Clone(all), made)
	if err := save(k.path, all); err != nil {
		return Key{}, "", err
	}
	k.show(all)
	return made.copy(), made.secret, nil
}

// Revoke ends a key, for good. Revoking it again changes nothing.
func (k *Keys) Revoke(id string) (Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Clone(k.view.Load().all)
	i := slices.IndexFunc(all, func(e *entry) bool { return e.ID == id })
	if i < 0 {
		return Key{}, notFound("revoke", id)
	}
	if !all[i].Live() {
		return all[i].copy(), nil
	}
	// A key that ended needs no secret.
	ended := &entry{Key: all[i].copy()}
	ended.RevokedAt = k.cfg.Now().UTC()
	all[i] = ended
	if err := save(k.path, all); err != nil {
		return Key{}, err
	}
	k.show(all)
	return ended.copy(), nil
}

// random makes a text of letters, of which there are 32 or 64: no remainder favours
// any of them.
func random(letters string, n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}

func problems(name string, rights []Right) []string {
	var p []string
	printable := !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' })
	if name == "" || len(name) > MaxName || !printable {
		p = append(p, fmt.Sprintf("name: 1 to %d printable ASCII characters", MaxName))
	}
	if len(rights) == 0 || len(rights) > MaxRights {
		p = append(p, fmt.Sprintf("rights: 1 to %d", MaxRights))
	}
	for i := range rights {
		p = append(p, rights[i].problems()...)
	}
	return p
}
