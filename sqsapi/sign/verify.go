package sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Begin looks at all of a signature that can be judged before the body is read: its
// form, its key, its time. The error is a *Refusal.
func (k *Keys) Begin(r *http.Request) (*Claim, error) {
	c, refused := parse(r)
	if refused == nil {
		refused = k.begin(c)
	}
	if refused != nil {
		return nil, refused
	}
	return c, nil
}

func (k *Keys) begin(c *Claim) *Refusal {
	if c.service != service {
		return &Refusal{Mismatch, fmt.Sprintf("the credential is for the service %q, not for %q", c.service, service)}
	}
	c.keys, c.key = k, k.view.Load().byID[c.id]
	if c.key == nil {
		return &Refusal{Unknown, "this server has no access key with this id"}
	}
	if !c.key.Live() {
		return &Refusal{Unknown, "the access key " + c.key.ID + " has been revoked"}
	}
	at, err := time.Parse(stampFormat, c.stamp)
	if err != nil {
		return &Refusal{Broken, "the time of signing must be like 20060102T150405Z"}
	}
	if c.date != c.stamp[:8] {
		return &Refusal{Mismatch, "the date of the credential is not that of the time of signing"}
	}
	now, skew := k.cfg.Now().UTC(), k.cfg.Skew
	ends := at.Add(skew)
	if c.presigned {
		ends = at.Add(c.expires)
	}
	switch {
	case now.After(ends):
		return &Refusal{Expired, fmt.Sprintf("signed at %s, it ended at %s, and it is %s here", c.stamp, ends.Format(stampFormat), now.Format(stampFormat))}
	case at.Sub(now) > skew:
		return &Refusal{Expired, fmt.Sprintf("signed at %s, but it is only %s here: the clocks are more than %s apart", c.stamp, now.Format(stampFormat), skew)}
	}
	return nil
}

// Finish judges the rest, with the whole body, and gives the key that signed. Hosts
// are further names that clients may have signed, for proxies that change the Host
// header: what clients use, like sqs.example.com. They must come from the settings, not
// from the request. The error is a *Refusal.
func (c *Claim) Finish(body []byte, hosts ...string) (Key, error) {
	payload, refused := c.payload(body)
	if refused != nil {
		return Key{}, refused
	}
	paths := []string{c.r.URL.EscapedPath()}
	if clean := cleanPath(paths[0]); clean != paths[0] {
		paths = append(paths, clean) // some SDKs sign it as it would be, others as it is
	}
	for _, host := range append([]string{c.r.Host}, hosts...) {
		for _, p := range paths {
			if c.matches(c.canonical(p, host, payload)) {
				return c.key.copy(), nil
			}
		}
	}
	return Key{}, &Refusal{Mismatch, fmt.Sprintf("the signature is not that of this request with the secret of %s. "+
		"The Host seen here is %q: behind a proxy that changes it, this server must be told the public URL", c.id, c.r.Host)}
}

// payload is what stands for the body in what is signed.
func (c *Claim) payload(body []byte) (string, *Refusal) {
	sum := sha256.Sum256(body)
	actual := hex.EncodeToString(sum[:])
	switch said, there := c.header("x-amz-content-sha256"); {
	case !there || said == actual:
		return actual, nil
	case said == unsignedPayload:
		return unsignedPayload, nil
	}
	return "", &Refusal{Mismatch, "X-Amz-Content-Sha256 is neither the SHA-256 of the body in hex nor " + unsignedPayload}
}

// matches compares the claim's signature with that of a canonical request.
func (c *Claim) matches(canonical []byte) bool {
	key, known := c.keys.derived.get(c.key, c.date, c.region)
	if !known {
		key = derive(c.key.secret, c.date, c.region, service)
	}
	want := hex.EncodeToString(sum(key, toSign(c.stamp, c.date, c.region, service, canonical)))
	if subtle.ConstantTimeCompare([]byte(want), []byte(c.signature)) != 1 {
		return false
	}
	if !known { // only who has the secret makes this grow
		c.keys.derived.put(c.key, c.date, c.region, key)
	}
	return true
}

func sum(key []byte, data string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(data))
	return h.Sum(nil)
}

// derive makes the key of a day, a region and a service.
func derive(secret, date, region, service string) []byte {
	k := sum([]byte("AWS4"+secret), date)
	k = sum(k, region)
	k = sum(k, service)
	return sum(k, terminator)
}

func toSign(stamp, date, region, service string, canonical []byte) string {
	hash := sha256.Sum256(canonical)
	return algorithm + "\n" + stamp + "\n" + date + "/" + region + "/" + service + "/" + terminator + "\n" + hex.EncodeToString(hash[:])
}

// canonical is the request as it was signed.
func (c *Claim) canonical(p, host, payload string) []byte {
	b := make([]byte, 0, 1024)
	b = append(b, c.r.Method...)
	b = append(b, '\n')
	b = appendEscaped(b, p, "/")
	b = append(b, '\n')
	b = append(b, canonicalQuery(c.r.URL.RawQuery, c.presigned)...)
	b = append(b, '\n')
	for _, name := range c.signed {
		value, _ := c.header(name)
		if name == "host" {
			value = host
		}
		b = append(b, name...)
		b = append(b, ':')
		b = append(b, value...)
		b = append(b, '\n')
	}
	b = append(b, '\n')
	b = append(b, strings.Join(c.signed, ";")...)
	b = append(b, '\n')
	return append(b, payload...)
}

// cleanPath takes the empty, . and .. elements out of a path.
func cleanPath(p string) string {
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// canonicalQuery is a query sorted, and encoded in one way. A presigned one was
// signed without its signature.
func canonicalQuery(raw string, presigned bool) string {
	if raw == "" {
		return ""
	}
	type pair struct{ name, value string }
	var pairs []pair
	for part := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(part, "=")
		if part == "" || presigned && name == "X-Amz-Signature" {
			continue
		}
		pairs = append(pairs, pair{encodedAgain(name), encodedAgain(value)})
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if order := strings.Compare(a.name, b.name); order != 0 {
			return order
		}
		return strings.Compare(a.value, b.value)
	})
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		parts[i] = p.name + "=" + p.value
	}
	return strings.Join(parts, "&")
}

// derivedKey names a signing key. The entry is its own name: a changed key is another.
type derivedKey struct {
	key          *entry
	date, region string
}

const maxDerived = 1024

// cache keeps signing keys, which change once a day.
type cache struct {
	mu   sync.RWMutex
	keys map[derivedKey][]byte
}

func (c *cache) get(key *entry, date, region string) ([]byte, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	k, known := c.keys[derivedKey{key, date, region}]
	return k, known
}

func (c *cache) put(key *entry, date, region string, derived []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil || len(c.keys) >= maxDerived {
		c.keys = map[derivedKey][]byte{}
	}
	c.keys[derivedKey{key, date, region}] = derived
}
