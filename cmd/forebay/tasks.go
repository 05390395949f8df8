package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/catalog"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/images"
	"github.com/forebayhq/forebay/inbox"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/schedule"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/stream"
	"github.com/forebayhq/forebay/worker"
)

// taskParts is what belongs to jobs.
type taskParts struct {
	streams   *stream.Streams
	inbox     *inbox.Inbox
	storage   *storage.Store
	images    *images.Images
	scheduler *schedule.Scheduler
	flows     *runner.Runner
	known     flow.Known // of the handlers here
	catalog   *catalog.Catalog
}

// openTasks opens what belongs to jobs, and a worker for each queue with handlers.
func (s *server) openTasks() (err error) {
	s.streams, err = stream.New(stream.Config{Broker: s.broker, Watcher: s.broker.Watcher(), Logger: s.log.With("part", "streams")})
	if err != nil {
		return err
	}
	s.closing(func() error { s.streams.Close(); return nil })
	if s.inbox, err = inbox.New(inbox.Config{Documents: s.broker}); err != nil {
		return err
	}
	s.closing(func() error { s.inbox.Close(); return nil })
	if err := s.openStorage(); err != nil {
		return err
	}
	if s.scheduler, err = schedule.New(schedule.Config{Broker: s.broker, Logger: s.log.With("part", "schedules")}); err != nil {
		return err
	}
	if err := s.openFlows(); err != nil {
		return err
	}
	if err := s.openJobWorkers(); err != nil {
		return err
	}
	return s.loadFlows()
}

func (s *server) openStorage() (err error) {
	address := s.settings.Storage.URL
	if address == "" {
		address = s.path(filesFolder)
	}
	if s.storage, err = storage.Open(context.Background(), storage.Config{Address: address}); err != nil {
		return cannotStart(err)
	}
	s.closing(s.storage.Close)
	s.images, err = images.New(images.Config{
		Jobs: s.broker, Store: s.storage, Streams: s.streams,
		Queue: imageQueue, Kind: imageKind, MaxBytes: s.settings.Images.MaxBytes,
		Estimate: func(queue, kind string) (time.Duration, bool) {
			r := s.broker.Estimate(queue, kind)
			return r.Likely, r.Samples > 0
		},
		Logger: s.log.With("part", "images"),
	})
	return err
}

func (s *server) openJobWorkers() error {
	if !s.settings.Server.Has(config.RoleWorker) {
		return s.openCatalog(nil)
	}
	queues, err := s.openHandlers()
	if err != nil {
		return err
	}
	if err := s.openCatalog(queues.catalog()); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := s.settings.Queue(name)
		w, err := worker.New(s.broker, worker.Config{
			Queue:        name,
			Jobs:         s.tracing.Jobs(s.flows.Steps(queues[name])),
			Concurrency:  int(q.Concurrency),
			Auto:         autoOf(q),
			Lease:        q.Lease,
			DrainTimeout: s.settings.Server.Drain,
			Logger:       s.log.With("part", "worker"),
			Observe:      s.monitor.Worker(),
		})
		if err != nil {
			return err
		}
		s.workers = append(s.workers, w)
		s.watch(name, w)
		s.shown = append(s.shown, api.Worker{Queue: name, Handlers: queues[name].Kinds()})
	}
	s.known.Queues = knows(queues)
	return s.openFlowWorkers()
}

// openCatalog opens what handlers say of themselves.
func (s *server) openCatalog(own []catalog.Entry) (err error) {
	s.catalog, err = catalog.New(catalog.Config{Documents: s.broker, Own: own})
	if err != nil {
		return err
	}
	s.known.Data = func(queue, kind string, data []byte, unknown []string) []flow.Misfit {
		return s.catalog.Data(context.Background(), queue, kind, data, unknown) // which bounds what it asks
	}
	s.known.Result = func(queue, kind string) json.RawMessage {
		return s.catalog.Result(context.Background(), queue, kind)
	}
	return nil
}

// registerTasks puts the routes of what belongs to jobs on the mux.
func (s *server) registerTasks(mux *http.ServeMux) {
	s.images.Register(mux, s.api.Guard(keyring.ScopeAdmin, keyring.ScopeIngest))
	s.inbox.Register(mux, s.api.Guard(keyring.ScopeAdmin))
}

// work runs what works in the background until ctx ends. The watcher tells workers
// of jobs that are cancelled, so it outlives them.
func (s *server) work(ctx context.Context) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan error, 1)
	go func() { watched <- s.broker.Watcher().Run(watching) }()
	working, ctx := errgroup.WithContext(ctx)
	for _, w := range s.workers {
		working.Go(func() error { return w.Run(ctx) })
	}
	if s.settings.Server.Has(config.RoleAPI) {
		working.Go(func() error { return s.scheduler.Run(ctx) })
	}
	if s.settings.Server.Has(config.RoleWorker) {
		working.Go(func() error { return s.flows.Run(ctx) })
	}
	if s.alerts != nil {
		working.Go(func() error { return s.alerts.Run(ctx) })
	}
	for _, a := range s.adoptions() {
		working.Go(func() error { return a.Run(ctx) })
	}
	if s.shared != nil {
		working.Go(func() error { return s.shared.outbox.Run(ctx) })
	}
	if s.ledger != nil {
		working.Go(func() error { return s.ledger.Run(ctx) })
	}
	if s.sqs.service != nil {
		working.Go(func() error { return s.sqs.service.Run(ctx) })
	}
	if s.settings.Storage.MaxAge > 0 {
		working.Go(func() error { return s.cleanStorage(ctx) })
	}
	err := working.Wait()
	stop()
	if ended := <-watched; err == nil {
		err = ended
	}
	return err
}

// Cleaning of the storage: how often, and how many objects in one go.
const (
	cleanEvery = 10 * time.Minute
	cleanMost  = 10_000
)

// cleanStorage deletes uploads and results that are older than they may be.
func (s *server) cleanStorage(ctx context.Context) error {
	every := time.NewTicker(cleanEvery)
	defer every.Stop()
	for {
		n, err := s.storage.Clean(ctx, "", time.Now().Add(-s.settings.Storage.MaxAge), cleanMost)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("old objects could not be deleted", "error", err)
		} else if n > 0 {
			s.log.Info("old objects deleted", "objects", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// abort makes all workers end soon.
func (s *server) abort() {
	for _, w := range s.workers {
		w.Abort()
	}
}
