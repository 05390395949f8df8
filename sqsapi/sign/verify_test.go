package sign_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/sqsapi/sign"
)

func TestSignaturesOfTheSDKPass(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	for range 2 { // the second time with the derived key of the first
		if code := k.verify(t, k.signed(t, nil)); code != "" {
			t.Errorf("a signed request is refused: %s", code)
		}
	}
	if code := k.verify(t, k.presigned(t, "60")); code != "" {
		t.Errorf("a presigned request is refused: %s", code)
	}
	for _, payload := range []string{"UNSIGNED-PAYLOAD", hash(body)} {
		w := k.signed(t, func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", payload) })
		if code := k.verify(t, w); code != "" {
			t.Errorf("a request with the payload %s is refused: %s", payload, code)
		}
	}
	w := k.signed(t, func(r *http.Request) { r.URL.Path = "//000000000000/./q" })
	if code := k.verify(t, w); code != "" {
		t.Errorf("a path that is not clean is refused: %s", code)
	}
}

// Every bit of what was signed decides: the request with one of them flipped fails.
func TestAnyFlippedBitIsRefused(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	flipped := func(name, s string, with func(string) wire) {
		t.Helper()
		for i := range len(s) * 8 {
			b := []byte(s)
			b[i/8] ^= 1 << (i % 8)
			if strings.EqualFold(s, string(b)) && i/8 > 1 && (s[i/8-1] == '%' || s[i/8-2] == '%') {
				continue // %2f and %2F are one thing
			}
			if code := k.verify(t, with(string(b))); code == "" {
				t.Errorf("%s passes with bit %d flipped: %q", name, i, b)
			}
		}
	}
	w := k.signed(t, nil)
	if code := k.verify(t, w); code != "" {
		t.Fatal(code)
	}
	signed := w.header.Get("Authorization")
	for name := range w.header {
		value := w.header.Get(name)
		flipped(name, value, func(s string) wire {
			changed := w
			changed.header = w.header.Clone()
			changed.header.Set(name, s)
			return changed
		})
		if strings.Contains(strings.ToLower(signed), strings.ToLower(name)) || name == "Authorization" {
			missing := w
			missing.header = w.header.Clone()
			missing.header.Del(name)
			if k.verify(t, missing) == "" {
				t.Errorf("passes without %s", name)
			}
		}
	}
	flipped("body", w.body, func(s string) wire { c := w; c.body = s; return c })
	flipped("host", w.host, func(s string) wire { c := w; c.host = s; return c })
	flipped("method", w.method, func(s string) wire { c := w; c.method = s; return c })
	flipped("target", w.target, func(s string) wire { c := w; c.target = s; return c })
	p := k.presigned(t, "60")
	flipped("presigned", p.target, func(s string) wire { c := p; c.target = s; return c })
}

func TestWhatDecidesMustBeSigned(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	// A Query request that was signed without X-Amz-Target cannot be turned into JSON.
	w := k.signed(t, func(r *http.Request) { r.Header.Del("X-Amz-Target") })
	for name, value := range map[string]string{"X-Amz-Target": "AmazonSQS.DeleteQueue", "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"} {
		c := w
		c.header = w.header.Clone()
		c.header.Set(name, value)
		if code := k.verify(t, c); code != sign.Mismatch {
			t.Errorf("%s was added, and gives %q", name, code)
		}
	}
	two := w
	two.header = w.header.Clone()
	two.header.Add("X-Other", "c")
	if code := k.verify(t, two); code != sign.Mismatch {
		t.Errorf("a second value of a signed header gives %q", code)
	}
	chunked := k.signed(t, func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") })
	if code := k.verify(t, chunked); code != sign.Mismatch {
		t.Errorf("chunk signatures give %q", code)
	}
	open := k.signed(t, func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD") })
	open.header.Set("X-Amz-Content-Sha256", hash(body))
	if code := k.verify(t, open); code != sign.Mismatch {
		t.Errorf("another promise about the body gives %q", code)
	}
}

func TestClocksMayBeOffByFiveMinutes(t *testing.T) {
	t.Parallel()
	at := now
	k := open(t, sign.Config{Now: func() time.Time { return at }})
	w, p := k.signed(t, nil), k.presigned(t, "900")
	for _, c := range []struct {
		w     wire
		later time.Duration
		code  string
	}{
		{w, 0, ""}, {w, 5 * time.Minute, ""}, {w, -5 * time.Minute, ""},
		{w, 5*time.Minute + time.Second, sign.Expired}, {w, -5*time.Minute - time.Second, sign.Expired},
		{p, 15 * time.Minute, ""}, {p, 15*time.Minute + time.Second, sign.Expired}, {p, -5*time.Minute - time.Second, sign.Expired},
	} {
		at = now.Add(c.later)
		if code := k.verify(t, c.w); code != c.code {
			t.Errorf("%s after signing: %q, not %q", c.later, code, c.code)
		}
	}
}

func TestKeysDecide(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	w := k.signed(t, nil)
	if code := open(t, sign.Config{}).verify(t, w); code != sign.Unknown {
		t.Errorf("a key of another server gives %q", code)
	}
	wrong := *k
	wrong.secret = strings.Repeat("x", 40)
	if code := k.verify(t, wrong.signed(t, nil)); code != sign.Mismatch {
		t.Errorf("a wrong secret gives %q", code)
	}
	session := k.signed(t, func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "token") })
	if code := k.verify(t, session); code != sign.Unknown {
		t.Errorf("a session token gives %q", code)
	}
	if code := k.verify(t, w); code != "" {
		t.Fatal(code)
	}
	if _, err := k.Revoke(k.key.ID); err != nil {
		t.Fatal(err)
	}
	if code := k.verify(t, w); code != sign.Unknown {
		t.Errorf("a revoked key gives %q", code)
	}
}

// A proxy that changes Host breaks signatures, unless the name that clients use is
// configured; what a request says itself is not believed.
func TestHostBehindAProxy(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	w := k.signed(t, nil)
	w.header = w.header.Clone()
	w.header.Set("X-Forwarded-Host", w.host)
	outside := w.host
	w.host = "10.0.0.7:8080"
	if code := k.verify(t, w); code != sign.Mismatch {
		t.Errorf("another host gives %q", code)
	}
	k.hosts = []string{"other.example.com", outside}
	if code := k.verify(t, w); code != "" {
		t.Errorf("a configured host gives %q", code)
	}
}
