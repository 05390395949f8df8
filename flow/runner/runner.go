// Package runner runs flows on jobs: it makes jobs of what package flow decides, and
// events of how they end. There is no second engine.
//
// # Who does what
//
//	Start ──▶ run job (delayed)
//	  │          ▲ woken at the end       looks after the run now and then
//	  │          │                                    │
//	  └──────▶ advance ──decides, sends──▶ step jobs  │
//	             ▲  └─ stores the run's state  │      │
//	             └──── verdict and advance ────┴──────┘
//	                   in one
//
// A run is a job in the queue of flows; its payload is the run's input. It is delayed
// while the run goes on. It is handed out now and then, to compare the run with the
// ledger, and at the end, which gives it the run's verdict: completed with the run's
// output, dead with its failure, or cancelled.
//
// All decisions about a run, but for the steps of a chain (chain.go), are made by
// advance messages, which are a group, so in order; many at once are one decision. An advance sends what has become ready, under fixed ids, and then
// stores the run's state, a document whose revision guards it. It may crash anywhere
// and be repeated. The verdict of a step carries its advance (worker.Job.Follow), so
// that neither is without the other.
//
// What ends a job without such a verdict (a deadline while it waits, a cancellation,
// poison, a discard) is heard from the history by Run, at once, and found by the run
// job, later, also where nobody listened.
//
// # What it promises
//
//   - No step is lost, and none runs twice but by a redelivery of its own job.
//   - A run keeps the version that it started on.
//   - A run ends, or Get names what it waits for.
//
// # What it refuses
//
// It runs no handler: steps are worked by workers of their queues, whose handlers are
// wrapped by Steps. An engine without ledger and documents cannot run flows.
package runner

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
)

// Config of a runner. The zero value works.
type Config struct {
	Queue  string        // of runs, delays and waits; empty: flows. Their control has a queue beside it
	Events string        // the queue of emitted events whose step names none; empty: events
	Watch  time.Duration // a run is compared with the ledger so long after it began, then less often; 0: 30 s
	Keep   time.Duration // how long the state of a run is kept after its end; 0: 30 days
	// FourEyes lets only those versions run that somebody other than their author has
	// approved (SignOff). The latest is then the latest of them.
	FourEyes bool

	Alone bool             // no other process works on the store, as with the embedded engine: chains of steps are quicker
	Now   func() time.Time // nil: time.Now

	// Emit writes what an event is on the queue Events, of its data; nil: as the data is.
	Emit func(id, kind string, data []byte, now time.Time) []byte

	Logger *slog.Logger // nil: silent
}

// Queues of which a Config says nothing.
const (
	DefaultQueue  = "flows"
	DefaultEvents = "events"
)

const (
	watchMost = 15 * time.Minute
	maxPlans  = 1000 // in memory
	maxInputs = 1000
	maxTries  = 16 // of a change that others outrun
)

// Runner is safe for concurrent use.
type Runner struct {
	b   *broker.Broker
	cfg Config
	log *slog.Logger

	mu     sync.Mutex
	plans  map[planKey]*version   // guarded by mu, as the next
	inputs map[string]*flow.Input // of runs that are going on
	chains map[string]*chained    // runs without a document
	left   map[string]*chained    // those that have just got one coming: as they were
	ended  map[string]*chained    // runs whose jobs are to be handed out for their verdict
}

type planKey struct {
	name    string
	version int
}

// New makes a runner over a broker. Every problem of cfg is reported at once.
func New(b *broker.Broker, cfg Config) (*Runner, error) {
	if cfg.Queue == "" {
		cfg.Queue = DefaultQueue
	}
	if cfg.Events == "" {
		cfg.Events = DefaultEvents
	}
	if cfg.Watch == 0 {
		cfg.Watch = 30 * time.Second
	}
	if cfg.Keep == 0 {
		cfg.Keep = 30 * 24 * time.Hour
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	problems := []error{engine.CheckQueue(cfg.Queue + "-advance"), engine.CheckQueue(cfg.Events)}
	if b == nil {
		problems = append(problems, errors.New("no broker was given"))
	}
	if cfg.Watch < time.Second || cfg.Watch > watchMost {
		problems = append(problems, wrong("watch", "watch is %s; 1s to %s are allowed", cfg.Watch, watchMost))
	}
	if cfg.Keep < time.Minute {
		problems = append(problems, wrong("keep", "keep is %s; a minute or more is allowed", cfg.Keep))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "runner: new", "%w", err)
	}
	r := &Runner{b: b, cfg: cfg, log: cfg.Logger, plans: map[planKey]*version{}, inputs: map[string]*flow.Input{}, chains: map[string]*chained{}, left: map[string]*chained{}, ended: map[string]*chained{}}
	b.OnReplay(cfg.Queue, KindRun, r.replay)
	return r, nil
}

// Queue is where runs are; a worker of jobs with Handler has to consume it.
func (r *Runner) Queue() string { return r.cfg.Queue }

// AdvanceQueue is where it is told what happened; a batch worker with Advances has to
// consume it.
func (r *Runner) AdvanceQueue() string { return r.cfg.Queue + "-advance" }

func wrong(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	return e
}

func notFound(format string, args ...any) error {
	return forebay.Errorf(forebay.CodeNotFound, "", format, args...)
}

func conflict(format string, args ...any) error {
	return forebay.Errorf(forebay.CodeConflict, "", format, args...)
}

func missing(err error) bool { return forebay.CodeOf(err) == forebay.CodeNotFound }
