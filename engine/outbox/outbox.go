// Package outbox is an engine over two: a remote one that may be out of reach (AWS
// SQS), and a local one in front of it that is not.
//
// # What it promises
//
//   - Send goes to the remote engine. While that one is away or throttles, and for as
//     long as anything of the queue still waits here, messages go to the local engine,
//     durably, up to a budget. Run forwards them, oldest first and groups in order. A
//     message leaves the local engine after the remote one has taken it: it may be sent
//     twice, told by its id, and is never lost.
//   - A remote engine that hangs holds up a Send for SendTimeout, once. Then a circuit
//     is open: messages are taken locally, in the time of a local commit, and Run tries
//     the remote one again, later and later.
//   - What the remote engine refuses for good while it is forwarded becomes a local
//     dead letter of the queue that it was meant for. So does a message with the verdict Dead that the remote engine has no
//     place for. Their replay goes to the remote engine.
//
// # What it refuses
//
// To receive from the local engine: what waits there is not handed out before it was
// forwarded. To tell where a message is: nobody knows that of the remote one. To speak
// for a remote engine that is away: Receive and Settle give its errors, Stats what it told last.
package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Config of an outbox.
type Config struct {
	// Prefix begins the names of the local queues, which nobody else may use; that of
	// those with dead letters has dead- before it.
	// Empty: "outbox-".
	Prefix string

	// Own are queues that the local engine keeps nothing else of: their dead letters are
	// there by the same name. Whatever waits there is forwarded as a replay is.
	Own []string

	// Budget is the most bytes of messages that wait locally. 0: 4 GiB.
	Budget int64

	// SendTimeout is how long the remote engine may take for a Send. 0: 2 s.
	SendTimeout time.Duration

	// ForwardTimeout is the same for what Run forwards. 0: 30 s.
	ForwardTimeout time.Duration

	// Logger is told when the remote engine goes and comes. Nil: nobody is.
	Logger *slog.Logger
}

// Engine is both engines. Make one with New, and run its Run.
type Engine struct {
	remote engine.Engine
	local  engine.Engine
	cfg    Config
	log    *slog.Logger
	wake   chan struct{} // has room for one: something waits to be forwarded

	burying chan struct{} // a token: who has it may receive from the queues of the dead

	mu     sync.Mutex // guards those below
	queues map[string]*queue
	bytes  int64                         // that wait locally, about
	full   bool                          // a message was refused for that, and nothing has left since
	told   map[string]forebay.QueueStats // what the remote engine said last, by queue
	held   held
}

var (
	_ engine.Engine      = (*Engine)(nil)
	_ engine.Checker     = (*Engine)(nil)
	_ engine.Sizer       = (*Engine)(nil)
	_ engine.Purger      = (*Engine)(nil)
	_ engine.DeadLetters = (*Engine)(nil)
)

// New puts local in front of remote. Close closes the remote engine only: the local
// one is often used for other things too, and is closed by who opened it.
func New(remote, local engine.Engine, cfg Config) (*Engine, error) {
	if remote == nil || local == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "outbox", "a remote and a local engine are needed")
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "outbox-"
	}
	if err := engine.CheckQueue(cfg.Prefix + "q"); err != nil || len(cfg.Prefix) > maxPrefix {
		return nil, forebay.Errorf(forebay.CodeInvalid, "outbox", "the prefix %q does not begin the name of a queue; up to %d of A-Z a-z 0-9 - _ are allowed", cfg.Prefix, maxPrefix)
	}
	if cfg.Budget == 0 {
		cfg.Budget = 4 << 30
	}
	if cfg.SendTimeout == 0 {
		cfg.SendTimeout = 2 * time.Second
	}
	if cfg.ForwardTimeout == 0 {
		cfg.ForwardTimeout = 30 * time.Second
	}
	if cfg.Budget < 0 || cfg.SendTimeout < 0 || cfg.ForwardTimeout < 0 {
		return nil, forebay.Errorf(forebay.CodeInvalid, "outbox", "a budget or a timeout is below 0; 0 means the default")
	}
	e := &Engine{
		remote: remote, local: local, cfg: cfg, log: cfg.Logger, wake: make(chan struct{}, 1),
		burying: make(chan struct{}, 1), queues: make(map[string]*queue), told: make(map[string]forebay.QueueStats), held: newHeld(),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	return e, nil
}

// Unwrap gives the remote engine, whose other abilities are found through it.
func (e *Engine) Unwrap() engine.Engine { return e.remote }

const maxPrefix = 20

// deadMark stands before the prefix in the names of the local queues of dead letters.
const deadMark = "dead-"

// localName is where messages of a remote queue wait. A name that becomes too long is
// cut, and told from others by a hash.
func (e *Engine) localName(queue string, dead bool) (name string, cut bool) {
	name = e.cfg.Prefix + queue
	if dead && slices.Contains(e.cfg.Own, queue) {
		return queue, false
	}
	if dead {
		name = deadMark + e.cfg.Prefix + queue
	}
	if len(name) <= forebay.MaxQueueBytes {
		return name, false
	}
	sum := sha256.Sum256([]byte(queue))
	stem := strings.TrimSuffix(name, ".fifo")
	return stem[:forebay.MaxQueueBytes-17] + "-" + hex.EncodeToString(sum[:8]), true
}

// headQueue is the header that says for which queue a message is whose local queue has
// a name that was cut.
const headQueue = "forebay-outbox-queue"

// remoteName is the queue that a message of the local engine is for.
func (e *Engine) remoteName(m *forebay.Message) string {
	if name := m.Headers[headQueue]; name != "" {
		return name
	}
	name, _ := e.ours(m.Queue)
	return name
}

// ours tells whether a local queue is of this outbox, and for which remote queue, as
// far as its name was not cut.
func (e *Engine) ours(local string) (name string, yes bool) {
	if slices.Contains(e.cfg.Own, local) {
		return local, true
	}
	return strings.CutPrefix(strings.TrimPrefix(local, deadMark), e.cfg.Prefix)
}

// Receive leases messages of the remote engine.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	ds, err := e.remote.Receive(ctx, r)
	if len(ds) > 0 && !e.keepsDead() {
		e.mu.Lock()
		e.held.add(ds, time.Now())
		e.mu.Unlock()
	}
	return ds, err
}

// Extend extends leases of the remote engine.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	errs, err := e.remote.Extend(ctx, receipts, lease)
	if err == nil {
		e.mu.Lock()
		e.held.extend(receipts, errs, time.Now().Add(lease))
		e.mu.Unlock()
	}
	return errs, err
}

// Close closes the remote engine. Run has to have ended.
func (e *Engine) Close() error { return e.remote.Close() }

// keepsDead tells whether the remote engine has dead letters of its own to show.
func (e *Engine) keepsDead() bool {
	_, ok := engine.As[engine.DeadLetters](e.remote)
	return ok
}
