package sign_test

import (
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
	hosts  []string // that clients may use beside the one that is seen
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
	return &ring{Keys: keys, key: key, secret: secret}
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
		if key, err = claim.Finish([]byte(w.body), k.hosts...); err == nil {
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
