package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/audit"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/ledger"
	"github.com/forebayhq/forebay/engine/postgres"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/internal/front"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/monitor/alert"
	"github.com/forebayhq/forebay/monitor/trace"
	"github.com/forebayhq/forebay/worker"
)

// server is everything that `forebay serve` runs.
type server struct {
	settings *config.Settings
	log      *slog.Logger
	file     serverFile

	sockets  map[string]net.Listener // of systemd, by name
	listener net.Listener
	http     *front.Front
	leaving  leaving
	api      *api.API
	receipts *api.Receipts        // of pushes and of the API
	workers  []*worker.Worker     // of events and of jobs
	shown    []api.Worker         // what they work on
	tuned    map[string]api.Tuned // how many of them work at once, by queue

	ring   *keyring.Ring
	bad    *badrow.Store
	local  engine.Engine // the queue of this server
	broker *broker.Broker
	sink   sink // nil: neither written nor looked at here
	sqs    sqsParts
	shared *shared          // what events go through between servers; nil: the local queue
	redis  *redis.Engine    // what jobs are on; nil: the local queue
	pg     *postgres.Engine // or this
	ledger *ledger.Engine   // what some queues of jobs run over; nil: none does
	sealed sealedStores     // stores with seals in front of them

	taskParts

	monitor *monitor.Monitor
	alerts  *alert.Alerts // nil: nobody is alerted
	audit   *audit.Log
	tracing *trace.Tracer // nil: nothing is traced
	certs   *certificates // nil: plain HTTP

	closers []func() error // in the order of opening
}

func (s *server) path(name string) string { return filepath.Join(s.settings.Data.Dir, name) }

func (s *server) closing(f func() error) { s.closers = append(s.closers, f) }

// close closes the parts, the last one opened first.
func (s *server) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// openServer opens all parts or none. The port comes first and the queue second,
// since these two can belong to another process; nothing is written before both
// are ours.
func openServer(settings *config.Settings, log *slog.Logger) (_ *server, err error) {
	s := &server{settings: settings, log: log, receipts: api.NewReceipts()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	steps := []func() error{s.takeSockets, s.openOperations, s.openPort, s.openSQSPort, s.openQueue, s.openSQSAPI, s.openStores, s.openSink, s.openWorker, s.openTasks, s.openAlerts, s.openHTTP}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *server) openPort() error {
	keys, err := hasKeys(s.path(keysFile))
	if err != nil {
		return cannotStart(err)
	}
	s.listener, err = s.httpListener(keys)
	if err != nil {
		return err
	}
	s.file = newServerFile(s.listener.Addr(), time.Now())
	s.closing(func() error { return closed(s.listener.Close()) })
	return nil
}

// hasKeys tells whether a live key exists, without opening the ring for good.
func hasKeys(path string) (bool, error) {
	if _, err := os.Stat(path); err != nil {
		return false, nil // none; if the folder cannot be used, that is found out next
	}
	ring, err := keyring.Open(path, keyring.Config{})
	if err != nil {
		return false, err
	}
	return ring.Required(), ring.Close()
}

func (s *server) openQueue() error {
	local, err := openLocal(s.settings, s.log)
	if err != nil {
		return err
	}
	if s.local, err = s.seal(dataFolder, local, false); err != nil {
		return errors.Join(err, local.Close())
	}
	all, err := s.openEngines()
	if err != nil {
		return errors.Join(err, local.Close())
	}
	alerts := broker.Alerts{
		Queue:  broker.AlertQueue,
		Growth: broker.Growth{Count: int(s.settings.Alerts.Growth), Window: s.settings.Alerts.GrowthWindow},
	}
	if !s.settings.Alerts.Enabled {
		alerts = broker.Alerts{}
	}
	s.broker, err = broker.New(all, broker.Config{
		Alerts: alerts,
		Policy: policy(s.settings.Queue(config.DefaultQueue)),
		Queues: policies(s.settings),
	})
	if err != nil {
		return errors.Join(usage(err), all.Close())
	}
	s.closing(s.broker.Close)
	return nil
}

// openLocal opens the embedded engine in the data folder.
func openLocal(c *config.Settings, log *slog.Logger) (*sqlite.Engine, error) {
	if err := makeFolder(c.Data.Dir); err != nil {
		return nil, err
	}
	durability := sqlite.DurabilityFull
	if c.Data.Durability == "process" {
		durability = sqlite.DurabilityProcess
	}
	e, err := sqlite.Open(sqlite.Config{
		HistoryAge:     c.History.MaxAge,
		HistoryMax:     c.History.MaxRows,
		Log:            logConfig(c),
		Path:           filepath.Join(c.Data.Dir, queueFile),
		Durability:     durability,
		DedupRetention: c.Ingest.DedupWindow,
		Logger:         log.With("part", "queue"),
	})
	if err != nil {
		return nil, cannotStart(err)
	}
	return e, nil
}

// logConfig says which queues keep what was sent. What the outbox keeps is on its way, and
// what runs tell themselves is in the history of their jobs.
func logConfig(s *config.Settings) sqlite.LogConfig {
	c := sqlite.LogConfig{
		Age: s.Queue(config.DefaultQueue).HistoryAge, MaxBytes: s.History.MaxBytes, KeepFree: s.Data.Reserve * 5 / 4,
		Ages: map[string]time.Duration{outboxPrefix + event.Queue: 0, advanceQueue: 0},
	}
	for name, q := range s.Queues {
		if name != config.DefaultQueue {
			c.Ages[name] = q.HistoryAge
		}
	}
	return c
}

func policies(s *config.Settings) map[string]broker.Policy {
	all := make(map[string]broker.Policy, len(s.Queues))
	for name, q := range s.Queues {
		if name != config.DefaultQueue || q.DeadMost > 0 {
			all[name] = policy(q)
		}
	}
	return all
}

func policy(q config.Queue) broker.Policy {
	return broker.Policy{
		Attempts: int(q.Attempts), Deliveries: int(q.Deliveries), Base: q.Backoff, Cap: q.BackoffMax, Timeout: q.Timeout,
		DeadMost: int(q.DeadMost),
		Keep:     forebay.Retention{Finished: forebay.Keep{Age: q.KeepAge, Count: int(q.KeepCount), None: q.KeepAge == 0}},
	}
}

func (s *server) openStores() (err error) {
	s.ring, err = keyring.Open(s.path(keysFile), keyring.Config{Logger: s.log.With("part", "keys")})
	if err != nil {
		return cannotStart(err)
	}
	s.closing(s.ring.Close)
	if s.audit, err = audit.Open(s.path(auditFile), audit.Config{}); err != nil {
		return cannotStart(err)
	}
	s.closing(s.audit.Close)
	s.bad, err = badrow.Open(s.path(badFile), badrow.Config{
		MaxRows:  s.settings.Bad.MaxRows,
		MaxBytes: s.settings.Bad.MaxBytes,
		MaxAge:   s.settings.Bad.MaxAge,
		Logger:   s.log.With("part", "bad rows"),
		Seal:     s.box(),
	})
	if err != nil {
		return cannotStart(err)
	}
	s.closing(s.bad.Close)
	s.monitor, err = monitor.New(s.monitorConfig())
	if err == nil && s.shared != nil {
		err = s.monitor.Add(sqsSeries{s.shared})
	}
	return err
}

// writers is how many batches are written side by side. A SQLite file takes one.
func (s *server) writers() int {
	if s.settings.Sink.URL == "" {
		return 1
	}
	return int(s.settings.Sink.Connections)
}

func (s *server) openWorker() (err error) {
	if !s.settings.Server.Has(config.RoleWorker) {
		return nil
	}
	c := s.settings.Sink
	w, err := worker.New(s.broker, worker.Config{
		Queue:        event.Queue,
		Batch:        s.tracing.Batch(event.Queue, s.sink),
		Concurrency:  s.writers(),
		Auto:         s.autoWriters(),
		BatchMax:     int(c.BatchMax),
		BatchBytes:   int(c.BatchBytes),
		BatchWait:    c.BatchAge,
		Lease:        s.settings.Queue(event.Queue).Lease,
		DrainTimeout: s.settings.Server.Drain,
		Logger:       s.log.With("part", "worker"),
		Observe:      s.monitor.Worker(),
	})
	if err != nil {
		return err
	}
	s.workers = append(s.workers, w)
	s.watch(event.Queue, w)
	s.shown = append(s.shown, api.Worker{Queue: event.Queue, Handlers: []string{"*"}, Batch: true})
	return nil
}

func (s *server) openHTTP() error {
	edge, err := s.newEdge()
	if err != nil {
		return usage(err)
	}
	mux := http.NewServeMux()
	if s.settings.Server.Has(config.RoleIngest) {
		edge.Register(mux)
	}
	s.api, err = api.New(api.Config{
		Broker: s.broker, Ring: s.ring, Bad: s.bad,
		Edge:      edge,
		Monitor:   s.monitor,
		Streams:   s.streams,
		Schedules: s.scheduler,
		Flows:     s.flows,
		Known:     s.known,
		Catalog:   s.catalog,
		Receipts:  s.receipts,

		AccessKeys: s.accessKeys(),
		Redrivers:  s.redrivers(),
		Workers:    s.shown,
		Tuned:      s.tuned,
		Alerts:     s.alertRules(),
		Encryption: s.encryption(),
		Audit:      s.audit,
		Queues:     s.namedQueues(),
		Replayable: s.replayable,
		Sink:       s.finder(),
		Checks:     s.checks(edge),
		Token:      s.file.Token,
		TLS:        s.certs != nil,
		Mask:       s.settings.Mask,
		Loopback:   isLoopback(s.listener.Addr().String()),
		Version:    built().Version,
		Logger:     s.log.With("part", "api"),
	})
	if err != nil {
		return err
	}
	s.api.RegisterHealth(mux)
	if s.settings.Server.Has(config.RoleAPI) {
		s.api.Register(mux)
		s.registerTasks(mux)
	}
	s.registerConsole(mux)
	server := &http.Server{
		Handler:           s.leaving.wrap(s.traced(mux)),
		ReadHeaderTimeout: ingest.ReadHeaderTimeout,
		ReadTimeout:       ingest.ReadTimeout,
		WriteTimeout:      ingest.WriteTimeout,
		IdleTimeout:       ingest.IdleTimeout,
		MaxHeaderBytes:    ingest.MaxHeaderBytes,
		ErrorLog:          log.New(httpLog{s.log.With("part", "http")}, "", 0),
	}
	server.RegisterOnShutdown(s.streams.Close)
	server.RegisterOnShutdown(s.inbox.Close)
	s.http = newFront(server, mux, func(h http.Handler) http.Handler { return s.leaving.wrap(s.tracing.HTTP(h)) })
	if err := s.file.write(s.settings.Data.Dir); err != nil {
		return folderError(s.settings.Data.Dir, err)
	}
	s.closing(func() error { return s.file.remove(s.settings.Data.Dir) })
	return nil
}

func (s *server) newEdge() (*ingest.Edge, error) {
	c := s.settings.Ingest
	var schemas *ingest.Schemas
	if c.Schemas != "" {
		var err error
		if schemas, err = ingest.LoadSchemas(c.Schemas, ingest.Mode(c.SchemaMode)); err != nil {
			return nil, err
		}
	}
	reserve := s.settings.Data.Reserve
	if reserve == 0 {
		reserve = -1 // do not look
	}
	return ingest.New(ingest.Config{
		Schemas:  schemas,
		Observer: s.monitor.Edge(),

		Sender: s.broker,
		Bad:    s.bad,
		Keys:   s.ring,
		Load:   s.edgeLoad(),
		Limits: ingest.Limits{
			WireBytes: c.MaxBody, DecodedBytes: c.MaxDecoded, Events: int(c.MaxBatch),
			EventBytes: int(c.MaxEvent), InFlightBytes: c.MaxInflight,
		},
		Admission: ingest.Admission{MinFreeBytes: reserve, MaxBacklog: c.MaxBacklog},
		Logger:    s.log.With("part", "edge"),
	})
}

func (s *server) checks(edge *ingest.Edge) []api.Check {
	all := []api.Check{
		{Name: "queue", Run: s.checkEvents},
		{Name: "admission", Run: edge.Check}, // disk and backlog, as each request meets them
		{Name: "history", Run: func(context.Context) error { return s.broker.Watcher().Err() }, Optional: true},
	}
	if s.sink != nil {
		all = append(all, api.Check{Name: "sink", Run: s.checkSink, Optional: true})
	}
	if s.redis != nil { // while it is away, events are taken all the same
		all = append(all, api.Check{Name: "redis", Run: s.redis.Check, Optional: s.settings.Server.Has(config.RoleIngest)})
	}
	if s.pg != nil {
		all = append(all, api.Check{Name: "postgres", Run: s.pg.Check, Optional: s.settings.Server.Has(config.RoleIngest)})
	}
	if s.shared != nil {
		all = append(all, api.Check{Name: "shared queue", Run: s.shared.check, Optional: true})
	}
	if len(s.sealed) > 0 {
		all = append(all, api.Check{Name: "encryption", Run: s.sealed.check, Optional: true})
	}
	if s.ledger != nil {
		all = append(all, api.Check{Name: "jobs over sqs", Run: s.checkJobsQueues, Optional: true})
	}
	return all
}

// checkSink tells what the sink has met, without asking the database: readiness is
// asked often and must not hang with it.
func (s *server) checkSink(context.Context) error {
	if state := s.sink.State(); state.Paused {
		return forebay.Errorf(forebay.CodeUnavailable, "", "paused since %s: %s", state.Since.UTC().Format(time.RFC3339), state.Reason)
	}
	return nil
}
