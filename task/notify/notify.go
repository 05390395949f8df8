// Package notify has the handlers that tell people: mail, webhooks, the in-app
// inbox, and alerts, which go to all three.
//
//	mail     {"to","subject","text","html","cc","from","replyTo","headers"}
//	webhook  {"url","body"}
//	inbox    {"user" or "users","title","text","url","data"}
//	alert    as broker.Alert, of a job that failed for good, timed out or is overdue
//
// It promises: what has arrived once is not sent again when the job is delivered
// again (worker.Job.Once), and where that cannot be known, the receiver can tell:
// Message-ID, webhook-id and the inbox's id come from the job's id. A part of an
// alert that fails does not repeat the others. What a job says becomes content, and
// never a header, an address or a line of a protocol that was not checked.
//
// It refuses to send what is half right: a mail with one recipient that the server
// refuses goes to none.
package notify

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"net/url"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// Kinds that Register adds.
const (
	KindMail    = "mail"
	KindWebhook = "webhook"
	KindInbox   = "inbox"
	KindAlert   = "alert"
)

// Poster posts signed JSON (push.Client).
type Poster interface {
	Post(ctx context.Context, url, id string, body []byte) (answer []byte, err error)
}

// Inbox stores a message for a user, once per id (inbox.Inbox).
type Inbox interface {
	Put(ctx context.Context, user, id string, message []byte) error
}

// Config of a Notify. What is left out fails as not configured, and says so.
type Config struct {
	Mail    MailConfig
	Webhook Poster // for addresses that jobs name: of a reach that is safe for that
	Inbox   Inbox
	Alerts  AlertConfig
}

// AlertConfig says who gets alerts, beside the owner of the job.
type AlertConfig struct {
	Mail    []string // addresses
	Webhook string   // an address; empty: none
	Poster  Poster   // posts to Webhook, which the operator named
	Users   []string // whose inbox; nil: "admin"
}

// Notify holds the handlers.
type Notify struct {
	cfg  Config
	mail *mailer // nil: not configured
}

// New makes the handlers.
func New(cfg Config) (*Notify, error) {
	if cfg.Alerts.Users == nil {
		cfg.Alerts.Users = []string{"admin"}
	}
	n := &Notify{cfg: cfg}
	var problems []error
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			problems = append(problems, invalid(field, format, args...))
		}
	}
	if cfg.Mail.Server != "" {
		var err error
		if n.mail, err = newMailer(cfg.Mail); err != nil {
			problems = append(problems, err)
		}
	}
	a := cfg.Alerts
	wrong(len(a.Mail) > 0 && cfg.Mail.Server == "", "alerts.mail", "there is no mail server to send them by (mail.server)")
	wrong(len(a.Mail) > 0 && cfg.Mail.From == "", "alerts.mail", "there is no sender to send them from (mail.from)")
	for _, to := range a.Mail {
		_, err := mail.ParseAddress(to)
		wrong(err != nil, "alerts.mail", "%q is no mail address", to)
	}
	if a.Webhook != "" {
		u, err := url.Parse(a.Webhook)
		wrong(err != nil || u.Host == "", "alerts.webhook", "it is not an address of the form https://host/path")
		wrong(a.Poster == nil, "alerts.poster", "there is nothing to post to alerts.webhook with")
	}
	return n, errors.Join(problems...)
}

func invalid(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "notify", format, args...)
	e.Field = field
	return e
}

// Register adds the handlers to a mux.
func (n *Notify) Register(mux *task.Mux) {
	mux.Handle(KindMail, task.Func(n.sendMail))
	mux.Handle(KindWebhook, task.Func(n.sendWebhook))
	mux.Handle(KindInbox, task.Func(n.sendInbox))
	mux.Handle(KindAlert, task.Func(n.sendAlert))
	mux.Describe(KindMail, task.About{Title: "Send a mail", Description: "By the SMTP server of the settings.", Data: []byte(mailSchema)})
	mux.Describe(KindWebhook, task.About{Title: "Call a webhook", Description: "Posts JSON, signed as Standard Webhooks says. Its result is the answer.", Data: []byte(webhookSchema)})
	mux.Describe(KindInbox, task.About{Title: "Leave a message", Description: "In the inbox of one or more users.", Data: []byte(inboxSchema), Result: []byte(inboxResult)})
}

// missing is the failure of a kind that is not configured: tried again, since the
// next start may have the setting.
func missing(what, setting string) error {
	e := fmt.Errorf("%s is not configured; see the setting %s", what, setting)
	return forebay.Because(forebay.Cause{Code: "not_configured"}, e)
}

// once runs an effect unless it has been had, where the engine can remember that.
func once(ctx context.Context, j *worker.Job, name string, run func(context.Context) ([]byte, error)) ([]byte, error) {
	ran := false
	result, err := j.Once(ctx, name, func(ctx context.Context) ([]byte, error) {
		ran = true
		return run(ctx)
	})
	if !ran && forebay.CodeOf(err) == forebay.CodeUnsupported {
		return run(ctx)
	}
	return result, err
}
