// Package push hands jobs to handlers in other languages over HTTP: it posts a job
// to a configured address, signed as Standard Webhooks says, and takes the answer
// as the result.
//
// It promises: webhook-id is the id of the job, the same in every attempt, so that
// the target can tell a repetition; a status from 200 to 299 is done, and a body
// that is JSON is the result; other statuses below 500 end the job, but for 408,
// 409, 425 and 429; Retry-After is heeded; certificates are verified; the text of a
// failure never shows a secret, nor more of an address than its host.
//
// It refuses to follow redirects, to wait without end, to read without bound, and,
// for addresses that jobs name (Reach), to connect to anything but the public
// internet unless told so. It uses no proxy, since a proxy would connect for it.
package push

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// Config of a Handler. URL and Secrets are needed.
type Config struct {
	URL     string         // where jobs are posted
	Secrets []string       // as of ClientConfig
	Timeout time.Duration  // of one call; 0: 15 min. A job's own timeout ends it before
	RootCAs *x509.CertPool // nil: whom the system trusts

	// ProgressURL is where the target tells progress while it works (the pull API's
	// /api/leases/progress), told to it with a receipt. Empty: it is told neither.
	ProgressURL string
	Receipt     func(*forebay.Delivery) string // as that API reads it; nil: the engine's own
}

// Handler pushes jobs to one address.
type Handler struct {
	client *Client
	cfg    Config
}

var _ worker.JobHandler = (*Handler)(nil)

// New makes a handler. Close it.
func New(cfg Config) (*Handler, error) {
	if err := CheckURL(cfg.URL); err != nil {
		return nil, invalid("url", "%w", err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Minute
	}
	c, err := NewClient(ClientConfig{Secrets: cfg.Secrets, Reach: Anywhere, Timeout: cfg.Timeout, RootCAs: cfg.RootCAs})
	if err != nil {
		return nil, err
	}
	if cfg.Receipt == nil {
		cfg.Receipt = func(d *forebay.Delivery) string { return string(d.Receipt) }
	}
	return &Handler{client: c, cfg: cfg}, nil
}

// Close ends connections that wait for further use.
func (h *Handler) Close() { h.client.Close() }

// HandleJob posts the job and waits for the answer.
func (h *Handler) HandleJob(ctx context.Context, j *worker.Job) ([]byte, error) {
	call, err := task.NewCall(ctx, j)
	if err != nil {
		return nil, err
	}
	if h.cfg.ProgressURL != "" {
		call.ProgressURL, call.Receipt = h.cfg.ProgressURL, h.cfg.Receipt(&j.Delivery)
	}
	body, err := call.JSON()
	if err != nil {
		return nil, err
	}
	answer, err := h.client.Post(ctx, h.cfg.URL, j.Key(), body)
	if err != nil {
		return nil, err
	}
	switch result := jsontext.Value(answer); {
	case result.IsValid():
		return result, nil
	case answer == nil:
		j.Logf("the answer is larger than %d bytes and was not kept", forebay.MaxResultBytes)
	case len(answer) > 0:
		j.Logf("the answer is not JSON and was not kept: %s", excerpt(answer))
	}
	return nil, nil // the work is done: an answer that cannot be kept is no failure
}
