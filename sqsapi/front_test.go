package sqsapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// served is a front over the embedded engine, on a port of this machine.
type served struct {
	*httptest.Server
	front   *sqsapi.Front
	service *queue.Service
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
	cfg := sqsapi.Config{Service: service, Unsigned: true}
	if change != nil {
		change(&cfg)
	}
	front, err := sqsapi.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	s := &served{Server: httptest.NewServer(front), front: front, service: service}
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

func (s *served) send(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	answer, err := s.Server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}
