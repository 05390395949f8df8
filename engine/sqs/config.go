package sqs

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Doer makes HTTP requests; *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Config of an engine.
type Config struct {
	// Queues are the URLs of the queues on SQS, by the name that Forebay uses. The
	// ending .fifo of a URL tells a FIFO queue.
	Queues map[string]string

	// Region of the queues. Empty: as the URLs or the AWS SDK's own settings say.
	Region string

	// Endpoint is where SQS is asked. Empty: AWS_ENDPOINT_URL_SQS, else the host of the
	// queue URLs if that is none of AWS, else the region's.
	Endpoint string

	// HTTP makes the requests. Nil: a client of its own.
	HTTP Doer

	// Create makes queues that are not in Queues when they are first used, each with a
	// queue for its dead letters. For tests and development.
	Create bool

	// CreateFIFO makes FIFO queues of those, with the ending .fifo on SQS.
	CreateFIFO bool

	// Unwrap opens the envelopes that other services put around a payload, by queue.
	Unwrap map[string]Unwrap

	// Polls is the most polls of one queue side by side. 0: 16.
	Polls int

	// Calls is the most calls of one kind for one queue side by side. 0: 16.
	Calls int

	// Grace is how long the open polls of a Receive whose context ended may still
	// answer. 0: 250 ms. Negative: none; what they would have brought is hidden until
	// its lease ends.
	Grace time.Duration

	// Timeout of a call that does not wait. 0: 10 s.
	Timeout time.Duration

	// Watchdog is how much later than its wait a poll may answer, before it is asked
	// anew on another connection: a half-open one never would answer. 0: 5 s.
	Watchdog time.Duration

	// HandlerTimeout is how long handlers may take. Audit compares it. 0: not known.
	HandlerTimeout time.Duration

	// Logger is told when polling fails and works again, and what Audit finds when the
	// engine is opened. Nil: nobody is, and nothing is audited.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	set := func(p *int, def int) {
		if *p == 0 {
			*p = def
		}
	}
	set(&c.Polls, 16)
	set(&c.Calls, 16)
	if c.Grace == 0 {
		c.Grace = 250 * time.Millisecond
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Watchdog == 0 {
		c.Watchdog = 5 * time.Second
	}
	var problems []error
	wrong := func(field, format string, args ...any) {
		e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
		e.Field = field
		problems = append(problems, e)
	}
	if len(c.Queues) == 0 && !c.Create {
		wrong("queues", "no queue is named; each needs its URL")
	}
	if c.Polls < 0 || c.Calls < 0 || c.Timeout < 0 || c.Watchdog < 0 {
		wrong("polls, calls, timeout, watchdog", "numbers below 0; 0 means the default")
	}
	for name, raw := range c.Queues {
		if err := engine.CheckQueue(name); err != nil {
			problems = append(problems, err)
		}
		if u, err := url.Parse(raw); err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" {
			wrong("queues."+name, "%q is not the URL of a queue; it looks like https://sqs.<region>.amazonaws.com/<account>/<name>", raw)
		}
	}
	if c.Region == "" {
		c.Region = c.regionOfURLs()
	}
	if err := errors.Join(problems...); err != nil {
		return c, forebay.Errorf(forebay.CodeInvalid, "sqs: open", "%w", err)
	}
	return c, nil
}

// regionOfURLs reads sqs.<region>.amazonaws.com and sqs.<region>.api.aws.
func (c Config) regionOfURLs() string {
	for _, raw := range c.Queues {
		u, err := url.Parse(raw)
		if err != nil || !ofAWS(u.Hostname()) {
			continue
		}
		if parts := strings.Split(u.Hostname(), "."); len(parts) > 2 && strings.HasPrefix(parts[0], "sqs") {
			return parts[1]
		}
	}
	return ""
}

// endpointOfURLs is where URLs lead that are none of AWS. The AWS SDK for Go does not
// look at the host of a queue's URL.
func (c Config) endpointOfURLs() string {
	for _, raw := range c.Queues {
		if u, err := url.Parse(raw); err == nil && !ofAWS(u.Hostname()) {
			return u.Scheme + "://" + u.Host
		}
	}
	return ""
}

func ofAWS(host string) bool {
	for _, end := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}
