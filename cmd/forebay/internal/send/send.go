// Package send posts a file of events, one JSON object per line, to a server.
//
// It promises that a file that was interrupted is taken up where the server
// confirmed it, and that nothing is doubled by repeating: an event without an id
// gets one that depends on the file and its line only, so that the server knows it
// again. Events are sent in the order of the file.
//
// It refuses to judge events: what is no JSON goes to the server too, which keeps
// it with the reason.
package send

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"
)

// Config of a Sender. URL is required; the zero values of the others work.
type Config struct {
	URL      string // of the server: "http://127.0.0.1:8080"
	Key      string // write key; empty: none
	Batch    int    // most events in a request; default 500
	Bytes    int    // most bytes in a request before compression; default 1 MB
	Patience time.Duration
	// Patience is how long one batch is tried again while the server cannot take
	// it; default 10 minutes.
	Client   *http.Client
	Progress func(Progress) // called after each batch
	Logger   *slog.Logger
}

// Progress tells how far the file is sent. It is also what the state file holds.
type Progress struct {
	File      string `json:"file"`  // SHA-256 of its content
	Offset    int64  `json:"bytes"` // confirmed by the server
	Lines     int    `json:"lines"`
	Accepted  int    `json:"accepted"`
	Duplicate int    `json:"duplicate"`
	Rejected  int    `json:"rejected"`
	Size      int64  `json:"size"`
}

// Rejection is a line that the server did not take.
type Rejection struct {
	Line    int    `json:"line"`
	Code    string `json:"code"`
	Pointer string `json:"pointer,omitempty"`
	Message string `json:"message"`
}

// Summary is how it ended. Rejections holds the first MaxRejections of them.
type Summary struct {
	Progress
	Resumed    int64         `json:"resumedAt,omitzero"` // byte at which it went on
	Retries    int           `json:"retries"`
	Took       time.Duration `json:"-"`
	Seconds    float64       `json:"seconds"`
	Rejections []Rejection   `json:"rejections,omitempty"`
}

// MaxRejections bounds how many rejected lines are remembered.
const MaxRejections = 1000

// maxLine bounds a line; a longer one ends the run, since it could not be sent.
const maxLine = 4 << 20

const (
	firstWait = 500 * time.Millisecond
	longWait  = 30 * time.Second
)

type sender struct {
	cfg     Config
	state   string // path of the state file; empty: none
	sum     Summary
	scratch bytes.Buffer
}

// File sends a file. It goes on where an earlier run of the same content stopped,
// told by a hidden file beside it that is removed at the end.
func File(ctx context.Context, path string, cfg Config) (Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	hash, size, err := fingerprint(ctx, f)
	if err != nil {
		return Summary{}, fmt.Errorf("%s: %w", path, err)
	}
	s := newSender(cfg)
	s.state = statePath(path)
	s.sum.File, s.sum.Size = hash, size
	if old, ok := readState(s.state); ok && old.File == hash && old.Offset <= size {
		s.sum.Progress, s.sum.Resumed = old, old.Offset
	}
	if _, err := f.Seek(s.sum.Offset, io.SeekStart); err != nil {
		return Summary{}, err
	}
	return s.run(ctx, f)
}

// Reader sends what it reads. It cannot be taken up again, and an event without an
// id gets one from the server.
func Reader(ctx context.Context, r io.Reader, cfg Config) (Summary, error) {
	return newSender(cfg).run(ctx, r)
}

func newSender(cfg Config) *sender {
	cfg.Batch = cmp.Or(cfg.Batch, 500)
	cfg.Bytes = cmp.Or(cfg.Bytes, 1_000_000)
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Minute)
	cfg.Client = cmp.Or(cfg.Client, &http.Client{Timeout: time.Minute})
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	return &sender{cfg: cfg}
}

func (s *sender) run(ctx context.Context, r io.Reader) (Summary, error) {
	begun := time.Now()
	err := s.all(ctx, newLines(r, s.sum.Lines))
	s.sum.Took = time.Since(begun)
	s.sum.Seconds = s.sum.Took.Seconds()
	if err == nil && s.state != "" {
		if err = os.Remove(s.state); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	return s.sum, err
}

func (s *sender) all(ctx context.Context, lines *lines) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		batch, err := lines.batch(s.cfg.Batch, s.cfg.Bytes)
		if err != nil {
			return err
		}
		if len(batch.events) > 0 {
			if s.sum.File != "" {
				batch.identify(s.sum.File)
			}
			if err := s.deliver(ctx, batch); err != nil {
				return err
			}
		}
		s.sum.Offset += batch.read
		s.sum.Lines = lines.n
		s.save()
		if s.cfg.Progress != nil {
			s.cfg.Progress(s.sum.Progress)
		}
		if batch.last {
			return nil
		}
	}
}

// deliver sends a batch until the server has taken it.
func (s *sender) deliver(ctx context.Context, b batch) error {
	deadline := time.Now().Add(s.cfg.Patience)
	for try := 0; ; try++ {
		a, err := s.post(ctx, b.events)
		var bad *unfit
		var later *busy
		switch {
		case err == nil:
			s.count(a, b)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &bad):
			return s.halve(ctx, b, bad)
		case !errors.As(err, &later):
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("gave up after %s: %w", s.cfg.Patience, err)
		}
		wait := cmp.Or(later.after, backoff(try))
		s.sum.Retries++
		s.cfg.Logger.Info("the server cannot take more now", "again", wait, "reason", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// halve sends a batch that the server cannot take in two parts, so that one event
// does not keep the others back; an event that it cannot take by itself counts as
// rejected.
func (s *sender) halve(ctx context.Context, b batch, why *unfit) error {
	if len(b.events) == 1 {
		s.reject(Rejection{Line: b.events[0].line, Code: why.code, Message: why.why})
		return nil
	}
	mid := len(b.events) / 2
	if err := s.deliver(ctx, batch{events: b.events[:mid]}); err != nil {
		return err
	}
	return s.deliver(ctx, batch{events: b.events[mid:]})
}

func (s *sender) reject(r Rejection) {
	s.sum.Rejected++
	if len(s.sum.Rejections) < MaxRejections {
		s.sum.Rejections = append(s.sum.Rejections, r)
	}
}

func (s *sender) count(a answer, b batch) {
	s.sum.Accepted += a.Accepted
	s.sum.Duplicate += a.Duplicate
	for _, r := range a.Results {
		if r.Status == "rejected" && r.Index >= 0 && r.Index < len(b.events) {
			s.reject(Rejection{b.events[r.Index].line, r.Code, r.Pointer, r.Message})
			a.Rejected--
		}
	}
	s.sum.Rejected += a.Rejected // those that the answer did not list
}

// backoff doubles from firstWait to longWait, with jitter.
func backoff(try int) time.Duration {
	d := min(firstWait<<min(try, 10), longWait)
	return d/2 + rand.N(d/2)
}
