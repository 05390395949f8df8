package push

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/forebayhq/forebay"
)

const (
	maxURLBytes   = 2048
	minSecret     = 24 // bytes, as Standard Webhooks says
	maxSecret     = 64
	maxExcerpt    = 300       // bytes of a refusal that are kept with the failure
	maxRetryAfter = time.Hour // that a target can ask for
)

var errTimeout = errors.New("no answer in time")

// ClientConfig of a client. Secrets are needed.
type ClientConfig struct {
	Secrets []string       // whsec_ and base64; each signs, so that a new one can be brought in beside the old
	Reach   Reach          // which addresses it may connect to
	Timeout time.Duration  // of one call, from the connection to the last byte of the answer; 0: 30 s
	RootCAs *x509.CertPool // who vouches for certificates; nil: whom the system trusts
	Now     func() time.Time
}

// Client posts signed requests. Its methods may be called from several goroutines.
type Client struct {
	signers []*webhooks.Webhook
	timeout time.Duration
	now     func() time.Time
	http    *http.Client
}

// NewClient makes a client.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	signers, err := signersOf(cfg.Secrets)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout < 0 {
		return nil, invalid("timeout", "%s; more than 0 is allowed, and 0 for the default", cfg.Timeout)
	}
	return &Client{
		signers: signers,
		timeout: cfg.Timeout,
		now:     cfg.Now,
		http: &http.Client{
			// A redirect would carry the body to an address that nobody named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DialContext:            cfg.Reach.dialer().DialContext,
				TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout:    10 * time.Second,
				ForceAttemptHTTP2:      true,
				MaxIdleConnsPerHost:    8,
				MaxIdleConns:           256,
				IdleConnTimeout:        time.Minute,
				MaxResponseHeaderBytes: 64 << 10,
			},
		},
	}, nil
}

func invalid(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "push", format, args...)
	e.Field = field
	return e
}

// signersOf never shows a secret in an error.
func signersOf(secrets []string) ([]*webhooks.Webhook, error) {
	if len(secrets) == 0 {
		return nil, invalid("secrets", "none is given; the target needs one to know who calls")
	}
	var list []*webhooks.Webhook
	for i, s := range secrets {
		field := fmt.Sprintf("secrets.%d", i)
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		if err != nil {
			return nil, invalid(field, "it is not base64; allowed is whsec_ and the base64 of %d to %d random bytes", minSecret, maxSecret)
		}
		if len(key) < minSecret || len(key) > maxSecret {
			return nil, invalid(field, "it has %d bytes; %d to %d are allowed", len(key), minSecret, maxSecret)
		}
		w, err := webhooks.NewWebhookRaw(key)
		if err != nil {
			return nil, invalid(field, "it cannot be used to sign")
		}
		list = append(list, w)
	}
	return list, nil
}

// Close ends connections that wait for further use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// CheckURL tells whether an address can be posted to.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxURLBytes:
		return fmt.Errorf("an address of %d bytes; up to %d are allowed", len(address), maxURLBytes)
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("it is not an address of the form https://host/path")
	case u.User != nil:
		return errors.New("an address with a user or password in it is not allowed")
	}
	return nil
}

// Post posts JSON to an address, with id in webhook-id, and gives the body of the
// answer, nil where it is larger than forebay.MaxResultBytes. Statuses from 200 to
// 299 are success. Errors steer a job: what repeating cannot mend is permanent, and
// Retry-After is heeded, up to an hour.
func (c *Client) Post(ctx context.Context, address, id string, body []byte) ([]byte, error) {
	if err := CheckURL(address); err != nil {
		return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "bad_url"}, err))
	}
	calling, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(calling, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "bad_url"}, err))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "forebay")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header)) // without a span: nothing
	if err := c.sign(r.Header, id, body); err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err == nil {
		defer answer.Body.Close()
		body, err = read(answer)
	}
	switch {
	case err == nil:
		return verdict(answer, body, c.now())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case calling.Err() != nil:
		err = fmt.Errorf("%w: %s", context.Cause(calling), c.timeout)
	}
	return nil, unreached(r.URL.Host, err)
}

func (c *Client) sign(h http.Header, id string, body []byte) error {
	now := c.now()
	signatures := make([]string, len(c.signers))
	for i, s := range c.signers {
		var err error
		if signatures[i], err = s.Sign(id, now, body); err != nil {
			return fmt.Errorf("push: sign: %w", err)
		}
	}
	h.Set(webhooks.HeaderWebhookID, id)
	h.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(webhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// read reads what can be kept of an answer: of a refusal, its beginning.
func read(r *http.Response) ([]byte, error) {
	most := int64(maxExcerpt)
	if r.StatusCode/100 == 2 {
		most = forebay.MaxResultBytes
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if int64(len(body)) > most && r.StatusCode/100 == 2 {
		return nil, nil
	}
	return body, err
}
