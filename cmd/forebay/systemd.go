package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// The listeners that systemd may hold for the server, by FileDescriptorName= in the
// socket units.
const (
	httpSocket = "http"
	sqsSocket  = "sqs"
)

// takeSockets takes the listeners that systemd has opened for this process. They outlive
// it: what connects between two servers waits in the kernel for the next one.
func (s *server) takeSockets() error {
	found, err := activation.ListenersWithNames()
	if err != nil {
		return cannotStart(err)
	}
	s.sockets = map[string]net.Listener{}
	for name, all := range found {
		l := all[0]
		for _, one := range all {
			if one != nil {
				s.closing(func() error { return closed(one.Close()) })
			}
		}
		_, tcp := l.(*net.TCPListener)
		if !slices.Contains([]string{httpSocket, sqsSocket}, name) || len(all) != 1 || !tcp {
			e := forebay.Errorf(forebay.CodeInvalid, "socket "+name, "cannot be used: allowed are one TCP socket named %s and one named %s", httpSocket, sqsSocket)
			e.Hint = "say FileDescriptorName=" + httpSocket + " in the socket unit, with one ListenStream="
			return usage(e)
		}
		s.sockets[name] = l
	}
	return nil
}

// socket is the listener of systemd with this name; nil: there is none. One that others
// can reach needs a key, as a port of our own does.
func (s *server) socket(name string, open bool, hint string) (net.Listener, error) {
	l := s.sockets[name]
	if l == nil || open || isLoopback(l.Addr().String()) {
		return l, nil
	}
	e := forebay.Errorf(forebay.CodeUnauthorized, "socket "+name+" "+l.Addr().String(), "this address can be reached from elsewhere, and no key exists")
	e.Hint = hint
	return nil, cannotStart(e)
}

// httpListener is the port of the server: that of systemd, else its own.
func (s *server) httpListener(keys bool) (net.Listener, error) {
	const hint = "add a key first (forebay keys add NAME), let the socket unit listen on 127.0.0.1, or say --insecure"
	l, err := s.socket(httpSocket, keys || s.settings.Server.Insecure, hint)
	if l != nil || err != nil {
		return l, err
	}
	return listen(s.settings, keys)
}

// notify tells systemd how far this process is. Without systemd it does nothing.
func (s *server) notify(lines ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		s.log.Warn("systemd could not be told", "state", lines[0], "error", err)
	}
}

// watchdog tells systemd that this process lives, as often as the unit's WatchdogSec=
// wants, for as long as the queue answers: whatever it answers. A process whose queue is
// stuck tells nothing more, and is restarted by systemd.
func (s *server) watchdog(ctx context.Context) {
	most, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("the watchdog of systemd is not understood", "error", err)
	}
	if err != nil || most == 0 {
		return
	}
	every := time.NewTicker(most / 3)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		asking, cancel := context.WithTimeout(ctx, most/3)
		_, err := s.local.Stats(asking, config.DefaultQueue)
		late := err != nil && asking.Err() != nil
		cancel()
		if !late {
			s.notify(daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			s.log.Error("the queue does not answer", "for", most/3)
		}
	}
}
