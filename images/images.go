// Package images is the image service over HTTP: a picture comes in and is
// answered at once; what becomes of it is asked for, or followed as a stream.
//
// It promises that the answer is sent after the picture and its job would survive a
// loss of power, that an upload is never whole in memory, and that each answer is
// the envelope {"code":0,"data":{…}}, or {"code":…,"message":"…"} with the HTTP
// status as its code.
//
// It refuses to touch a picture: that is the handler's, on the queue.
package images

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/stream"
)

// Jobs is what the routes need of a broker.
type Jobs interface {
	Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error)
	Job(ctx context.Context, id string) (forebay.Job, error)
}

// Config of the routes. Jobs, Store and Streams are needed; zero values of the others
// mean their default.
type Config struct {
	Jobs    Jobs
	Store   *storage.Store
	Streams *stream.Streams

	// Estimate tells how long a job of a queue and a kind will take, from now to its
	// end, and false where nothing is known. Nil: nothing ever is.
	Estimate func(queue, kind string) (time.Duration, bool)

	Queue    string        // images
	Kind     string        // image
	MaxBytes int64         // of an upload; 64 MiB
	Attempts int           // of a job; 3
	Patience time.Duration // for the whole of an upload to arrive; 2 minutes
	Logger   *slog.Logger  // none
}

// Images are the routes.
type Images struct{ cfg Config }

// New checks what it needs.
func New(cfg Config) (*Images, error) {
	if cfg.Jobs == nil || cfg.Store == nil || cfg.Streams == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "images", "jobs, a store and streams are needed")
	}
	if cfg.Queue == "" {
		cfg.Queue = "images"
	}
	if cfg.Kind == "" {
		cfg.Kind = "image"
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 3
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2 * time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Images{cfg}, nil
}

// Register adds the routes. Those of the service are behind guard; files are not,
// since a browser shows a picture without any key: their names cannot be guessed.
func (s *Images) Register(mux *http.ServeMux, guard func(http.Handler) http.Handler) {
	mux.Handle("POST /api/images/upload", guard(http.HandlerFunc(s.upload)))
	mux.Handle("GET /api/images/{jobId}/progress", guard(http.HandlerFunc(s.progress)))
	mux.Handle("GET /api/images/{jobId}/stream", guard(http.HandlerFunc(s.stream)))
	mux.Handle("/files/", http.StripPrefix("/files/", s.cfg.Store))
}

// Progress is what is known of a job, as the routes show it.
type Progress struct {
	JobID        string          `json:"jobId"`
	State        forebay.State   `json:"state"`
	Progress     float64         `json:"progress"` // percent
	Stage        string          `json:"stage"`
	Message      string          `json:"message,omitempty"`
	Result       json.RawMessage `json:"result"`
	FailedReason *string         `json:"failedReason"`
}

func shape(j forebay.Job) any { return progressOf(&j) }

func progressOf(j *forebay.Job) Progress {
	p := Progress{JobID: j.ID, State: j.State, Progress: j.Progress.Percent, Stage: j.Progress.Stage, Message: j.Progress.Message}
	if p.Stage == "" {
		p.Stage = string(j.State)
	}
	if j.State == forebay.StateCompleted {
		p.Progress, p.Result = 100, j.Result
	}
	if reason := stream.FailedReason(j); reason != "" && j.State.Final() {
		p.FailedReason = &reason
	}
	return p
}

func (s *Images) progress(w http.ResponseWriter, r *http.Request) {
	job, err := s.job(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	answer(w, http.StatusOK, envelope{Data: progressOf(&job)})
}

func (s *Images) stream(w http.ResponseWriter, r *http.Request) {
	if _, err := s.job(r); err != nil {
		s.fail(w, err)
		return
	}
	access := stream.AccessOf(r.Context())
	access.Fail = func(w http.ResponseWriter, err error) { s.fail(w, err) }
	s.cfg.Streams.ServeJob(w, r.WithContext(stream.WithAccess(r.Context(), access)), r.PathValue("jobId"), shape)
}

// job finds a picture's job. One of another queue is none: its data are not for
// these routes to show.
func (s *Images) job(r *http.Request) (forebay.Job, error) {
	id := r.PathValue("jobId")
	job, err := s.cfg.Jobs.Job(r.Context(), id)
	if err == nil && job.Queue != s.cfg.Queue || forebay.CodeOf(err) == forebay.CodeNotFound {
		return job, forebay.Errorf(forebay.CodeNotFound, "", "there is no job %q of a picture", id)
	}
	return job, err
}

// envelope is every answer that is no stream.
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
	Data    any    `json:"data,omitempty"`
}

func answer(w http.ResponseWriter, status int, e envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(e) // whoever asked may be gone
}

// fail answers with an error. What is not the caller's business is logged, not said.
func (s *Images) fail(w http.ResponseWriter, err error) {
	status, text := statusOf(forebay.CodeOf(err)), forebay.TextOf(err)
	if status >= 500 {
		s.cfg.Logger.Error("images", "error", err)
		text = "the server cannot do that now; try again later"
		w.Header().Set("Retry-After", "5")
	}
	answer(w, status, envelope{Code: status, Message: text})
}

func statusOf(code forebay.Code) int {
	switch code {
	case forebay.CodeInvalid:
		return http.StatusBadRequest
	case forebay.CodeNotFound:
		return http.StatusNotFound
	case forebay.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case codeMedia:
		return http.StatusUnsupportedMediaType
	case codeReused:
		return http.StatusUnprocessableEntity
	case forebay.CodeConflict:
		return http.StatusConflict
	case forebay.CodeUnauthorized:
		return http.StatusUnauthorized
	case forebay.CodeLimited:
		return http.StatusTooManyRequests
	case forebay.CodeUnsupported:
		return http.StatusNotImplemented
	case forebay.CodeInternal:
		return http.StatusInternalServerError
	}
	return http.StatusServiceUnavailable
}

// Codes of these routes only.
const (
	codeMedia  forebay.Code = "media_type"
	codeReused forebay.Code = "key_reused"
)

func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0
}
