package sqsapi_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// served is a front over the embedded engine, on a port of this machine.
type served struct {
	*httptest.Server
	front   *sqsapi.Front
	engine  *sqlite.Engine
	service *queue.Service
	keys    *sign.Keys
}

func serve(tb testing.TB, change func(*sqsapi.Config)) *served {
	tb.Helper()
	eng, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { eng.Close() })
	service, err := queue.New(queue.Config{Engine: eng})
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := sign.Open(filepath.Join(tb.TempDir(), "keys.json"), sign.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := sqsapi.Config{Service: service, Keys: keys, Unsigned: true}
	if change != nil {
		change(&cfg)
	}
	front, err := sqsapi.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	s := &served{Server: httptest.NewServer(front), front: front, engine: eng, service: service, keys: keys}
	tb.Cleanup(func() {
		front.Close()
		s.Server.Close()
	})
	return s
}

// client is the Go SDK, with its checks of MD5 sums on, which it has by default.
func (s *served) client(id, secret string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "eu-west-9",
		BaseEndpoint: aws.String(s.URL),
		Credentials:  credentials.NewStaticCredentialsProvider(id, secret, ""),
		HTTPClient:   s.Server.Client(),
		Retryer:      aws.NopRetryer{},
	})
}

// accessKey is a key of a front with its secret.
type accessKey struct{ id, secret string }

func (s *served) withKey(tb testing.TB, rights ...sign.Right) accessKey {
	tb.Helper()
	key, secret, err := s.keys.Add(sign.Spec{Name: rand.Text(), Rights: rights})
	if err != nil {
		tb.Fatal(err)
	}
	return accessKey{key.ID, secret}
}

func (k accessKey) sign(tb testing.TB, r *http.Request, body string) {
	tb.Helper()
	sum := sha256.Sum256([]byte(body))
	err := v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: k.id, SecretAccessKey: k.secret}, r, hex.EncodeToString(sum[:]), "sqs", "us-east-1", time.Now())
	if err != nil {
		tb.Fatal(err)
	}
}
