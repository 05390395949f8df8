package sqsapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/sqsapi"
)

func TestQueueURLsAreReachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, public string
		header       map[string]string
		want         string
	}{
		{"as asked", "", nil, "http://sqs.test:9324/000000000000/q"},
		{"proxy", "", map[string]string{"X-Forwarded-Host": "queues.example.com", "X-Forwarded-Proto": "https"}, "https://queues.example.com/000000000000/q"},
		{"proxies", "", map[string]string{"X-Forwarded-Host": "outer.example.com, inner", "X-Forwarded-Proto": "https,http", "X-Forwarded-Port": "8443"}, "https://outer.example.com:8443/000000000000/q"},
		{"default port", "", map[string]string{"X-Forwarded-Host": "a", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"}, "https://a/000000000000/q"},
		{"port is there", "", map[string]string{"X-Forwarded-Host": "[::1]:80", "X-Forwarded-Port": "81"}, "http://[::1]:80/000000000000/q"},
		{"not a host", "", map[string]string{"X-Forwarded-Host": "a/b?<c>", "X-Forwarded-Proto": "ftp"}, "http://sqs.test:9324/000000000000/q"},
		{"configured", "https://example.com/sqs/", map[string]string{"X-Forwarded-Host": "other"}, "https://example.com/sqs/000000000000/q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(cfg *sqsapi.Config) { cfg.PublicURL = c.public })
			s.json(t, "CreateQueue", `{"QueueName":"q"}`)
			r, err := http.NewRequest("POST", s.URL, strings.NewReader("Action=GetQueueUrl&QueueName=q"))
			if err != nil {
				t.Fatal(err)
			}
			// A request through a proxy is not local: it is signed, and no key exists yet.
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Host = "sqs.test:9324"
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			keys := s.withKey(t)
			keys.sign(t, r, "Action=GetQueueUrl&QueueName=q")
			if a := s.do(t, r); !strings.Contains(a.body, "<QueueUrl>"+c.want+"</QueueUrl>") {
				t.Errorf("%s has no %s", a.body, c.want)
			}
		})
	}
}

func TestPublicURLsAreChecked(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, public := range []string{"sqs.example.com", "ftp://a", "https://", "https://a?b=c", "https://a#b", "https://a b"} {
		if _, err := sqsapi.New(sqsapi.Config{Service: s.service, PublicURL: public}); err == nil {
			t.Errorf("%q is accepted", public)
		}
	}
	if _, err := sqsapi.New(sqsapi.Config{}); err == nil {
		t.Error("a front without a service is made")
	}
}

// A proxy that changes Host breaks signatures, unless the public URL tells the host
// that clients sign.
func TestSignaturesThroughAProxyThatChangesHost(t *testing.T) {
	t.Parallel()
	for public, status := range map[string]int{"": 403, "https://sqs.example.com/": 200, "https://other.example.com": 403} {
		s := serve(t, func(c *sqsapi.Config) { c.PublicURL = public })
		r, err := http.NewRequest("POST", s.URL, strings.NewReader("Action=ListQueues"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-Host", "sqs.example.com")
		r.Host = "sqs.example.com"
		s.withKey(t).sign(t, r, "Action=ListQueues")
		r.Host = "10.0.0.7:9324"
		if a := s.do(t, r); a.status != status {
			t.Errorf("with the public URL %q: %d %s", public, a.status, a.body)
		}
	}
}
