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

	"github.com/forebayhq/forebay"
)

// Bounds of what a ring takes.
const (
	MaxKeys        = 10_000
	MaxName        = 64
	MaxOrigins     = 64
	MinSecret      = 16 // of a secret that a user chose, for ingest
	MinAdminSecret = 32 // the same, where it may change things
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
		Origins: slices.Clone(s.Origins), CreatedAt: r.cfg.Now().UTC(),
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.view.Load().all
	if len(all) >= MaxKeys {
		return Key{}, "", forebay.Errorf(forebay.CodeFull, "keyring: add", "there are %d keys already, the most a ring takes", len(all))
	}
	for _, other := range all {
		if other.hash == e.hash {
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

// Revoke ends a key, for good. Revoking it again changes nothing.
func (r *Ring) Revoke(id string) (Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.view.Load().all
	i := slices.IndexFunc(all, func(e *entry) bool { return e.ID == id })
	if i < 0 {
		return Key{}, forebay.Errorf(forebay.CodeNotFound, "keyring: revoke", "no key has the id %q", id)
	}
	if !all[i].Live() {
		return all[i].Key, nil
	}
	e := *all[i] // the meter stays shared
	e.RevokedAt = r.cfg.Now().UTC()
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

func isOrigin(s string) bool {
	if s == "*" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != "" && s == u.Scheme+"://"+u.Host &&
		!strings.Contains(strings.TrimPrefix(u.Host, "*."), "*")
}
