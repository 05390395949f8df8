package sign_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/forebayhq/forebay/sqsapi/sign"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ring is keys with one that works.
type ring struct {
	*sign.Keys
	key    sign.Key
	secret string
}

func open(tb testing.TB, cfg sign.Config) *ring {
	tb.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return now }
	}
	keys, err := sign.Open(filepath.Join(tb.TempDir(), "keys.json"), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	key, secret, err := keys.Add(sign.Spec{Name: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	return &ring{keys, key, secret}
}

// wire is a request as a server sees it.
type wire struct {
	method, target, host string
	header               http.Header
	body                 string
}

func (w wire) request() *http.Request {
	u, err := url.ParseRequestURI(w.target)
	if err != nil {
		return nil
	}
	return &http.Request{Method: w.method, URL: u, Host: w.host, Header: w.header.Clone(), ContentLength: int64(len(w.body)), Body: io.NopCloser(strings.NewReader(w.body))}
}

const body = `{"QueueUrl":"http://sqs.test/000000000000/q","MessageBody":"hello"}`

// signed is a request of the SDK's own signer.
func (k *ring) signed(tb testing.TB, change func(*http.Request)) wire {
	tb.Helper()
	r, err := http.NewRequest("POST", "http://sqs.test:9324/000000000000/q?b=2&a=1%202", strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	r.Header.Set("X-Other", "a  b")
	if change != nil {
		change(r)
	}
	payload := r.Header.Get("X-Amz-Content-Sha256")
	if payload == "" {
		payload = hash(body)
	}
	err = v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: k.key.ID, SecretAccessKey: k.secret}, r, payload, "sqs", "eu-west-9", now)
	if err != nil {
		tb.Fatal(err)
	}
	return wire{r.Method, r.URL.RequestURI(), r.URL.Host, r.Header, body}
}

func (k *ring) presigned(tb testing.TB, expires string) wire {
	tb.Helper()
	r, err := http.NewRequest("GET", "http://sqs.test:9324/000000000000/q?Action=SendMessage&MessageBody=a+b%26&X-Amz-Expires="+expires, nil)
	if err != nil {
		tb.Fatal(err)
	}
	to, _, err := v4.NewSigner().PresignHTTP(context.Background(), aws.Credentials{AccessKeyID: k.key.ID, SecretAccessKey: k.secret}, r, hash(""), "sqs", "eu-west-9", now)
	if err != nil {
		tb.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		tb.Fatal(err)
	}
	return wire{"GET", u.RequestURI(), u.Host, http.Header{}, ""}
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// verify gives the code of the refusal; empty: it passes.
func (k *ring) verify(tb testing.TB, w wire) string {
	tb.Helper()
	r := w.request()
	if r == nil {
		return "no request"
	}
	claim, err := k.Begin(r)
	if err == nil {
		var key sign.Key
		if key, err = claim.Finish([]byte(w.body)); err == nil {
			if key.ID != k.key.ID {
				tb.Errorf("the key is %s", key.ID)
			}
			return ""
		}
	}
	var refused *sign.Refusal
	if !errors.As(err, &refused) {
		tb.Fatalf("%v is no refusal", err)
	}
	if strings.Contains(refused.Error(), k.secret) {
		tb.Errorf("an error tells the secret: %v", refused)
	}
	return refused.Code
}

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
	k = open(t, sign.Config{Hosts: []string{outside}})
	w = k.signed(t, nil)
	w.host = "10.0.0.7:8080"
	if code := k.verify(t, w); code != "" {
		t.Errorf("a configured host gives %q", code)
	}
}

func TestWhatIsNoSignatureIsRefusedInWords(t *testing.T) {
	t.Parallel()
	k := open(t, sign.Config{})
	good := k.signed(t, nil).header.Get("Authorization")
	scope := k.key.ID + "/20261130/eu-west-9/"
	for _, c := range []struct{ name, header, target, code string }{
		{"none", "", "/", sign.Missing},
		{"basic", "Basic dGVzdDp0ZXN0", "/", sign.Broken},
		{"sigv4a", strings.Replace(good, "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256", 1), "/", sign.Broken},
		{"version 2", "", "/?Action=ListQueues&AWSAccessKeyId=AKID&Signature=abc&SignatureVersion=2", sign.Broken},
		{"no parts", "AWS4-HMAC-SHA256", "/", sign.Broken},
		{"no signature", strings.Split(good, ", Signature")[0], "/", sign.Broken},
		{"twice", good + ", Signature=abc", "/", sign.Broken},
		{"unsorted", strings.Replace(good, "content-length;content-type", "content-type;content-length", 1), "/", sign.Broken},
		{"service", strings.Replace(good, "/sqs/", "/s3/", 1), "/", sign.Mismatch},
		{"terminator", strings.Replace(good, "aws4_request", "aws5_request", 1), "/", sign.Broken},
		{"other day", strings.Replace(good, scope, k.key.ID+"/20261129/eu-west-9/", 1), "/", sign.Mismatch},
		{"no region", strings.Replace(good, "/eu-west-9/", "//", 1), "/", sign.Broken},
		{"half a query", "", "/?X-Amz-Signature=abc", sign.Broken},
		{"long presigned", "", strings.Replace(k.presigned(t, "60").target, "X-Amz-Expires=60", "X-Amz-Expires=604801", 1), sign.Broken},
		{"presigned session", "", k.presigned(t, "60").target + "&X-Amz-Security-Token=x", sign.Unknown},
	} {
		w := k.signed(t, nil)
		w.header.Del("Authorization")
		if c.header != "" {
			w.header.Set("Authorization", c.header)
		}
		w.target = c.target
		if code := k.verify(t, w); code != c.code {
			t.Errorf("%s: %q, not %q", c.name, code, c.code)
		}
	}
	two := k.signed(t, nil)
	two.header.Add("Authorization", good)
	if code := k.verify(t, two); code != sign.Broken {
		t.Errorf("two headers give %q", code)
	}
	old := k.signed(t, nil)
	old.header.Set("X-Amz-Date", "yesterday")
	if code := k.verify(t, old); code != sign.Broken {
		t.Errorf("a date that is none gives %q", code)
	}
	if bytes.Contains([]byte(good), []byte(k.secret)) {
		t.Error("the header has the secret")
	}
}
