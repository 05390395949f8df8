package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
)

type serveCmd struct {
	settingsFlags `embed:""`
}

func (serveCmd) Help() string {
	return `Examples:
  forebay serve
  DATABASE_URL=postgres://app:secret@db/shop forebay serve --data /var/lib/forebay
  PORT=9000 forebay serve --config forebay.yaml --set sink.batchAge=250ms

SIGTERM stops it in order: /readyz answers 503, the port closes, requests and
batches finish, what was not begun waits for the next start. A second one hurries.`
}

func (c *serveCmd) Run(p *program) error {
	settings, err := c.load(p)
	if err != nil {
		return err
	}
	errFile, _ := p.err.(*os.File)
	terminal := errFile != nil && term.IsTerminal(int(errFile.Fd()))
	log := newLogger(p.err, settings.Log, terminal)
	signals := make(chan os.Signal, 2) // one to stop, one to hurry
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	s, err := openServer(settings, log)
	if err != nil {
		return err
	}
	if terminal {
		s.banner(p)
	}
	defer runtime.KeepAlive(headroom())
	log.Info("serving", "url", s.file.URL, "sqs", s.sqsURL(), "sqsUnsigned", s.sqsUnsigned(), "sink", s.sinkName(), "data", settings.Data.Dir,
		"durability", settings.Data.Durability, "version", built().Version)
	return s.run(signals)
}

// A server stops in steps. What a step does not finish in its time, the next one
// cuts off; nothing that was answered with 202 is lost by that.
//
//  1. A signal, or a part that failed: /readyz answers 503. For server.grace new
//     requests are still taken, so that load balancers can look elsewhere; their
//     answers close the connections that clients keep.
//  2. The port closes. Running requests finish and workers drain, side by side, for
//     at most server.drain.
//  3. A second signal, or the end of that time: connections are cut, handlers are
//     cancelled; what they held is released and comes again after the next start.
//  4. The parts close, in the opposite order of their opening; server.json goes.
func (s *server) run(signals <-chan os.Signal) error {
	working, stopWorking := context.WithCancel(context.Background())
	defer stopWorking()
	var running sync.WaitGroup
	ended := make(chan error, 2)
	running.Go(func() { ended <- s.serveHTTP() })
	running.Go(func() { ended <- s.work(working) })
	running.Go(func() { s.watchdog(working) })
	s.notify(daemon.SdNotifyReady, "STATUS=serving at "+s.file.URL)

	first := s.await(signals, ended)
	s.notify(daemon.SdNotifyStopping)
	hurried, hurry := context.WithCancel(context.Background())
	running.Go(func() {
		select {
		case sig := <-signals:
			s.log.Warn("hurrying", "signal", sig.String())
			s.abort()
			hurry()
		case <-hurried.Done():
		}
	})
	s.api.Drain()
	s.leaving.now.Store(true)
	if first == nil {
		pause(hurried, s.settings.Server.Grace)
	}
	stopWorking()
	errHTTP := s.closeHTTP(hurried)
	second := <-ended
	if first == nil {
		first = <-ended
	}
	hurry()
	running.Wait()
	if err := errors.Join(first, second, errHTTP, s.close()); err != nil {
		return err
	}
	s.log.Info("stopped")
	return nil
}

// await returns when it is time to stop: nil upon a signal, else the error of the
// part that ended by itself.
func (s *server) await(signals <-chan os.Signal, ended <-chan error) error {
	select {
	case sig := <-signals:
		s.log.Info("stopping", "signal", sig.String())
		return nil
	case err := <-ended:
		if err == nil {
			err = errors.New("a part of the server ended by itself")
		}
		s.log.Error("stopping", "error", err)
		return err
	}
}

// serveHTTP answers requests, also those of SQS clients, until both servers are closed.
func (s *server) serveHTTP() error {
	var both errgroup.Group
	both.Go(func() error { return s.serveOne(s.http, s.listener) })
	if s.sqs.http != nil {
		both.Go(func() error { return s.serveOne(s.sqs.http, s.sqs.listener) })
	}
	return both.Wait()
}

// serveOne serves until it is closed. If it fails before, it takes the other with it.
func (s *server) serveOne(h webServer, l net.Listener) error {
	err := h.Serve(s.certs.over(l))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	for _, one := range s.httpServers() {
		err = errors.Join(err, one.Close())
	}
	return err
}

func (s *server) httpServers() []webServer {
	if s.sqs.http == nil {
		return []webServer{s.http}
	}
	return []webServer{s.http, s.sqs.http}
}

// closeHTTP closes the ports and lets requests finish, until the time is up.
func (s *server) closeHTTP(hurried context.Context) error {
	ctx, cancel := context.WithTimeout(hurried, s.settings.Server.Drain)
	defer cancel()
	var all errgroup.Group
	for _, one := range s.httpServers() {
		all.Go(func() error {
			err := one.Shutdown(ctx)
			if err != nil {
				s.log.Warn("requests were cut off", "reason", err)
				err = one.Close()
			}
			return err
		})
	}
	return all.Wait()
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
