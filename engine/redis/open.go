package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/internal/leases"
)

// Config says where the data is. The zero value is a server on this machine.
type Config struct {
	URL     string        // redis://, rediss:// or unix://; empty: redis://127.0.0.1:6379
	Cluster bool          // the URL is of a node of a cluster
	Prefix  string        // BullMQ's; empty: bull. On a cluster it gets a hash tag unless it has one
	Name    string        // how BullMQ shows who works a job; empty: forebay
	History int           // events that the history keeps, about; 0: 1,000,000
	Timeout time.Duration // of one call, repeats included; 0: 5 s
	Listed  int           // queues of which BullMQ's getWorkers lists this engine, a connection each; 0: none. On a cluster: none
	Metrics int           // minutes that BullMQ's metrics are kept; 0: where Node workers keep them

	// Now is another clock than the server's, for tests.
	Now func() time.Time
}

// Engine is the engine on Redis.
type Engine struct {
	cfg      Config
	client   goredis.UniversalClient
	block    blocker          // of the one reader of markers, and that of the history
	ran      func()           // after each script, for tests; nil: nothing
	clock    func() time.Time // of scripts, for tests; nil: the server's
	instance string           // of this opening; tokens begin with it
	calls    atomic.Int64     // number of the last Receive
	epoch    string
	heard    atomic.Pointer[heard] // nil: nothing yet

	running sync.WaitGroup // calls, and what runs beside them
	closing chan struct{}
	mu      sync.Mutex // guards closed
	closed  bool

	sends   *combiner[sendItem, sendAnswer]
	settles *combiner[settleItem, settleAnswer]
	tally   tally
	held    leases.Held
	plain   plainQueues
	waits   *waits
	keeper  *keeper
	history *historyWaits
	listed  *listed
}

var (
	_ engine.Engine      = (*Engine)(nil)
	_ engine.DeadLetters = (*Engine)(nil)
	_ engine.DeadGroups  = (*Engine)(nil)
	_ engine.Locator     = (*Engine)(nil)
	_ engine.Limiter     = (*Engine)(nil)
	_ engine.Checker     = (*Engine)(nil)
	_ engine.Purger      = (*Engine)(nil)
	_ engine.Peeker      = (*Engine)(nil)
	_ engine.Jobs        = (*Engine)(nil)
	_ engine.History     = (*Engine)(nil)
	_ engine.Documents   = (*Engine)(nil)
)

// Open connects. It wants a server that answers and is new enough; what else may be
// wrong with it Audit tells.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	return open(ctx, cfg, nil)
}

// open is Open; change may alter the engine before it runs.
func open(ctx context.Context, cfg Config, change func(e *Engine)) (*Engine, error) {
	cfg.URL = cmp.Or(cfg.URL, "redis://127.0.0.1:6379")
	cfg.Prefix = cmp.Or(cfg.Prefix, "bull")
	cfg.Name = cmp.Or(cfg.Name, "forebay")
	cfg.History = cmp.Or(cfg.History, 1_000_000)
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	if strings.Contains(cfg.Prefix, ":") || cfg.History < 1 || cfg.Timeout < 0 || cfg.Metrics < 0 {
		return nil, fail(forebay.CodeInvalid, "the prefix %q, the history of %d, the timeout %v or the %d minutes of metrics are wrong; allowed are no colon, 1 or more, 0 or more, 0 or more", cfg.Prefix, cfg.History, cfg.Timeout, cfg.Metrics)
	}
	if cfg.Cluster && !strings.Contains(cfg.Prefix, "{") {
		cfg.Prefix = "{" + cfg.Prefix + "}"
	}
	e := &Engine{cfg: cfg, instance: strings.ToLower(rand.Text()[:10]), closing: make(chan struct{}), clock: cfg.Now}
	var err error
	if e.client, err = connect(cfg, 32); err != nil {
		return nil, err
	}
	if e.block, err = newBlocking(cfg); err != nil {
		return nil, err
	}
	e.sends = &combiner[sendItem, sendAnswer]{e: e, most: sendsAtOnce, do: e.sendScript}
	e.settles = &combiner[settleItem, settleAnswer]{e: e, most: settlesAtOnce, do: e.settleScript}
	if change != nil {
		change(e)
	}
	e.waits = newWaits(e)
	e.keeper = newKeeper(e)
	e.history = &historyWaits{e: e}
	e.listed = &listed{e: e}
	if cfg.Cluster {
		e.cfg.Listed = 0 // one node lists its own connections only
	}
	if err := e.greet(ctx); err != nil {
		_ = e.client.Close()
		_ = e.block.close()
		return nil, opening(err)
	}
	e.running.Go(e.keeper.run)
	return e, nil
}

func connect(cfg Config, pool int) (goredis.UniversalClient, error) {
	return connectAs(cfg, pool, "forebay")
}

// connectAs connects with a name that CLIENT LIST shows.
func connectAs(cfg Config, pool int, name string) (goredis.UniversalClient, error) {
	o, err := goredis.ParseURL(cfg.URL)
	if err != nil {
		var bad *url.Error // it repeats the address, which may hold a password
		if errors.As(err, &bad) {
			err = bad.Err
		}
		e := fail(forebay.CodeInvalid, "the address cannot be read: %v; redis://[user:password@]host[:port][/number] is allowed", err)
		e.Field = "url"
		return nil, e
	}
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if cfg.Cluster {
		return goredis.NewClusterClient(&goredis.ClusterOptions{
			Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, ClientName: name,
			MaxRetries: -1, DialTimeout: cfg.Timeout, ReadTimeout: cfg.Timeout, WriteTimeout: cfg.Timeout, PoolSize: pool,
			ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: quiet,
		}), nil
	}
	o.ClientName, o.PoolSize, o.ContextTimeoutEnabled, o.DisableIdentity = name, pool, true, true
	o.MaxRetries = -1 // what may have been done is not done again behind the caller's back
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = cfg.Timeout, cfg.Timeout, cfg.Timeout
	o.MaintNotificationsConfig = quiet
	if pool == 1 {
		o.ConnMaxIdleTime = -1 // a connection for its name, which is idle always
	}
	return goredis.NewClient(o), nil
}

// greet looks who answers, and finds or makes the epoch of the history.
func (e *Engine) greet(ctx context.Context) error {
	info, err := e.info(ctx, "server")
	if err != nil {
		return err
	}
	if v := info["redis_version"]; older(v, oldest) {
		return fail(forebay.CodeUnsupported, "the server is Redis %s; %s or later is needed", v, oldest)
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	key := e.global("epoch")
	if err := e.client.SetNX(ctx, key, strings.ToLower(rand.Text()[:12]), 0).Err(); err != nil {
		return e.fault(err)
	}
	if e.epoch, err = e.client.Get(ctx, key).Result(); err != nil {
		return e.fault(err)
	}
	return e.listen(ctx)
}

// global names a key of ours that belongs to no queue.
func (e *Engine) global(name string) string { return e.cfg.Prefix + "::fb:" + name }

// key names a key of a queue.
func (e *Engine) key(queue, name string) string { return e.cfg.Prefix + ":" + queue + ":" + name }

// enter begins a call, or says why not; leave ends it.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fail(forebay.CodeClosed, "the engine is closed")
	}
	e.running.Add(1)
	return nil
}

func (e *Engine) leave() { e.running.Done() }

// Close ends the leases that were not asked to be kept, as if their time had come.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.closing)
	e.mu.Unlock()
	_ = e.block.close() // ends the readers that block
	e.running.Wait()
	e.listed.close()
	err := e.endHeld()
	if closeErr := e.client.Close(); err == nil && closeErr != nil {
		err = e.fault(closeErr)
	}
	return err
}

// did tells that something may have been written.
func (e *Engine) did() {
	if e.ran != nil {
		e.ran()
	}
}
