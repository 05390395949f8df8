package queue

import (
	"context"
	"log/slog"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Config of a Service.
type Config struct {
	Engine  engine.Engine    // it must keep documents
	Account string           // in ARNs and URLs; default 000000000000
	Region  string           // in ARNs; default us-east-1
	Wide    bool             // limits of the engine instead of those of AWS; see limits.go
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger     // default: no log
}

// Service answers the 23 actions. Its methods may be called concurrently; their
// errors are a *Fault, or that of an ended context.
type Service struct {
	cfg Config
}

// New makes a Service on an engine.
func New(cfg Config) (*Service, error) {
	if cfg.Engine == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sqsapi/queue", "an engine is needed")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{cfg: cfg}, nil
}

// Run does what has no caller: it removes messages whose retention is over and works
// move tasks, until ctx ends. It returns when all that it started has ended.
func (s *Service) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// callerKey is the key of WithCaller.
type callerKey struct{}

// WithCaller tells the access key of who asks; messages sent get it as SenderId.
func WithCaller(ctx context.Context, accessKeyID string) context.Context {
	return context.WithValue(ctx, callerKey{}, accessKeyID)
}

func callerOf(ctx context.Context) string {
	id, _ := ctx.Value(callerKey{}).(string)
	return id
}
