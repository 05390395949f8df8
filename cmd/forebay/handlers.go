package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/catalog"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/task/exec"
	"github.com/forebayhq/forebay/task/image"
	"github.com/forebayhq/forebay/task/notify"
	"github.com/forebayhq/forebay/task/push"
	"github.com/forebayhq/forebay/task/report"
	"github.com/forebayhq/forebay/worker"
)

// The queues of the handlers that come with the program. Alerts have theirs in
// package broker, and actions on many jobs in package api.
const (
	imageQueue  = "images"
	imageKind   = "image"
	reportQueue = "reports"
)

// muxes are the handlers by queue.
type muxes map[string]*task.Mux

func (m muxes) of(queue string) *task.Mux {
	if m[queue] == nil {
		m[queue] = &task.Mux{}
	}
	return m[queue]
}

// openHandlers makes all handlers: those that come with the program, and those
// that the settings name.
func (s *server) openHandlers() (muxes, error) {
	all := muxes{}
	all.of(api.BulkQueue).Handle(api.BulkKind, api.BulkHandler(s.broker))
	all.of(api.BulkQueue).Handle(api.DeadKind, api.DeadHandler(s.broker))
	all.of(history.Queue).Handle(history.Kind, s.replayer())
	secret, err := s.webhookSecret()
	if err != nil {
		return nil, err
	}
	if err := s.openImages(all); err != nil {
		return nil, err
	}
	if err := s.openNotify(all, secret); err != nil {
		return nil, usage(err)
	}
	if err := s.openReports(all); err != nil {
		return nil, usage(err)
	}
	for kind, h := range s.settings.Handlers {
		handler, err := s.userHandler(h, secret)
		if err != nil {
			return nil, usage(err)
		}
		all.of(h.Queue).Handle(kind, handler)
		about, err := aboutOf(kind, h)
		if err != nil {
			return nil, usage(err)
		}
		all.of(h.Queue).Describe(kind, about)
	}
	return all, nil
}

// aboutOf reads what the settings say of a handler.
func aboutOf(kind string, h config.Handler) (task.About, error) {
	a := task.About{Title: h.Title, Description: h.Description}
	for field, one := range map[string]struct {
		file string
		to   *jsontext.Value
	}{"schema": {h.Schema, &a.Data}, "result": {h.Result, &a.Result}} {
		if one.file == "" {
			continue
		}
		raw, err := os.ReadFile(one.file)
		if err == nil {
			_, err = catalog.New(catalog.Config{Own: []catalog.Entry{{Queue: h.Queue, Kind: kind, Data: raw}}})
		}
		if err != nil {
			return a, fmt.Errorf("handlers.%s.%s: %s: %w", kind, field, one.file, err)
		}
		*one.to = raw
	}
	return a, nil
}

// catalog is what all handlers of this process say of themselves.
func (m muxes) catalog() (all []catalog.Entry) {
	for queue, mux := range m {
		for _, kind := range mux.Kinds() {
			if kind == task.Any {
				continue
			}
			a := mux.About(kind)
			all = append(all, catalog.Entry{Queue: queue, Kind: kind, Title: a.Title, Description: a.Description, Data: []byte(a.Data), Result: []byte(a.Result)})
		}
	}
	return all
}

func (s *server) openImages(all muxes) error {
	child, err := image.Executable(imageChild)
	if err != nil {
		return err
	}
	c := s.settings.Images
	cfg := image.Config{Store: s.storage, Child: child, MaxBytes: c.MaxBytes, MaxPixels: c.MaxPixels}
	if c.Backend != "auto" {
		cfg.Backend = c.Backend
	}
	if c.WarmURL != "" {
		cfg.Warm = []string{c.WarmURL}
	}
	handler, err := image.New(context.Background(), cfg)
	if err != nil {
		return cannotStart(err)
	}
	s.closing(func() error { handler.Close(); return nil })
	all.of(imageQueue).Handle(imageKind, handler)
	all.of(imageQueue).Describe(imageKind, task.About{Title: "Work on a picture", Description: "Resizes, marks, compresses and converts it.", Data: []byte(image.DataSchema)})
	return nil
}

func (s *server) openNotify(all muxes, secret string) error {
	reach := push.Public
	if s.settings.Webhooks.Private {
		reach = push.Private
	}
	named, err := push.NewClient(push.ClientConfig{Secrets: []string{secret}, Reach: reach})
	if err != nil {
		return err
	}
	configured, err := push.NewClient(push.ClientConfig{Secrets: []string{secret}, Reach: push.Anywhere})
	if err != nil {
		return err
	}
	s.closing(func() error { named.Close(); configured.Close(); return nil })
	m, a := s.settings.Mail, s.settings.Alerts
	alerts := notify.AlertConfig{Webhook: a.Webhook, Poster: configured}
	for address := range strings.SplitSeq(a.Mail, ",") {
		if address = strings.TrimSpace(address); address != "" {
			alerts.Mail = append(alerts.Mail, address)
		}
	}
	n, err := notify.New(notify.Config{
		Mail:    notify.MailConfig{Server: m.Server, User: m.User, Password: m.Password, From: m.From, TLS: m.TLS},
		Webhook: named,
		Inbox:   s.inbox,
		Alerts:  alerts,
	})
	if err == nil {
		n.Register(all.of(broker.AlertQueue))
	}
	return err
}

func (s *server) openReports(all muxes) error {
	if len(s.settings.Reports) == 0 {
		return nil
	}
	named := make(map[string]report.Report, len(s.settings.Reports))
	for name, r := range s.settings.Reports {
		one := report.Report{Query: r.Query, Params: r.Params, URL: r.URL}
		if one.URL == "" {
			one.URL = s.settings.Sink.URL
		}
		if one.URL == "" {
			one.URL = s.path(eventsFile)
		}
		named[name] = one
	}
	h, err := report.New(report.Config{Store: s.storage, Reports: named})
	if err == nil {
		h.Register(all.of(reportQueue))
	}
	return err
}

// userHandler makes a handler that the settings name.
func (s *server) userHandler(h config.Handler, secret string) (worker.JobHandler, error) {
	if len(h.Command) > 0 {
		return exec.New(exec.Config{Command: h.Command})
	}
	if h.Secret != "" {
		secret = h.Secret
	}
	pusher, err := push.New(push.Config{
		URL: h.URL, Secrets: []string{secret},
		ProgressURL: s.progressURL(),
		Receipt:     s.receipts.Of,
	})
	if err != nil {
		return nil, err
	}
	s.closing(func() error { pusher.Close(); return nil })
	return pusher, nil
}

// progressURL is where targets of pushes tell progress.
func (s *server) progressURL() string {
	return strings.TrimRight(cmp.Or(s.settings.Server.PublicURL, s.file.URL), "/") + "/api/leases/progress"
}

// webhookSecret is the one of the settings, else one that is made once and kept.
func (s *server) webhookSecret() (string, error) {
	if secret := s.settings.Webhooks.Secret; secret != "" {
		return secret, nil
	}
	path := s.path(secretFile)
	kept, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(kept)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", folderError(s.settings.Data.Dir, err)
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return "", err
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", folderError(s.settings.Data.Dir, err)
	}
	return secret, nil
}
