package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Config of a Service.
type Config struct {
	Engine  engine.Engine    // it must have the abilities Documents and Late, and keep leases
	Account string           // in ARNs and URLs; default 000000000000
	Region  string           // in ARNs; default us-east-1
	Wide    bool             // limits of the engine instead of those of AWS; see limits.go
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger     // default: no log
}

// Service answers the 23 actions. Its methods may be called concurrently; their
// errors are a *Fault, or that of an ended context.
type Service struct {
	cfg        Config
	limits     limits
	attributes []attribute // of queues
	engine     engine.Engine
	docs       engine.Documents
	late       engine.Late
	delayer    engine.Delayer // nil: the engine has none
	key        []byte         // of receipt handles
	numbers    *numbers
	firsts     *firsts
	attempts   *attempts

	mu     sync.Mutex
	queues map[string]*queue // by name

	starting sync.Mutex    // of a move task
	wake     chan struct{} // tells Run that there is one; holds one word
}

// startTimeout bounds what New asks of the engine.
const startTimeout = 30 * time.Second

// New makes a Service on an engine.
func New(cfg Config) (*Service, error) {
	if cfg.Engine == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sqsapi/queue", "an engine is needed")
	}
	if cfg.Account == "" {
		cfg.Account = "000000000000"
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg, limits: limitsOf(cfg.Wide), attributes: attributes(), engine: cfg.Engine, queues: map[string]*queue{}, wake: make(chan struct{}, 1)}
	var hasDocs, hasLate bool
	s.docs, hasDocs = engine.As[engine.Documents](cfg.Engine)
	s.late, hasLate = engine.As[engine.Late](cfg.Engine)
	s.delayer, _ = engine.As[engine.Delayer](cfg.Engine)
	s.numbers = &numbers{docs: s.docs, now: cfg.Now}
	s.firsts, s.attempts = newFirsts(), newAttempts()
	if !hasDocs || !hasLate {
		return nil, forebay.Errorf(forebay.CodeUnsupported, "sqsapi/queue",
			"the engine cannot speak SQS: it has to keep documents and to act by late receipts")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	if s.key, err = s.secret(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Run does what has no caller: it removes messages whose retention is over and works
// move tasks, until ctx ends. It returns when all that it started has ended.
func (s *Service) Run(ctx context.Context) error {
	return s.work(ctx)
}

// live is what is known of a queue in this process only.
type live struct {
	life   string
	sign   *signer
	funnel funnel // of a FIFO queue
	again  again
	flight flight
	told   told
	gone   context.Context // ends with the queue, and with it who waits for its messages
	end    context.CancelFunc
}

func (s *Service) newLive(life string) *live {
	l := &live{life: life, sign: s.newSigner(life)}
	l.gone, l.end = context.WithCancel(context.Background())
	l.funnel.do = func(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
		return s.numberAndSend(ctx, l, msgs)
	}
	return l
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
