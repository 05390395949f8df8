package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// sqsParts is the endpoint that speaks SQS; its fields are nil where it is off.
type sqsParts struct {
	listener net.Listener
	keys     *sign.Keys
	service  *queue.Service
	front    *sqsapi.Front
	http     *http.Server
}

// openSQSPort opens the port of the endpoint. The default gives way when somebody else
// has it: a second server on a machine is no mistake. An address that was asked for does not.
func (s *server) openSQSPort() error {
	addr := s.settings.SQSAPI.Listen
	if addr == config.Off {
		return nil
	}
	if !s.settings.Server.Has(config.RoleAPI) {
		if s.settings.Given("sqsApi.listen") {
			s.log.Warn("SQS is not spoken: it belongs to the role api, which this server has not", "address", addr)
		}
		return nil
	}
	live, err := hasAccessKeys(s.path(accessKeysFile))
	if err != nil {
		return cannotStart(err)
	}
	if l, err := s.socket(sqsSocket, live, "add an access key first (forebay sqs keys add NAME)"); l != nil || err != nil {
		s.sqs.listener = l
		return err
	}
	if _, _, err := net.SplitHostPort(addr); err != nil { // a port alone
		host := "127.0.0.1"
		if live {
			host = ""
		}
		addr = net.JoinHostPort(host, addr)
	}
	if !live && !isLoopback(addr) {
		e := forebay.Errorf(forebay.CodeUnauthorized, "listen "+addr, "this address can be reached from elsewhere, and no access key exists")
		e.Hint = "add one first (forebay sqs keys add NAME), or listen on 127.0.0.1"
		return cannotStart(e)
	}
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && !s.settings.Given("sqsApi.listen"):
		s.log.Warn("SQS is not spoken: another program has the port", "address", addr, "hint", "--sqs-listen ADDR names another, or off")
		return nil
	case err != nil:
		e := forebay.Errorf(forebay.CodeUnavailable, "listen "+addr, "%w", reasonOf(err))
		e.Hint = "name another address for the SQS endpoint: --sqs-listen 127.0.0.1:0 takes any free port, off none"
		return cannotStart(e)
	}
	s.sqs.listener = l
	s.closing(func() error { return closed(l.Close()) })
	return nil
}

// hasAccessKeys tells whether a live access key exists. If the folder cannot be used,
// that is found out next.
func hasAccessKeys(path string) (bool, error) {
	if _, err := os.Stat(path); err != nil {
		return false, nil
	}
	keys, err := sign.Open(path, sign.Config{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(keys.List(), func(k sign.Key) bool { return k.Live() }), nil
}

// openSQSAPI opens the endpoint on the queues of this server.
func (s *server) openSQSAPI() (err error) {
	if s.sqs.listener == nil {
		return nil
	}
	c := s.settings.SQSAPI
	if s.sqs.keys, err = sign.Open(s.path(accessKeysFile), sign.Config{}); err != nil {
		return cannotStart(err)
	}
	s.sqs.service, err = queue.New(queue.Config{
		Engine: s.local, Account: c.Account, Region: c.Region, Wide: c.Limits == "wide", Logger: s.log.With("part", "sqs"),
	})
	if err != nil {
		return cannotStart(err)
	}
	s.sqs.front, err = sqsapi.New(sqsapi.Config{
		Service: s.sqs.service, Keys: s.sqs.keys, Unsigned: true, Account: c.Account, PublicURL: c.PublicURL,
		Logger: s.log.With("part", "sqs"),
	})
	if err != nil {
		return usage(err)
	}
	if err := s.declareSQSQueues(); err != nil {
		return err
	}
	s.sqs.http = &http.Server{
		Handler:           s.sqs.front,
		ReadHeaderTimeout: ingest.ReadHeaderTimeout,
		IdleTimeout:       ingest.IdleTimeout, // bodies and answers have deadlines of their own
		MaxHeaderBytes:    ingest.MaxHeaderBytes,
		ErrorLog:          log.New(httpLog{s.log.With("part", "sqs")}, "", 0),
	}
	s.sqs.http.RegisterOnShutdown(s.sqs.front.Close)
	return nil
}

// declareTimeout bounds the making of the queues that the settings name.
const declareTimeout = 30 * time.Second

// declareSQSQueues makes the queues of the settings file; one that is there gets the
// attributes that stand there. What cannot be changed is a mistake in the file. Redrive
// policies come last, since they name other queues.
func (s *server) declareSQSQueues() error {
	ctx, cancel := context.WithTimeout(context.Background(), declareTimeout)
	defer cancel()
	names := slices.Sorted(maps.Keys(s.settings.SQSQueues))
	for _, last := range []bool{false, true} {
		for _, name := range names {
			attributes, err := s.settings.SQSQueues[name].AttributeMap()
			if err == nil {
				err = s.declareSQSQueue(ctx, name, attributes, last)
			}
			if err != nil {
				return usage(fmt.Errorf("sqsQueues.%s: %w", name, err))
			}
		}
	}
	return nil
}

// declareSQSQueue makes a queue, or sets its redrive policy.
func (s *server) declareSQSQueue(ctx context.Context, name string, attributes map[string]string, redrive bool) error {
	const policy, fifo = "RedrivePolicy", "FifoQueue"
	if attributes[fifo] == "true" {
		name += ".fifo"
	}
	change := maps.Clone(attributes)
	maps.DeleteFunc(change, func(k, _ string) bool { return (k == policy) != redrive })
	if !redrive {
		_, err := s.sqs.service.CreateQueue(ctx, queue.CreateQueueInput{QueueName: name, Attributes: change})
		var f *queue.Fault
		if !errors.As(err, &f) || f.Shape != "QueueNameExists" {
			return err
		}
		delete(change, fifo) // is as the name says
	}
	if len(change) == 0 {
		return nil
	}
	return s.sqs.service.SetQueueAttributes(ctx, queue.SetAttributesInput{QueueUrl: name, Attributes: change})
}

// sqsURL is where clients on this machine reach the endpoint; empty: it is off.
func (s *server) sqsURL() string {
	if s.sqs.listener == nil {
		return ""
	}
	return localURL(s.sqs.listener.Addr())
}

// sqsUnsigned tells whether the endpoint lets programs of this machine in unsigned.
func (s *server) sqsUnsigned() bool { return s.sqs.keys != nil && s.sqs.keys.Empty() }
