// Package sqsapi speaks the wire protocols of SQS, so that every AWS SDK, the AWS
// command line and what was written for them are clients of Forebay's queues.
//
// It promises all 23 actions in both protocols: AWS JSON 1.0, which SDKs speak since
// the end of 2023, and Query/XML, which those before it speak. Both shapes of an
// error are given, so that old and new clients find the code they look for. A client's
// mistake is never answered with a 500. Queue URLs in answers are reachable by who
// asked. Waiting receives cost nothing until a message comes, the client leaves, or
// Close ends them.
//
// It refuses to know what a queue is (package queue does) and to evaluate policies:
// who may do what is said by access keys (package sign).
package sqsapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sqsapi/queue"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// Config of a Front.
type Config struct {
	Service *queue.Service // what answers; needed
	Account string         // in queue URLs; as in queue.Config, default 000000000000

	// PublicURL is the address that clients use, like https://sqs.example.com. Empty:
	// queue URLs are made of the X-Forwarded-Proto, X-Forwarded-Host and
	// X-Forwarded-Port headers, or the Host, of the request that they answer. A proxy
	// that changes Host needs it, since clients sign the host that they know.
	PublicURL string

	// Keys are the access keys that requests are signed with. nil: none works.
	Keys *sign.Keys

	// Unsigned lets requests without a signature in, with all rights, where they come
	// from a program on this machine: from a loopback address, with no header that
	// tells of a proxy on the way or of a web page as the sender. SDKs sign always; so
	// a signature with any key (test/test) is not looked at, and the same holds for the
	// request as if it had none. All this ends with the first access key: a proxy on this
	// machine that adds no header (the default of many) makes everybody look local, so
	// from then on every request needs a good signature, from this machine too.
	// false: every request needs a good signature.
	Unsigned bool

	MaxBody   int64         // bytes of a request's body; default 8 MiB
	MaxBodies int64         // bytes of all bodies that are being read; more are throttled; default 256 MiB
	MaxPolls  int           // receives at the same time; more are throttled; default 20000
	BodyTime  time.Duration // for a body to arrive; default 30s
	Logger    *slog.Logger  // tells of our own failures; default: no log
}

const (
	maxBody   = 8 << 20 // a message of 1 MiB may be six times as long once it is escaped
	maxBodies = 256 << 20
	maxPolls  = 20_000
	bodyTime  = 30 * time.Second

	// answerTime is what a client has to take an answer, from the moment it is ready.
	answerTime = 30 * time.Second
)

// Front is an http.Handler that speaks SQS on any path. It must be mounted as it is:
// a mux that cleans paths breaks signatures. It sets the deadlines of bodies and answers
// itself, so its server needs ReadHeaderTimeout and IdleTimeout, and must have no
// WriteTimeout, which would end long polls.
type Front struct {
	cfg     Config
	public  *url.URL // of PublicURL; nil: as the request says
	actions map[string]*action
	polls   atomic.Int64
	bodies  atomic.Int64    // bytes held of bodies, beyond what each connection may have
	closing context.Context // done once Close was called
	close   context.CancelFunc
}

// New makes a Front.
func New(cfg Config) (*Front, error) {
	const op = "sqsapi"
	if cfg.Service == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, op, "a service is needed")
	}
	if cfg.Account == "" {
		cfg.Account = "000000000000"
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = maxBody
	}
	if cfg.MaxBodies <= 0 {
		cfg.MaxBodies = maxBodies
	}
	if cfg.MaxPolls <= 0 {
		cfg.MaxPolls = maxPolls
	}
	if cfg.BodyTime <= 0 {
		cfg.BodyTime = bodyTime
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Front{cfg: cfg, actions: actions()}
	if cfg.PublicURL != "" {
		u, err := url.Parse(cfg.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, forebay.Errorf(forebay.CodeInvalid, op, "the public URL %q is not like https://sqs.example.com", cfg.PublicURL)
		}
		u.Path = strings.TrimRight(u.Path, "/")
		f.public = u
	}
	f.closing, f.close = context.WithCancel(context.Background())
	return f, nil
}

// Close ends receives that wait, now and from now on, with an empty answer; all else
// goes on being answered. It is the first step of a drain and may be called again.
func (f *Front) Close() { f.close() }

// Polls tells how many receives are being answered, most of them waiting.
func (f *Front) Polls() int { return int(f.polls.Load()) }

// ServeHTTP answers one request.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{front: f, w: w, r: r, id: requestID()}
	out, err := c.serve()
	if c.gone(err) {
		return
	}
	c.control().SetWriteDeadline(time.Now().Add(answerTime)) // an error: a writer that has none
	if err != nil {
		c.refuse(err)
		return
	}
	c.answer(out)
}
