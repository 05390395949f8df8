package keyring

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
)

// Bounds of what a ring takes.
const (
	MaxKeys        = 10_000
	MaxName        = 64
	MaxOrigins     = 64
	MaxQueues      = 64
	MaxOverlap     = 30 * 24 * time.Hour // for which an old secret may be good beside the new one
	MinSecret      = 16                  // of a secret that a user chose, for ingest
	MinAdminSecret = 32                  // the same, where it may change things
	MaxSecret      = 256

	secretPrefix = "fbk_"
)

// Spec says what key to add.
type Spec struct {
	Name       string
	Secret     string  // empty: a random one is made
	Scopes     []Scope // empty: ingest
	Rate       float64
	Burst      int
	DailyQuota int64
	Origins    []string
	Queues     []string
}

// Add adds a key and gives its secret, which cannot be had again. When it returns,
// the key is stored and works.
func (r *Ring) Add(s Spec) (Key, string, error) {
	if len(s.Scopes) == 0 {
		s.Scopes = []Scope{ScopeIngest}
	}
	if problems := s.problems(); len(problems) > 0 {
		return Key{}, "", forebay.Errorf(forebay.CodeInvalid, "keyring: add", "%s", strings.Join(problems, "; "))
	}
	shown := 4
	if s.Secret == "" {
		s.Secret = secretPrefix + randomText(24)
		shown += len(secretPrefix)
	}
	e := &entry{hash: sha256.Sum256([]byte(s.Secret)), meter: new(meter)}
	id := make([]byte, 6)
	rand.Read(id) // never fails
	e.Key = Key{
		ID: "k" + hex.EncodeToString(id), Name: s.Name, Prefix: s.Secret[:shown],
		Scopes: slices.Clone(s.Scopes), Rate: s.Rate, Burst: s.Burst, DailyQuota: s.DailyQuota,
		Origins: slices.Clone(s.Origins), Queues: slices.Clone(s.Queues), CreatedAt: r.cfg.Now().UTC(),
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.view.Load().all
	if len(all) >= MaxKeys {
		return Key{}, "", forebay.Errorf(forebay.CodeFull, "keyring: add", "there are %d keys already, the most a ring takes", len(all))
	}
	for _, other := range all {
		if other.hash == e.hash || other.old == e.hash {
			return Key{}, "", forebay.Errorf(forebay.CodeInvalid, "keyring: add", "this secret is the key %s (%s) already", other.ID, other.Name)
		}
		if other.Name == e.Name && other.Live() {
			return Key{}, "", forebay.Errorf(forebay.CodeInvalid, "keyring: add", "the live key %s has the name %q already", other.ID, other.Name)
		}
	}
	all = append(slices.Clone(all), e)
	if err := save(r.path, all); err != nil {
		return Key{}, "", err
	}
	r.view.Store(newView(all))
	r.required.Store(true)
	return e.Key, s.Secret, nil
}

// Rotate gives a key another secret. The one before stays good for as long as keep says;
// one from before that ends at once.
func (r *Ring) Rotate(id string, keep time.Duration) (Key, string, error) {
	const op = "keyring: rotate"
	if keep < 0 || keep > MaxOverlap {
		return Key{}, "", forebay.Errorf(forebay.CodeInvalid, op, "keep: %s; 0 to %s are allowed", keep, MaxOverlap)
	}
	secret := secretPrefix + randomText(24)
	k, err := r.change(op, id, func(e *entry) error {
		if !e.Live() {
			return forebay.Errorf(forebay.CodeConflict, op, "the key %s (%s) is revoked; add another", e.ID, e.Name)
		}
		now := r.cfg.Now().UTC()
		e.old, e.OldUntil = e.hash, now.Add(keep)
		e.hash, e.RotatedAt, e.Prefix = sha256.Sum256([]byte(secret)), now, secret[:len(secretPrefix)+4]
		return nil
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// Revoke ends a key, for good. Revoking it again changes nothing.
func (r *Ring) Revoke(id string) (Key, error) {
	return r.change("keyring: revoke", id, func(e *entry) error {
		if e.Live() {
			e.RevokedAt = r.cfg.Now().UTC()
		}
		return nil
	})
}

// change stores another version of an entry.
func (r *Ring) change(op, id string, do func(*entry) error) (Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.view.Load().all
	i := slices.IndexFunc(all, func(e *entry) bool { return e.ID == id })
	if i < 0 {
		return Key{}, forebay.Errorf(forebay.CodeNotFound, op, "no key has the id %q", id)
	}
	e := *all[i] // the meter stays shared
	if err := do(&e); err != nil {
		return Key{}, err
	}
	all = slices.Clone(all)
	all[i] = &e
	if err := save(r.path, all); err != nil {
		return Key{}, err
	}
	r.view.Store(newView(all))
	return e.Key, nil
}

// randomText gives n random bytes as URL-safe text.
func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// problems lists all that is wrong with a Spec.
func (s *Spec) problems() []string {
	var p []string
	if s.Name == "" || len(s.Name) > MaxName || !isPrintable(s.Name) || strings.Contains(s.Name, "/") {
		p = append(p, fmt.Sprintf("name: 1 to %d printable ASCII characters without \"/\"", MaxName))
	}
	least := MinSecret
	for _, scope := range s.Scopes {
		switch scope {
		case ScopeIngest:
		case ScopeAdmin, ScopeOperate, ScopeView, ScopePayload:
			least = MinAdminSecret
		default:
			p = append(p, fmt.Sprintf("scopes: %q is not one of %q, %q, %q, %q, %q", scope, ScopeIngest, ScopeView, ScopeOperate, ScopeAdmin, ScopePayload))
		}
	}
	if n := len(s.Secret); n > 0 && (n < least || n > MaxSecret || !isPrintable(s.Secret) || strings.ContainsAny(s.Secret, " :")) {
		p = append(p, fmt.Sprintf("secret: %d to %d printable ASCII characters without space and colon", least, MaxSecret))
	}
	if s.Rate < 0 || math.IsInf(s.Rate, 0) || math.IsNaN(s.Rate) {
		p = append(p, "rate: events per second, 0 (no limit) or more")
	}
	if s.Burst < 0 || (s.Burst > 0 && s.Rate == 0) {
		p = append(p, "burst: 0 or more events, together with a rate")
	}
	if s.DailyQuota < 0 {
		p = append(p, "dailyQuota: 0 (no limit) or more events")
	}
	if len(s.Origins) > MaxOrigins {
		p = append(p, fmt.Sprintf("origins: at most %d", MaxOrigins))
	}
	if len(s.Queues) > 0 && (slices.Contains(s.Scopes, ScopeAdmin) || slices.Contains(s.Scopes, ScopeIngest)) {
		p = append(p, fmt.Sprintf("queues: they bound the scopes %q and %q; %q rules over all, and %q sends to no queue of its choice", ScopeView, ScopeOperate, ScopeAdmin, ScopeIngest))
	}
	if len(s.Queues) > MaxQueues {
		p = append(p, fmt.Sprintf("queues: at most %d", MaxQueues))
	}
	for _, q := range s.Queues {
		if !isQueuePattern(q) {
			p = append(p, fmt.Sprintf("queues: %q is not 1 to %d of A-Z a-z 0-9 _ - . and * for any run of characters", q, forebay.MaxQueueBytes))
		}
	}
	for _, o := range s.Origins {
		if !isOrigin(o) {
			p = append(p, fmt.Sprintf("origins: %q is not like https://app.example.com, https://*.example.com or *", o))
		}
	}
	return p
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

func isQueuePattern(s string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.*"
	return s != "" && len(s) <= forebay.MaxQueueBytes && strings.Trim(s, allowed) == ""
}

func isOrigin(s string) bool {
	if s == "*" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != "" && s == u.Scheme+"://"+u.Host &&
		!strings.Contains(strings.TrimPrefix(u.Host, "*."), "*")
}
